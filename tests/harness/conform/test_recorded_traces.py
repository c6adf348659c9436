"""The core shows what Apache Kafka showed, step by step; a core with a wrong rule does not.

The traces are of real clusters (results/reference/conform/README.md). A trace that no longer fits its script is
recorded again: ``ackproof conform STORY --settings COLUMN --save results/reference/conform``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from harness.conform import Comparison, Word, hold, known_deviations, read_trace
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
    "S04-all-1": ("shrink-before-acceptance",),
    "S06-all-2": ("append-below-min-isr",),
    "S11-all-2-F": ("flush-on-leader-only",),
    "S28-all-2": ("truncate-to-high-watermark",),
    "S35-all-2": ("keep-torn-batch",),
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
def test_a_wrong_rule_is_noticed_in_every_schedule(name: str, bug: str) -> None:
    trace = read_trace(TRACES / f"{name}.json")
    assert hold(trace, STORIES[trace.story], bug).unexplained is not None


def test_traces_are_of_apache_kafka_and_named_after_what_they_are() -> None:
    traces = {name: read_trace(TRACES / f"{name}.json") for name in NAMES}
    assert all(trace.is_kafka for trace in traces.values())
    assert [trace.name for trace in traces.values()] == [f"{name}.json" for name in NAMES]


def test_at_least_ten_planted_bugs_are_shown() -> None:
    assert len([bug for bugs in SHOWN.values() for bug in bugs]) >= 10


def test_each_known_deviation_is_seen_in_a_trace() -> None:
    """One that nothing needs any more would only hide something new."""
    steps = [step for name in NAMES for step in held(name).steps]
    seen = {difference.why for step in steps for difference in step.differences}
    assert {deviation.name for deviation in known_deviations()} <= seen
