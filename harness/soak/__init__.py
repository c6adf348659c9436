"""A soak: turns of a plan's cells for hours, under a budget, by a harness that may die and go on."""

from harness.soak.budget import bytes_of, seconds_of
from harness.soak.ending import Ending
from harness.soak.nights import Night, read_nights
from harness.soak.record import DISK, TRIES, Asked, read_asked, utc
from harness.soak.session import soak

__all__ = [
    "DISK",
    "TRIES",
    "Asked",
    "Ending",
    "Night",
    "bytes_of",
    "read_asked",
    "read_nights",
    "seconds_of",
    "soak",
    "utc",
]
