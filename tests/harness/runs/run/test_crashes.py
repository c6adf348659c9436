"""Nodes that end by themselves: written down while the run goes, counted as kills, and never as silence."""

import msgspec
import pytest

from checkers import latest_receipts
from checkers.verdicts.promises import promise
from checkers.verdicts.receipts import faults_seen
from harness.plan import AnyWorld, Kafka, Processes, RunSpec, Simulated
from harness.runs.phases import own_failure
from harness.runs.run import perform_schedule
from harness.worlds.contract import NodeCrash
from nemesis.plan import FaultPlan
from nemesis.receipts import Receipt
from tests.nemesis.receipt_factory import a_receipt
from workloads.operations import Function
from workloads.plan import WorkloadPlan
from workloads.settings import ACKS_ALL, Settings

SIMULATED = Simulated()
CRASH = NodeCrash(time_us=2_000_000, node=1, exit="status 1", words="AssertionError")


def spec(world: AnyWorld = SIMULATED) -> RunSpec:
    return RunSpec(
        world=world,
        cell="cell/kill",
        family="kill",
        settings=Settings().to_mapping(),
        workload=WorkloadPlan(duration_ms=4_000, drain_limit_ms=4_000),
        faults=FaultPlan(count=0),
        seed=1,
    )


def fault(kind: str, node: int, begun_us: int) -> Receipt:
    return a_receipt(family="disk", story="", fault=kind, targets=(node,), begun_us=begun_us)


def receipts(events) -> list[dict]:
    return [msgspec.json.decode(event.detail) for event in events.of(Function.FAULT)]


def run_with_a_crash(world, events, returned_us: int | None):
    """Broker 1 dies after two seconds, and runs again at ``returned_us``."""
    gone = msgspec.structs.replace(CRASH)
    back = msgspec.structs.replace(CRASH, returned_us=returned_us)
    world.clock.call_at(2_000_000, lambda: world.died.append(gone))
    if returned_us is not None:
        world.clock.call_at(returned_us, lambda: world.died.__setitem__(0, back))
    return perform_schedule(spec(), world, events, lambda _, bound: bound - 1)


def test_a_death_stands_in_the_history_as_a_fault_that_took_effect_and_nobody_drew(make_world, events):
    report = run_with_a_crash(make_world(), events, returned_us=None)
    (reported,) = receipts(events)
    assert (reported["fault"], reported["family"], reported["targets"], reported["took_effect"]) == (
        "died",
        "died",
        [1],
        True,
    )
    assert reported["begin_evidence"] == {"1": {"exit": "status 1", "words": "AssertionError"}}
    assert reported["begun_us"] == CRASH.time_us, "when it was noticed, not when it was written down"
    assert (report.faults, report.deaths) == ([], (CRASH,))


def test_a_death_ends_when_its_node_runs_again(make_world, events):
    run_with_a_crash(make_world(), events, returned_us=3_000_000)
    begin, end = receipts(events)
    assert (begin["mark"], end["mark"]) == ("begin", "end")
    assert begin["sequence"] == end["sequence"]
    assert 3_000_000 <= end["ended_us"] <= 3_500_000


@pytest.mark.parametrize(("acks", "permitted"), [(1, True), (ACKS_ALL, False)])
def test_a_death_is_a_kill_to_the_promise(make_world, events, acks, permitted):
    run_with_a_crash(make_world(), events, returned_us=3_000_000)
    seen = faults_seen(latest_receipts(msgspec.convert(receipts(events), list[Receipt])))
    assert [fault.nodes for fault in seen] == [(1,)]
    assert promise(Settings(acks=acks), seen).permits_loss is permitted


def test_a_crash_of_the_reference_broker_is_the_harness_own_failure():
    reported = own_failure(spec(Processes()), [CRASH], [fault("kill", 1, 1_000_000)])
    assert reported is not None
    assert "node 1" in reported
    assert "status 1" in reported
    assert "AssertionError" in reported


@pytest.mark.parametrize(
    ("world", "faults"),
    [
        pytest.param(Kafka(), [], id="another system's node may crash: that is a fact"),
        pytest.param(Processes(), [fault("fulldisk", 1, 1_000_000)], id="its disk was full"),
    ],
)
def test_other_deaths_are_no_failure_of_the_harness(world, faults):
    assert own_failure(spec(world), [CRASH], faults) is None


@pytest.mark.parametrize("hit", [fault("fulldisk", 0, 1_000_000), fault("fulldisk", 1, 3_000_000)])
def test_a_full_disk_explains_deaths_of_its_own_node_after_it(hit):
    assert own_failure(spec(Processes()), [CRASH], [hit]) is not None
