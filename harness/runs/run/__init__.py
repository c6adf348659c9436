"""One run: performed in its directory, taken through its phases, and healed where its harness died."""

from harness.runs.run.healing import heal, heal_all, kept_until_undone, to_heal, undone_sentence
from harness.runs.run.performing import (
    choices_of,
    lacks_observations,
    perform_run,
    read_choices,
    recover_observations,
    write_choices,
)
from harness.runs.run.scheduled import WARM_UP_MS_MAX, late_ms_max, perform_schedule, planned
from harness.runs.run.story_run import prepared, story_of

__all__ = [
    "WARM_UP_MS_MAX",
    "choices_of",
    "heal",
    "heal_all",
    "kept_until_undone",
    "lacks_observations",
    "late_ms_max",
    "perform_run",
    "perform_schedule",
    "planned",
    "prepared",
    "read_choices",
    "recover_observations",
    "story_of",
    "to_heal",
    "undone_sentence",
    "write_choices",
]
