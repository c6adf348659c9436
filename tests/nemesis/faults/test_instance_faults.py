"""Faults of instances: whom they hit, how they end, and that no promise of the log is weaker for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from checkers import faults_possible
from checkers.verdicts.promises import promise
from nemesis.cluster import CLIENTS, Capability, Target
from nemesis.evidence import InstanceSeen
from nemesis.faults import Fault, InstanceAdd, InstanceCut, InstanceFreeze, InstanceKill, InstanceStop
from nemesis.player import Player, restore
from nemesis.receipts import Receipt
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import FAMILIES, Scene, Timings, needs_of
from nemesis.schedule import Schedule, ScheduledFault
from workloads.settings import Settings

SECOND = Role(RoleKind.INSTANCE, pick=1)


class Instances:
    """Notes what is done to instances."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.picks: list[int] = []
        self.dropped = 3

    def _act(self, act: str, pick: int = 1) -> InstanceSeen:
        self.acts.append(act)
        self.picks.append(pick)
        return {"instance": pick}

    def kill_instance(self, pick: int) -> InstanceSeen:
        return self._act("kill", pick)

    def stop_instance(self, pick: int) -> InstanceSeen:
        return self._act("stop", pick)

    def freeze_instance(self, pick: int) -> InstanceSeen:
        return self._act("freeze", pick)

    def cut_instance(self, pick: int, broker: int) -> InstanceSeen:
        return {**self._act(f"cut from {broker}", pick), "broker": broker}

    def mend_instance(self, pick: int) -> InstanceSeen:
        return {**self._act("mend", pick), "lost_packets": self.dropped}

    def restore_instance(self, pick: int) -> InstanceSeen:
        return self._act("restore", pick)

    def add_instance(self) -> InstanceSeen:
        return self._act("add", 2)

    def take_added_away(self) -> InstanceSeen:
        return self._act("take away", 2)

    def restore_all(self) -> InstanceSeen:
        return self._act("restore all")


def played(make_world: Any, fault: Fault, instances: Instances | None) -> tuple[Receipt, Target]:
    world = make_world()
    target = msgspec.structs.replace(world.target, instances=instances)
    step = ScheduledFault(begin_ms=100, end_ms=500, group=0, family=fault.family, scenario="one", fault=fault)
    schedule = Schedule(steps=(step,), healed_ms=900)
    player = Player(schedule, target, world.clock, dead_brokers_max=0, witness=lambda _: None)
    player.start()
    world.drive(lambda: False, 600_000)
    (receipt,) = player.receipts
    assert world.cluster.calls == [], "nothing is done to the cluster"
    return receipt, target


@pytest.mark.parametrize(
    ("kind", "acts", "words"),
    [
        (InstanceKill, ["kill", "restore"], "instance 1 was killed"),
        (InstanceStop, ["stop", "restore"], "instance 1 was asked to end"),
        (InstanceFreeze, ["freeze", "restore"], "instance 1 was frozen"),
        (InstanceAdd, ["add", "take away"], "instance 2 was started beside the others"),
    ],
)
def test_a_fault_hits_the_instance_that_its_pick_says_and_its_end_undoes_it(
    make_world: Any, kind: type[Fault], acts: list[str], words: str
) -> None:
    instances = Instances()
    receipt, _ = played(make_world, kind(SECOND), instances)
    assert instances.acts == acts
    assert (receipt.targets, receipt.mark, receipt.took_effect) == ((CLIENTS,), "end", True)
    assert receipt.facts.in_words(receipt.of_nodes) == words
    assert kind.in_words({}) == ""


def test_an_instance_is_cut_off_from_the_broker_that_has_the_role_when_the_time_has_come(make_world: Any) -> None:
    instances = Instances()
    receipt, _ = played(make_world, InstanceCut(SECOND, Role(RoleKind.NAMED, pick=2)), instances)
    assert instances.acts == ["cut from 2", "mend"]
    assert receipt.facts.in_words(receipt.of_nodes) == "instance 1 was cut off from broker 2"
    assert receipt.took_effect
    receipt, _ = played(make_world, InstanceCut(SECOND, Role(RoleKind.NAMED, pick=9)), instances)
    assert (receipt.mark, receipt.reason) == ("skipped", "broker 9 does not exist now")


def test_an_instance_that_sent_nothing_while_it_was_cut_off_met_nothing() -> None:
    assert not InstanceCut.met_something({str(CLIENTS): {"instance": 1, "lost_packets": 0}})
    assert InstanceCut.met_something({str(CLIENTS): {"instance": 1, "lost_packets": 2}})


def test_without_an_application_it_is_skipped_with_what_to_write(make_world: Any) -> None:
    receipt, _ = played(make_world, InstanceKill(SECOND), None)
    assert (receipt.mark, receipt.took_effect) == ("skipped", False)
    assert receipt.reason == ('there is no application: write [application], and name = "application" under [workload]')


def test_a_fault_that_found_no_instance_running_had_no_effect(make_world: Any) -> None:
    class NobodyRuns(Instances):
        def kill_instance(self, pick: int) -> InstanceSeen:
            return {}

    receipt, _ = played(make_world, InstanceKill(SECOND), NobodyRuns())
    assert not receipt.took_effect


def test_no_promise_of_the_log_is_weaker_for_it(make_world: Any) -> None:
    receipt, _ = played(make_world, InstanceKill(SECOND), Instances())
    (seen,) = faults_possible([receipt])
    assert seen.clients_only
    assert not promise(Settings(acks=1), [seen]).permits_loss


def test_when_all_is_healed_every_instance_runs(make_world: Any) -> None:
    instances = Instances()
    _, target = played(make_world, InstanceFreeze(SECOND), instances)
    restore(target)
    assert instances.acts[-1] == "restore all"


def test_families_freeze_past_session_and_transaction_and_deploy_each_instance_in_turn() -> None:
    timings = Timings(member_ms=6_000, transaction_ms=10_000)
    scene = Scene(
        draw=lambda _label, _bound: 0, timings=timings, fault_ms_min=500, fault_ms_max=900, brokers=3, partitions=1
    )
    families = [family for name, family in FAMILIES.items() if name.startswith("instance-")]
    assert [family.name for family in families] == [
        "instance-kill", "instance-stop", "instance-freeze", "instance-cut", "instance-scale",
    ]  # fmt: skip
    assert {need for family in families for need in needs_of(family.name)} == {Capability.INSTANCES}
    freezes = {scenario.name: scenario.parts(scene)[0].end_ms for scenario in FAMILIES["instance-freeze"].scenarios}
    assert freezes == {"past-session": 9_000, "past-transaction": 15_000, "blink": 500}
    deployment = FAMILIES["instance-stop"].scenarios[0].parts(scene)
    assert [(part.begin_ms, part.end_ms, part.fault.role.pick) for part in deployment] == [
        (0, 500, 0), (1_000, 1_500, 1), (2_000, 2_500, 2),
    ]  # fmt: skip
    cuts = [scenario.parts(scene)[0] for scenario in FAMILIES["instance-cut"].scenarios]
    assert [(part.end_ms, str(part.fault.broker)) for part in cuts if isinstance(part.fault, InstanceCut)] == [
        (9_000, "the group's coordinator"),
        (15_000, "a transaction coordinator"),
        (timings.unanswered_ms, "the leader of partition 0"),
    ]
