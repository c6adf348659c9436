"""Faults that a script or a person drives leave receipts, as a schedule's do, so that promises apply to them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from nemesis.cluster import Link
from nemesis.evidence import Observed
from nemesis.faults import (
    FAULTS,
    Aim,
    AwayWiped,
    Fault,
    HoldConnections,
    HoldMessages,
    Kill,
    LossyLink,
    MoveLeader,
    Partition,
    Pause,
    WipeDisk,
)
from nemesis.open_faults import Cause, OpenFaults
from nemesis.receipts import Receipt
from nemesis.repairs import HEAL, START
from nemesis.roles import Role, RoleKind
from nemesis.topology import Shape
from tests.conftest import ObedientCluster, VirtualClock

BOTH = (Link(0, 1), Link(1, 0))
ANYBODY = Role(RoleKind.NAMED)
CAUSE = Cause("S40", "a story", "as the script says")


class Script:
    def __init__(self, *, blind: bool = False) -> None:
        self.clock, self.marks = VirtualClock(), list[tuple[str, str]]()
        self.cluster = ObedientCluster(blind=blind)
        self.faults = OpenFaults(self.cluster.target(), self.clock.now_us, self.note)

    def note(self, receipt: Receipt) -> None:
        self.marks.append((receipt.fault, receipt.mark))

    def hit(self, kind: type[Fault], node: int) -> Receipt:
        return self.faults.begin(kind.around(ANYBODY, Shape.ISOLATE), Aim(nodes=(node,), partition="t-0"), CAUSE)

    def cut(self, links: Collection[Link], kind: type[Fault] = Partition) -> Receipt:
        return self.faults.begin(kind.around(ANYBODY, Shape.ISOLATE), Aim(links=tuple(links)), CAUSE)


def test_a_kill_lasts_until_the_node_is_started_again() -> None:
    script = Script()
    receipt = script.faults.begin(Kill(ANYBODY), Aim(nodes=(1,)), CAUSE)
    script.clock.time_us = 7
    script.faults.undo(START, 1)
    assert script.marks == [("kill", "begin"), ("kill", "end")]
    assert (receipt.targets, receipt.begun_us, receipt.ended_us, receipt.took_effect) == ((1,), 0, 7, True)
    assert (receipt.family, receipt.story, receipt.touched) == ("S40", "a story", ("t-0", "t-1", "t-2"))
    assert receipt.end_evidence == {"restart": "1"}


def test_one_start_ends_everything_that_holds_its_node() -> None:
    script = Script()
    for node, kind in ((0, Kill), (0, WipeDisk), (1, Kill)):
        script.hit(kind, node)
    assert script.faults.undo(START, 0) == {"restart": "0"}
    assert script.marks[3:] == [("kill", "end"), ("wipedisk", "end")]
    assert script.faults.held(START) == {1}


def test_a_cut_lasts_until_the_last_of_its_links_is_whole() -> None:
    script = Script()
    receipt = script.cut(BOTH)
    script.faults.undo(HEAL, BOTH[:1])
    assert script.marks == [("partition", "begin")]
    script.faults.undo(HEAL, BOTH[1:])
    assert script.marks[-1] == ("partition", "end")
    assert receipt.links == BOTH


def test_what_changed_while_a_fault_lasted_is_in_its_receipt_however_short_it_was() -> None:
    """Whoever looks at the cluster between two acts lets the receipt of what lasts see it."""
    script = Script()
    receipt = script.cut(BOTH)
    script.clock.time_us = 5
    script.cluster.elected += 3
    script.faults.view()
    script.clock.time_us = 7
    script.cluster.elected -= 3
    script.faults.undo(HEAL, BOTH)
    assert [(look.time_us, look.leader_epoch) for look in receipt.seen["t-0"]] == [(0, 0), (5, 4), (7, 1)]


def test_the_cluster_is_looked_at_before_a_fault_is_undone() -> None:
    script = Script()
    receipt = script.hit(Kill, 0)
    script.clock.time_us = 7
    script.faults.undo(START, 0)
    assert [(look.time_us, look.leader) for look in receipt.seen["t-0"]] == [(0, 0), (7, 1)]


def test_what_nobody_saw_undone_lasts() -> None:
    script = Script()
    script.hit(Kill, 1)
    script.cluster.blind = True
    assert script.faults.undo(START, 1) == {}
    assert script.marks == [("kill", "begin")]
    script.cluster.blind = False
    script.faults.undo(START, 1)
    assert script.marks[-1] == ("kill", "end")


def test_a_planned_move_is_over_at_once_and_is_of_its_own_log_partition() -> None:
    script = Script()
    receipt = script.hit(MoveLeader, 2)
    assert script.marks == [("moveleader", "begin"), ("moveleader", "end")]
    assert receipt.touched == ("t-0",)


def test_what_was_not_observed_is_not_claimed() -> None:
    assert not Script(blind=True).hit(Kill, 1).took_effect


@pytest.mark.parametrize(("seen", "degraded_to"), [({"wiped": {"t-0": 3}}, ""), ({}, "away")], ids=["emptied", "not"])
def test_a_broker_whose_disk_was_not_emptied_before_it_returned_was_no_more_than_away(
    monkeypatch: pytest.MonkeyPatch, seen: Observed, degraded_to: str
) -> None:
    """It was asked to end and did not, or was started again meanwhile: a disk is emptied of a dead node only."""
    monkeypatch.setattr(ObedientCluster, "wipe", lambda *_: seen, raising=False)
    script = Script()
    receipt = script.faults.begin(AwayWiped(ANYBODY), Aim(nodes=(1,)), CAUSE, sequence=0)
    assert (receipt.took_effect, receipt.degraded_to) == (True, "")
    script.faults.end(0)
    assert (receipt.took_effect, receipt.degraded_to) == (True, degraded_to)


def test_what_a_script_leaves_undone_ends_with_it() -> None:
    script = Script()
    script.cut(BOTH, HoldMessages)
    script.hit(Pause, 2)
    script.faults.close()
    script.faults.close()
    assert script.marks[2:] == [("holdmessages", "end"), ("pause", "end")]
    assert [what for what, _ in script.cluster.calls] == ["hold", "pause"]


def test_all_faults_are_one_story_in_their_order() -> None:
    script = Script()
    receipts = [script.hit(Kill, 0), script.cut(BOTH)]
    assert [(receipt.sequence, receipt.group) for receipt in receipts] == [(0, 0), (1, 0)]


@pytest.mark.parametrize("kind", [kind for kind in FAULTS if kind.operands], ids=lambda kind: kind.verb)
def test_each_fault_of_a_script_is_ended_by_the_repair_that_it_names(kind: type[Fault]) -> None:
    script = Script()
    links = "LINK" in kind.operands
    (script.cut(BOTH, kind) if links else script.hit(kind, 1))
    if kind.lasts:
        script.faults.undo(kind.undone_by, BOTH if links else 1)
    assert script.marks == [(kind.kind, "begin"), (kind.kind, "end")]


@pytest.mark.parametrize(("kind", "repair"), [(HoldConnections, "deliver"), (LossyLink, "spare")])
@pytest.mark.parametrize("dropped", [0, 3])
def test_a_fault_of_packets_took_effect_only_if_something_was_sent_that_it_dropped(
    dropped: int, kind: type[Fault], repair: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    monkeypatch.setattr(script.cluster, repair, lambda _: {"dropped": {"0>1": 0, "1>0": dropped}})
    receipt = script.cut(BOTH, kind)
    assert receipt.took_effect, "it is not known yet"
    script.faults.end_all()
    assert receipt.took_effect == bool(dropped)
    assert receipt.reason == ("observed when it began" if dropped else "nothing met it while it lasted")
