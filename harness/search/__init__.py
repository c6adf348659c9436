"""Search among simulated runs: single ones in memory, hunts for what is wrong, and the smallest run that shows it."""

from harness.search.explaining import FUTURES, explain_run
from harness.search.hunting import ASSERTION, CRASH, Alarm, Hunted, Run, as_it_is, hunt
from harness.search.portfolios import EVERYTHING, PORTFOLIOS, Portfolio
from harness.search.sameness import Finding, finding_of
from harness.search.shrinking import Shrunk, shrunk
from harness.search.smaller_runs import SmallerRun, shrink_run
from harness.search.trial import Trial, attempt

__all__ = [
    "ASSERTION",
    "CRASH",
    "EVERYTHING",
    "FUTURES",
    "PORTFOLIOS",
    "Alarm",
    "Finding",
    "Hunted",
    "Portfolio",
    "Run",
    "Shrunk",
    "SmallerRun",
    "Trial",
    "as_it_is",
    "attempt",
    "explain_run",
    "finding_of",
    "hunt",
    "shrink_run",
    "shrunk",
]
