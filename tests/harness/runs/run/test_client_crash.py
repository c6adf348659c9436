"""Runs whose producers crash: sends in doubt end as INFO, a new instance writes on, nothing acknowledged is lost."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

from checkers import check_one as check
from checkers import judge
from harness.ground.choices import Choices
from harness.plan import Processes, RunSpec, Simulated
from harness.records.files import HISTORY
from harness.runs.run import perform_schedule
from harness.runs.run.performing import perform_run
from harness.worlds.simulated.world import SimulatedWorld
from nemesis.cluster import CLIENTS
from nemesis.plan import FaultPlan
from nemesis.receipts import Receipt
from workloads.history import read_events
from workloads.operations import Event, EventType, Function
from workloads.plan import WorkloadPlan

FAMILY = "client-crash"


def spec(world: Processes | Simulated, acks: str | int, duration_ms: int, seed: int = 1) -> RunSpec:
    return RunSpec(
        world=world,
        cell=f"cell/{FAMILY}",
        family=FAMILY,
        settings={"acks": acks, "min.insync.replicas": 2, "linger.ms": 200},
        workload=WorkloadPlan(writes_per_second=200.0, duration_ms=duration_ms, drain_limit_ms=20_000),
        faults=FaultPlan(families=(FAMILY,), count=3, fault_ms_max=1_000),
        seed=seed,
    )


def crashes_continue(receipts: Sequence[Receipt], events: Iterable[Event]) -> int:
    """Holds every receipt against the history; how many sends the crashes left without an answer."""
    sends = [event for event in events if event.function is Function.SEND]
    assert len(receipts) >= 3
    left = 0
    for receipt in receipts:
        assert (receipt.fault, receipt.targets, receipt.took_effect) == ("clientcrash", (CLIENTS,), True)
        evidence = receipt.begin_evidence[str(CLIENTS)]
        died, successor = evidence["instance"], evidence["successor"]
        unanswered = [send for send in sends if send.instance == died and send.error == "ClientCrashed"]
        assert len(unanswered) <= evidence["outstanding"], "answers may have been under way"
        assert {send.type for send in unanswered} <= {EventType.INFO}
        begun = [send for send in sends if send.type is EventType.INVOKE]
        assert all(send.time_us <= receipt.begun_us for send in begun if send.instance == died)
        assert min(send.time_us for send in begun if send.instance == successor) >= receipt.begun_us
        assert any(send.instance == successor and send.type is EventType.OK for send in sends)
        left += len(unanswered)
    return left


class Events:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)


def lost(events: Sequence[Event]) -> set[int]:
    """Acknowledged values that no final reader read."""
    final = {event.process for event in events if event.function is Function.DRAIN}
    done = [event for event in events if event.type is EventType.OK]
    acknowledged = {event.micro[0].value for event in done if event.function is Function.SEND}
    polls = [event for event in done if event.function is Function.POLL and event.process in final]
    read = {
        record.value
        for event in polls
        for micro in event.micro
        for records in micro.records.values()
        for record in records
    }
    return acknowledged - read


@pytest.mark.parametrize("acks", ["all", 1])
def test_in_virtual_time_a_crash_leaves_sends_in_doubt_and_loses_nothing(acks: str | int) -> None:
    left = 0
    for seed in range(3):
        run_spec, choices, recorder = spec(Simulated(), acks, 12_000, seed), Choices(seed), Events()
        report = perform_schedule(run_spec, SimulatedWorld(run_spec, choices), recorder, choices.draw)
        assert report.drained, report.unhealthy
        left += crashes_continue(report.faults, recorder.events)
        assert report.sends.acknowledged > 1_000
        assert lost(recorder.events) == set()
    assert left > 0, "or the crashes showed nothing"


@pytest.mark.system
def test_on_processes_a_crash_is_in_the_history_and_no_promise_is_weaker(tmp_path: Path) -> None:
    run_spec = spec(Processes(), 1, 8_000)
    ended = perform_run(run_spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    assert ended.report is not None
    receipts = msgspec.convert(ended.report["faults"], list[Receipt])
    assert crashes_continue(receipts, list(read_events(tmp_path / "run" / HISTORY))) > 0
    judgement = judge(run_spec.chosen(), check(tmp_path / "run" / HISTORY))
    assert (judgement.judged, judgement.broken, judgement.lost) == (True, {}, 0)
    assert {(fault.kind, fault.clients_only) for fault in judgement.faults} == {("clientcrash", True)}
