"""One run: performed in its directory, taken through its phases, and healed where its harness died."""

from harness.run.healing import heal, heal_all, is_left_behind
from harness.run.performing import lacks_observations, perform, recover_observations
from harness.run.phases import LATE_MS_MAX, WARM_UP_MS_MAX, planned

__all__ = [
    "LATE_MS_MAX",
    "WARM_UP_MS_MAX",
    "heal",
    "heal_all",
    "is_left_behind",
    "lacks_observations",
    "perform",
    "planned",
    "recover_observations",
]
