"""The core of the reference broker held step by step against a real cluster that performs the same story.

The cluster is Apache Kafka, or the reference broker on processes. What it shows after each step is recorded, in a file
too if that is wanted; the core performs the story in virtual time and at the same pace, and shows the same or not.
"""

from harness.lab.conform.comparing import ComparedStep, Comparison, Difference, Word, hold
from harness.lab.conform.deviations import Deviation, known_deviations
from harness.lab.conform.free_runs import FreeRun, held_run, is_held
from harness.lab.conform.performing import ELSEWHERE, performed_elsewhere, playable, why_not
from harness.lab.conform.recorded import RecordedTrace, read_trace, story_of, traces_in, write_trace

__all__ = [
    "ELSEWHERE",
    "ComparedStep",
    "Comparison",
    "Deviation",
    "Difference",
    "FreeRun",
    "RecordedTrace",
    "Word",
    "held_run",
    "hold",
    "is_held",
    "known_deviations",
    "performed_elsewhere",
    "playable",
    "read_trace",
    "story_of",
    "traces_in",
    "why_not",
    "write_trace",
]
