"""Search among simulated runs: single ones in memory, hunts for what is wrong, and the smallest run that shows it."""

from harness.lab.search.all_portfolios import EVERYTHING, PLAIN, portfolios_for
from harness.lab.search.explaining import FUTURES, explain_run
from harness.lab.search.hunting import ASSERTION, CRASH, Alarm, HuntedRun, HuntResult, as_it_is, hunt
from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.lab.search.portfolios import PORTFOLIOS, Portfolio
from harness.lab.search.sameness import FindingToKeep, finding_of
from harness.lab.search.shrinking import Shrunk, shrunk
from harness.lab.search.shrinking_recorded import SmallerRun, shrink_run

__all__ = [
    "ASSERTION",
    "CRASH",
    "EVERYTHING",
    "FUTURES",
    "PLAIN",
    "PORTFOLIOS",
    "Alarm",
    "FindingToKeep",
    "HuntResult",
    "HuntedRun",
    "JudgedRun",
    "Portfolio",
    "Shrunk",
    "SmallerRun",
    "as_it_is",
    "explain_run",
    "finding_of",
    "hunt",
    "portfolios_for",
    "run_in_memory",
    "shrink_run",
    "shrunk",
]
