"""The core in virtual time against the reference broker's own processes, without Kafka."""

from __future__ import annotations

import pytest

from harness.ground.errors import PlanError
from harness.lab.conform import hold, performed_elsewhere, playable
from harness.runs.stories import known_stories

STORIES = known_stories()


@pytest.mark.system
def test_processes_show_what_the_core_shows_in_virtual_time() -> None:
    """S52: a broker is stopped in order, leaves the ISR, and the leader goes on at once."""
    trace = performed_elsewhere(STORIES["S52"], "all/2", "processes")
    compared = hold(trace, STORIES["S52"])
    assert [step for step in compared.steps if step.differences] == []
    assert compared.conforms
    assert hold(trace, STORIES["S52"], "keep-fenced-in-isr").unexplained is not None


def test_a_story_that_a_world_cannot_play_is_left_out_of_all() -> None:
    """S22 drops answers to clients, which ends whole connections on Kafka; S50 needs a rule that Kafka gave up."""
    chosen = [STORIES[number] for number in ("S01", "S22", "S50")]
    assert playable(chosen, ["all/2"], "kafka") == ["S01"]
    assert playable(chosen, ["all/2"], "processes") == ["S01", "S22", "S50"]


@pytest.mark.parametrize(
    ("number", "why_not"),
    [("S22", "ends a whole connection"), ("S50", r"replica\.lag\.max\.messages=2, and Apache Kafka 4\.3\.1 does not")],
)
def test_a_story_that_kafka_cannot_play_is_refused_with_the_reason(number: str, why_not: str) -> None:
    with pytest.raises(PlanError, match=why_not):
        performed_elsewhere(STORIES[number], "all/2", "kafka")
