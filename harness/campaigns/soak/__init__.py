"""A soak: turns of a plan's cells for hours, under a budget, by a harness that may die and go on."""

from harness.campaigns.soak.disk_budget import refuse_too_little
from harness.campaigns.soak.ending import Ending
from harness.campaigns.soak.nights import Night, read_nights
from harness.campaigns.soak.resources import bytes_of, seconds_of
from harness.campaigns.soak.session import perform_soak
from harness.campaigns.soak.soak_file import DISK, TRIES, SoakRequest, read_request

__all__ = [
    "DISK",
    "TRIES",
    "Ending",
    "Night",
    "SoakRequest",
    "bytes_of",
    "perform_soak",
    "read_nights",
    "read_request",
    "refuse_too_little",
    "seconds_of",
]
