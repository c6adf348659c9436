"""A run goes through the same phases whatever is done to the cluster in its middle."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest

from harness.ground.errors import HarnessError
from harness.plan import RunSpec, Simulated
from harness.runs.phases import Phases, RunReport, opened
from nemesis.plan import FaultPlan
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from tests.nemesis.receipt_factory import a_receipt
from workloads import Settings, WorkloadPlan
from workloads.closings import Begun, Closings, of_keys
from workloads.driver import SendCounts
from workloads.operations import EventType, Function

PARTITION = "ackproof-0"


def spec() -> RunSpec:
    return RunSpec(
        world=Simulated(),
        cell="cell",
        family="M1",
        settings=Settings(acks=1).to_mapping(),
        workload=WorkloadPlan(partitions=1, drain_limit_ms=4_000, recovery_limit_ms=2_000),
        faults=FaultPlan(count=0),
        seed=1,
    )


class Nothing:
    """A middle in which nothing happens; ``lacks`` is what it says of the log partition."""

    schedule = Schedule(steps=(), healed_ms=0)
    sends = SendCounts(attempted=3, acknowledged=2, unknown=1)

    def __init__(self, lacks: dict[str, str]) -> None:
        self.receipts: list[Receipt] = []
        self.called: list[str] = []
        self._lacks = lacks

    def begin(self) -> None:
        self.called.append("begin")

    def play(self) -> None:
        self.called.append("play")

    def recover(self) -> int | None:
        self.called.append("recover")
        return None

    def answer(self) -> None:
        self.called.append("answer")

    def lacking(self) -> dict[str, str]:
        return self._lacks


def report_of(world: Any, events: Any, middle: Nothing) -> RunReport:
    with opened(world):
        return Phases(spec(), world, events).perform_phases(middle)


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world(partitions=(PARTITION,))


def test_every_middle_is_followed_by_fresh_writes_and_a_last_read(world: Any, events: Any) -> None:
    report = report_of(world, events, middle := Nothing({}))
    assert middle.called == ["begin", "play", "recover", "answer"]
    marks = [msgspec.json.decode(event.detail)["mark"] for event in events.of(Function.PHASE)]
    assert marks == ["heal", "drain", "end"]
    assert (report.drained, report.unhealthy, report.sends) == (True, {}, middle.sends)
    assert report.ends[PARTITION].end_offset is not None
    assert events.of(Function.RECOVERY)
    assert (world.opened, world.closed) == (1, 1)


def test_a_log_that_lacks_something_in_the_eyes_of_the_middle_proves_nothing(world: Any, events: Any) -> None:
    report = report_of(world, events, Nothing({PARTITION: "broker 2 does not follow"}))
    assert report.unhealthy == {PARTITION: "broker 2 does not follow"}
    assert not report.drained


class Shrinking(Nothing):
    """A middle whose log partition lacks a broker in ``looks`` looks, after some at which it is whole."""

    def __init__(self, first: int, looks: int) -> None:
        super().__init__({})
        self._looks: list[dict[str, str]] = [{}] * first + [{PARTITION: "broker 2 does not follow"}] * looks

    def lacking(self) -> dict[str, str]:
        return self._looks.pop(0) if self._looks else {}


@pytest.mark.parametrize("first", range(5))
def test_no_single_look_makes_a_log_one_that_proves_nothing(first: int, world: Any, events: Any) -> None:
    report = report_of(world, events, Shrinking(first, 1))
    assert (report.unhealthy, report.drained) == ({}, True)


def test_a_lack_is_believed_when_the_limit_is_over(world: Any, events: Any) -> None:
    report = report_of(world, events, Shrinking(1, 1_000))
    assert report.unhealthy == {PARTITION: "broker 2 does not follow"}


def drains_of_a_compacted_topic(world: Any, events: Any) -> list[tuple[EventType, int | None, str | None]]:
    with opened(world):
        phases = Phases(spec(), world, events)
        phases.workload.kind = phases.workload.kind._replace(closings=of_keys)
        phases.perform_phases(Nothing({}))
    return [(event.type, event.node, event.error) for event in events.of(Function.DRAIN)]


def test_a_compacted_topic_is_read_again_under_each_leader(world: Any, events: Any) -> None:
    def move_leader(name: str, broker: int) -> dict[str, str]:
        world.cluster.places[name].sort(key=lambda node: node != broker)
        return {}

    world.cluster.move_leader = move_leader
    brokers = world.target.view().brokers
    assert len(brokers) == 3
    assert drains_of_a_compacted_topic(world, events) == [(EventType.OK, node, None) for node in (None, *brokers)]
    assert events.of(Function.FAULT) == [], "leaders that the closings moved need no explanation"


def test_a_broker_that_does_not_lead_is_not_read_under(world: Any, events: Any) -> None:
    leader = world.target.view().partitions[PARTITION].leader
    _, *drains = drains_of_a_compacted_topic(world, events)
    assert [node for kind, node, _ in drains if kind is EventType.OK] == [leader]
    assert {error for kind, _, error in drains if kind is not EventType.OK} == {
        f"broker {node} does not lead it" for node in world.target.view().brokers if node != leader
    }


def test_a_closing_has_its_limit_and_its_pause_and_is_ended(world: Any, events: Any) -> None:
    done: list[tuple[str, int]] = []

    class Endless:
        finished = False

        def end(self) -> None:
            done.append(("end", world.clock.now_us()))

    class Tells(NamedTuple):
        work: Any
        limit_ms: int
        pause_ms: int

        def begin(self, _ending: object) -> Begun:
            done.append(("begin", world.clock.now_us()))
            return Begun(*self)

    closings = Closings(after=(Tells(Endless(), 700, 200), Tells(Endless(), 300, 0)))
    with opened(world):
        phases = Phases(spec(), world, events)
        phases.workload.kind = phases.workload.kind._replace(closings=lambda _levels, _brokers: closings)
        phases.perform_phases(Nothing({}))
    begun_us = done[0][1]
    assert [(what, (time_us - begun_us) // 1000) for what, time_us in done] == [
        ("begin", 0),
        ("end", 700),
        ("begin", 900),
        ("end", 1_200),
    ]


@pytest.mark.parametrize(("receipts", "written"), [([], ["unasked"]), ([a_receipt()], [])])
def test_a_leader_that_changed_in_the_middle_is_explained_by_its_faults_or_written_down(
    world: Any, events: Any, receipts: list[Receipt], written: list[str]
) -> None:
    class Moves(Nothing):
        def play(self) -> None:
            world.cluster.elected = 1

    middle = Moves({})
    middle.receipts = receipts
    report_of(world, events, middle)
    assert [msgspec.json.decode(event.detail)["fault"] for event in events.of(Function.FAULT)] == written


def test_a_leader_that_changed_while_the_middle_prepared_itself_needs_no_explanation(world: Any, events: Any) -> None:
    class Prepares(Nothing):
        def begin(self) -> None:
            world.cluster.elected = 1

    report_of(world, events, Prepares({}))
    assert events.of(Function.FAULT) == []


def test_the_world_is_closed_where_the_middle_fails(world: Any, events: Any) -> None:
    class Fails(Nothing):
        def play(self) -> None:
            raise HarnessError("the middle failed")

    with pytest.raises(HarnessError, match="the middle failed"):
        report_of(world, events, Fails({}))
    assert world.closed == 1
