"""The core shows what Apache Kafka showed, step by step; a core with a wrong rule does not.

The traces are of real clusters (results/reference/conform/README.md). A trace that no longer fits its script is
recorded again: ``ackproof conform STORY --settings COLUMN --save results/reference/conform``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from harness.conform import Comparison, Word, hold, read_trace
from harness.stories import known_stories
from scripts.reference.conformance import FILE, TRACES, conformance

#: All of these look at the same comparisons, which one worker keeps.
pytestmark = pytest.mark.xdist_group("recorded-traces")
NAMES: Final = sorted(path.stem for path in TRACES.glob("*.json"))
STORIES: Final = known_stories()
#: By trace, planted bugs of the core that it shows.
SHOWN: Final = {
    "S01-all-2": (
        "acknowledge-after-append",
        "commit-largest-log-end",
        "forget-epoch-start",
        "keep-fenced-in-isr",
        "checkpoint-log-end",
        "keep-fenced-out",
    ),
    "S21-all-2": ("shrink-before-acceptance",),
}


@cache
def held(name: str) -> Comparison:
    trace = read_trace(TRACES / f"{name}.json")
    return hold(trace, STORIES[trace.story])


@pytest.mark.parametrize("name", NAMES)
def test_the_core_shows_what_kafka_showed_at_every_step(name: str) -> None:
    compared = held(name)
    wrong = {step.text: step.differences for step in compared.steps if step.word is Word.UNEXPLAINED}
    assert wrong == {}
    assert compared.conforms
    assert len(compared.steps) > len(STORIES[compared.story].steps)
    assert compared.count(Word.PASSED) <= len(compared.steps) // 4, "too few steps end in the same state"


def test_the_page_of_traces_is_up_to_date() -> None:
    """`make reference` writes it."""
    assert FILE.read_text(encoding="utf-8") == conformance([held(name) for name in NAMES])


@pytest.mark.parametrize(("name", "bug"), [(name, bug) for name, bugs in SHOWN.items() for bug in bugs])
def test_a_wrong_rule_is_noticed(name: str, bug: str) -> None:
    trace = read_trace(TRACES / f"{name}.json")
    assert hold(trace, STORIES[trace.story], bug).unexplained is not None


def test_traces_are_of_apache_kafka_and_named_after_what_they_are() -> None:
    traces = {name: read_trace(TRACES / f"{name}.json") for name in NAMES}
    assert all(trace.is_kafka for trace in traces.values())
    assert [trace.name for trace in traces.values()] == [f"{name}.json" for name in NAMES]
