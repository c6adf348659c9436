"""The page of recorded traces: the result of each when the core was held against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.conform import Comparison, Word, hold, known_deviations, story_of, traces_in
from scripts.reference.markdown import bullets, page, table, wrapped

TRACES: Final = Path(__file__).parents[2] / "results" / "reference" / "conform"
FILE: Final = TRACES / "README.md"
INTRODUCTION: Final = """
Each trace is what Apache Kafka showed after the steps of a scripted story, recorded by `ackproof conform`;
[the guide](../../../docs/guides/conform.md) says how. The columns count steps by their result when the core
performed the same story: the same, passed within the step, a known deviation, unexplained.
"""


def compared() -> list[Comparison]:
    """Hold the core against every recorded trace."""
    return [hold(trace, story_of(trace)) for trace in traces_in(TRACES)]


def conformance(comparisons: Sequence[Comparison]) -> str:
    """Write the page of all comparisons."""
    return page(
        "The core against recorded traces of Kafka",
        "`results/reference/conform/`",
        wrapped(INTRODUCTION.strip()),
        table(["story", "settings", "on", "steps", *Word], map(_row, comparisons)),
        "## Known deviations",
        bullets(_deviations()),
    )


def _row(compared: Comparison) -> tuple[str, ...]:
    counts = (str(compared.count(word) or "") for word in Word)
    return (compared.story, compared.column, compared.system, str(len(compared.steps)), *counts)


def _deviations() -> Iterator[str]:
    for deviation in known_deviations():
        yield f"{deviation.name}: {' '.join(deviation.why.split())} ({deviation.source})"
