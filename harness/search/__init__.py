"""Search among simulated runs: single ones in memory, and hunts for what is wrong in many."""

from harness.search.hunting import Alarm, Hunted, Run, as_it_is, hunt
from harness.search.portfolios import EVERYTHING, PORTFOLIOS, Portfolio
from harness.search.trial import Trial, attempt

__all__ = [
    "EVERYTHING",
    "PORTFOLIOS",
    "Alarm",
    "Hunted",
    "Portfolio",
    "Run",
    "Trial",
    "as_it_is",
    "attempt",
    "hunt",
]
