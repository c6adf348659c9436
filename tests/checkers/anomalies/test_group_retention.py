"""Groups that forget their offsets after offsets.retention.minutes without members (KIP-211), or too early."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.checkers.anomalies.test_groups import KEY, A, B, GroupScene
from tests.checkers.findings import forbidden
from tests.checkers.in_memory import judge_events
from tests.checkers.judge.comparison import checked
from tests.checkers.judge.verdict import by_the_judge
from workloads.operations import NOTHING, EventType, Function

KEPT_MS = 60_000


class ForgettingScene(GroupScene):
    """The group's events tell for how long it keeps offsets; time passes between them where it is said."""

    def __init__(self, kept_ms: int | None = KEPT_MS) -> None:
        super().__init__()
        self.passed_us, self.kept_ms = 0, kept_ms
        for offset in range(6):
            self.send(offset + 100, offset)
        self.poll(*((offset, offset + 100) for offset in range(6)))

    def event(self, process: int, kind: EventType, function: Function, **rest: Any) -> int:
        index = super().event(process, kind, function, **rest)
        event, named = self.events[index], {}
        if event.detail is not None and self.kept_ms is not None:
            named = {"detail": event.detail.replace("}", f',"retention_ms":{self.kept_ms}}}')}
        self.events[index] = msgspec.structs.replace(event, time_us=event.time_us + self.passed_us, **named)
        return index

    def wait(self, seconds: float) -> None:
        self.passed_us += int(seconds * 1e6)

    def anomalies(self) -> set[str]:
        told = checked(judge_events(self.events, shown=None))
        assert told == by_the_judge(self.events)
        return {*forbidden(judge_events(self.events))} & {"group-went-back", "group-skip", "stale-generation"}


def left_alone(seconds: float, kept_ms: int | None = KEPT_MS) -> ForgettingScene:
    """A member commits 4, in generation 7, and is not seen for some time."""
    made = ForgettingScene(kept_ms)
    made.deal(A, KEY, generation=7)
    made.work(A, 0, 1, 2, 3)
    made.wait(seconds)
    return made


@pytest.mark.parametrize(
    ("seconds", "kept_ms", "anomalies"),
    [(61, KEPT_MS, set()), (50, KEPT_MS, {"group-went-back"}), (10**6, None, {"group-went-back"})],
    ids=["after its time", "too early", "nobody tells the time"],
)
def test_a_group_without_members_has_nothing_after_its_time(
    seconds: int, kept_ms: int | None, anomalies: set[str]
) -> None:
    made = left_alone(seconds, kept_ms)
    made.committed(NOTHING)
    assert made.anomalies() == anomalies


def test_a_group_that_may_have_forgotten_is_at_no_other_offset_than_it_had() -> None:
    made = left_alone(61)
    made.committed(3)
    assert made.anomalies() == {"group-went-back"}


@pytest.mark.parametrize(("seconds", "anomalies"), [(61, set()), (50, {"group-went-back", "stale-generation"})])
def test_the_next_member_begins_at_the_start_in_the_first_generation(seconds: int, anomalies: set[str]) -> None:
    made = left_alone(seconds)
    made.deal(B, KEY, generation=1)
    made.work(B, 0, 1, 2, 3, 4, 5)
    assert made.anomalies() == anomalies


@pytest.mark.parametrize(("seconds", "anomalies"), [(61, set()), (50, {"group-skip"})])
def test_the_next_member_may_begin_behind_what_nobody_processed(seconds: int, anomalies: set[str]) -> None:
    made = left_alone(seconds)
    made.deal(B, KEY, generation=8)
    made.work(B, 5)
    assert made.anomalies() == anomalies


@pytest.mark.parametrize(("again", "anomalies"), [(False, {"group-went-back"}), (True, set())])
def test_a_member_that_goes_on_kept_the_group_from_forgetting_unless_it_came_again(
    again: bool, anomalies: set[str]
) -> None:
    made = left_alone(61)
    made.committed(NOTHING)
    if again:
        made.deal(A)
        made.deal(A, KEY, generation=8)
    made.work(A, 4, 5)
    assert made.anomalies() == anomalies


def test_offsets_count_from_their_last_commit() -> None:
    made = left_alone(50)
    made.work(A, 4)
    made.wait(50)
    made.committed(NOTHING)
    assert made.anomalies() == {"group-went-back"}


def test_the_shortest_time_that_is_told_counts() -> None:
    made = left_alone(20)
    made.kept_ms = 15_000
    made.committed(NOTHING)
    assert made.anomalies() == set()
