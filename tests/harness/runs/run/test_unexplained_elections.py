"""Leaders that changed though no fault asked for it: written down, so that what it costs is no broken promise."""

import msgspec
import pytest

from checkers import latest_receipts
from checkers.columns.phases import Mark, RunMarks
from checkers.verdicts.promises import promise
from checkers.verdicts.receipts import faults_seen
from harness.plan import RunSpec, Simulated
from harness.runs.phases.unplanned_events import unexplained_election
from harness.runs.run import perform_schedule
from harness.worlds.contract import NodeCrash
from nemesis.cluster import CLIENTS, ClusterView, Link, PartitionView
from nemesis.faults import fault_kind
from nemesis.plan import FaultPlan
from nemesis.receipts import Receipt
from tests.nemesis.receipt_factory import a_receipt
from workloads.history.schema import FUNCTION_CODE
from workloads.operations import Function
from workloads.plan import WorkloadPlan
from workloads.settings import ACKS_ALL, Settings

SPAN_US = (0, 9_000_000)
CLIENTS_CUT = {"targets": (), "fault": "partition", "links": (Link(0, CLIENTS), Link(CLIENTS, 0))}
PRODUCER_DIED = {"targets": (CLIENTS,), "fault": "clientcrash", "moved": {"t-0": {"leader": [0, 1]}}}


def view(leader: int | None = 0, epoch: int = 3, isr: tuple[int, ...] = (0, 1, 2)) -> ClusterView:
    state = PartitionView(leader, epoch, isr, (0, 1, 2))
    still = PartitionView(2, 7, (0, 1, 2), (0, 1, 2))
    return ClusterView({"t-0": state, "t-1": still}, (0, 1, 2), (0, 1, 2))


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        pytest.param(view(1, 4), {"leader": (0, 1), "leader_epoch": (3, 4)}, id="another leads"),
        pytest.param(view(0, 5), {"leader_epoch": (3, 5)}, id="it leads again"),
        pytest.param(view(None, 4), {"leader": (0, None), "leader_epoch": (3, 4)}, id="nobody leads"),
    ],
)
def test_a_leader_that_changed_without_a_fault_has_a_receipt(after, changes):
    reported = unexplained_election(view(), after, [], SPAN_US)
    assert reported is not None
    assert (reported.fault, reported.family, reported.mark, reported.took_effect) == ("unasked", "unasked", "end", True)
    assert (reported.moved, reported.targets, reported.links) == ({"t-0": changes}, (), ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(view(), view(), id="nothing changed"),
        pytest.param(view(), view(isr=(0, 1)), id="a follower fell behind"),
        pytest.param(view(None), view(1, 4), id="the first leader of all"),
    ],
)
def test_what_replaces_no_leader_has_none(before, after):
    assert unexplained_election(before, after, [], SPAN_US) is None


@pytest.mark.parametrize(
    ("fault", "explained"),
    [
        pytest.param(a_receipt(), True, id="a kill"),
        pytest.param(a_receipt(took_effect=False), False, id="a kill of which nothing was seen"),
        pytest.param(a_receipt(took_effect=False, begin_evidence={"0": {"unconfirmed": "?"}}), True, id="possible"),
        pytest.param(a_receipt(took_effect=False, begin_evidence={"0": {"refused": "no"}}), False, id="refused"),
        pytest.param(a_receipt(**CLIENTS_CUT), False, id="only clients were cut off"),
        pytest.param(a_receipt(**PRODUCER_DIED), False, id="a producer died"),
    ],
)
def test_a_fault_that_may_have_reached_the_cluster_explains_every_change(fault, explained):
    assert (unexplained_election(view(), view(1, 4), [fault], SPAN_US) is None) is explained


def spec() -> RunSpec:
    return RunSpec(
        world=Simulated(),
        cell="cell/kill",
        family="kill",
        settings=Settings(acks=1).to_mapping(),
        workload=WorkloadPlan(duration_ms=4_000, drain_limit_ms=4_000),
        faults=FaultPlan(count=0),
        seed=1,
    )


def faults_of(world, events):
    perform_schedule(spec(), world, events, lambda _, bound: bound - 1)
    return [msgspec.json.decode(event.detail) for event in events.of(Function.FAULT)]


@pytest.mark.parametrize("acks", [1, ACKS_ALL])
def test_a_run_whose_leader_moved_by_itself_promises_no_more_than_under_a_fault(make_world, events, acks):
    world = make_world()
    world.clock.call_at(2_000_000, lambda: setattr(world.cluster, "elected", 1))
    reported = faults_of(world, events)
    seen = faults_seen(latest_receipts(msgspec.convert(reported, list[Receipt])))
    assert [fault.kind for fault in seen] == ["unasked"]
    assert promise(Settings(acks=acks), seen).permits_loss is (acks == 1)
    moment = Mark(9_000_000, FUNCTION_CODE[Function.FAULT], 0, -1, msgspec.json.encode(reported[0]).decode())
    assert RunMarks((moment,)).fault_windows().size == 0, "no write counts as acknowledged in it"


def test_a_quiet_run_has_no_receipt(make_world, events):
    assert faults_of(make_world(), events) == []


def test_a_death_explains_what_its_node_led(make_world, events):
    world = make_world()
    world.clock.call_at(2_000_000, lambda: setattr(world.cluster, "elected", 1))
    world.died.append(NodeCrash(time_us=2_000_000, node=1, exit="status 1", words=""))
    assert {fault["fault"] for fault in faults_of(world, events)} == {"died"}


def test_it_may_hide_an_unclean_stop():
    assert not fault_kind("unasked").spares_process
