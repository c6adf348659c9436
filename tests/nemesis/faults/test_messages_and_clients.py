"""Faults of single messages, and the seam for faults of the workload's own clients."""

from typing import ClassVar

import pytest

from nemesis.cluster import CLIENTS, CONTROLLER, Capability, Link, present
from nemesis.faults import DropMessages, HoldMessages
from nemesis.faults.fault import Aim, NodeFault
from nemesis.player import Player
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import FAMILIES
from nemesis.scenarios.shapes import family_of
from nemesis.schedule import Schedule, Step
from nemesis.topology import Shape

LEADER = Role(RoleKind.LEADER, 0)
TO_CONTROLLER = (Link(0, CONTROLLER),)


class Crash(NodeFault, frozen=True):
    """A fault as somebody may add one: a file with nothing but this."""

    kind: ClassVar[str] = "crash"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.CLIENTS,)
    family: ClassVar[str] = "client-crash"
    hits: ClassVar[tuple[RoleKind, ...]] = (RoleKind.PRODUCER,)

    def hit(self, target, aim, node):
        return present(target.clients).crash_producer(self.role.pick)

    def undo(self, target, aim, node):
        return {}


@pytest.fixture
def play(make_world):
    def start(*faults, lacks=None):
        world = make_world(lacks=lacks)
        steps = tuple(
            Step(begin_ms=100 * (1 + place), end_ms=500, group=0, family="f", story="s", fault=fault)
            for place, fault in enumerate(faults)
        )
        schedule = Schedule(steps=steps, healed_ms=900)
        player = Player(schedule, world.target, world.clock, dead_brokers_max=0, witness=lambda _: None)
        player.start()
        world.drive(lambda: False, 600_000)
        return world.cluster.calls, player.receipts

    return start


def test_messages_are_held_on_the_links_of_a_shape_and_released_at_the_end(play):
    calls, (receipt,) = play(HoldMessages(LEADER, Shape.NO_HEARTBEAT, "AlterPartition"))
    assert calls == [("hold", (TO_CONTROLLER, "AlterPartition")), ("release", (TO_CONTROLLER,))]
    assert (receipt.fault, receipt.links, receipt.took_effect) == ("holdmessages", TO_CONTROLLER, True)


def test_messages_that_are_dropped_are_so_until_the_end(play):
    calls, _ = play(DropMessages(LEADER, Shape.NO_HEARTBEAT))
    assert calls == [("drop", (TO_CONTROLLER, "")), ("release", (TO_CONTROLLER,))]


def test_a_link_that_two_faults_hold_is_released_with_the_second(play):
    calls, _ = play(HoldMessages(LEADER, Shape.NO_HEARTBEAT), DropMessages(LEADER, Shape.NO_HEARTBEAT))
    assert [links for what, (links, *_) in calls if what == "release"] == [(), TO_CONTROLLER]


def test_where_messages_cannot_be_held_the_fault_is_skipped(play):
    calls, (receipt,) = play(HoldMessages(LEADER, Shape.MUTE), lacks={Capability.MESSAGES: "no links to hold"})
    assert (calls, receipt.mark, receipt.reason) == ([], "skipped", "no links to hold")


def test_a_producer_is_hit_by_the_pick_of_its_role(play):
    calls, (receipt,) = play(Crash(Role(RoleKind.PRODUCER, pick=7)))
    assert calls == [("crash_producer", (7,))]
    assert (receipt.role, receipt.targets, receipt.took_effect) == ("a producer", (CLIENTS,), True)


def test_a_fault_with_a_family_of_its_own_needs_no_script():
    family = family_of(Crash)
    assert (family.name, [story.name for story in family.stories]) == ("client-crash", ["producer"])
    assert family.needs() == {Capability.CLIENTS}


def test_aiming_at_a_producer_asks_nothing_of_the_cluster(make_world):
    world = make_world()
    world.cluster.dead = {0, 1, 2}
    assert Crash(Role(RoleKind.PRODUCER)).aim(world.target.view()) == Aim(nodes=(CLIENTS,))


def test_a_late_change_of_the_isr_is_scripted_and_never_drawn():
    family = FAMILIES["partition"]
    assert "isr-change-late" in {story.name for story in family.scripted}
    assert "isr-change-late" not in {story.name for story in family.stories}
