"""Faults of single messages."""

import pytest

from nemesis.cluster import CONTROLLER, Capability, Link
from nemesis.faults import DelayMessages, DropMessages, HoldMessages
from nemesis.player import Player
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import FAMILIES
from nemesis.schedule import Schedule, ScheduledFault
from nemesis.topology import Shape

LEADER = Role(RoleKind.LEADER, 0)
TO_CONTROLLER = (Link(0, CONTROLLER),)


@pytest.fixture
def play(make_world):
    def start(*faults, lacks=None):
        world = make_world(lacks=lacks)
        steps = tuple(
            ScheduledFault(begin_ms=100 * (1 + number), end_ms=500, group=0, family="f", scenario="s", fault=fault)
            for number, fault in enumerate(faults)
        )
        schedule = Schedule(steps=steps, healed_ms=900)
        player = Player(schedule, world.target, world.clock, dead_brokers_max=0, witness=lambda _: None)
        player.start()
        world.drive(lambda: False, 600_000)
        return world.cluster.calls, player.receipts

    return start


def test_messages_are_held_on_the_links_of_a_shape_and_released_at_the_end(play):
    calls, (receipt,) = play(HoldMessages(LEADER, Shape.NO_HEARTBEAT, "AlterPartition"))
    assert calls == [
        ("hold", (TO_CONTROLLER, "AlterPartition")),
        ("release", (TO_CONTROLLER, "hold", "AlterPartition")),
    ]
    assert (receipt.fault, receipt.links, receipt.took_effect) == ("holdmessages", TO_CONTROLLER, True)


def test_of_messages_that_are_delayed_the_first_is_released_at_the_end(play):
    calls, (receipt,) = play(DelayMessages(LEADER, Shape.NO_HEARTBEAT, "AlterPartition"))
    assert calls == [
        ("delay", (TO_CONTROLLER, "AlterPartition")),
        ("release", (TO_CONTROLLER, "delay", "AlterPartition")),
    ]
    assert (receipt.fault, receipt.took_effect) == ("delaymessages", True)


def test_messages_that_are_dropped_are_so_until_the_end(play):
    calls, _ = play(DropMessages(LEADER, Shape.NO_HEARTBEAT))
    assert calls == [("drop", (TO_CONTROLLER, "")), ("release", (TO_CONTROLLER, "drop", ""))]


def test_a_link_that_two_faults_hold_is_released_with_the_second(play):
    calls, _ = play(HoldMessages(LEADER, Shape.NO_HEARTBEAT), HoldMessages(LEADER, Shape.NO_HEARTBEAT))
    assert [links for what, (links, *_) in calls if what == "release"] == [(), TO_CONTROLLER]


def test_holds_of_different_messages_and_drops_on_one_link_end_each_by_themselves(play):
    kinds = (HoldMessages, "Fetch"), (HoldMessages, "Produce"), (DropMessages, "Fetch"), (HoldMessages, "Fetch")
    calls, _ = play(*(kind(LEADER, Shape.NO_HEARTBEAT, api) for kind, api in kinds))
    assert [whom for what, whom in calls if what == "release"] == [
        ((), "hold", "Fetch"),
        (TO_CONTROLLER, "hold", "Produce"),
        (TO_CONTROLLER, "drop", "Fetch"),
        (TO_CONTROLLER, "hold", "Fetch"),
    ]


def test_where_messages_cannot_be_held_the_fault_is_skipped(play):
    calls, (receipt,) = play(HoldMessages(LEADER, Shape.MUTE), lacks={Capability.MESSAGES: "no links to hold"})
    assert (calls, receipt.mark, receipt.reason) == ([], "skipped", "no links to hold")


def test_a_late_change_of_the_isr_is_on_request_and_never_drawn():
    family = FAMILIES["partition"]
    assert "isr-change-late" in {scenario.name for scenario in family.on_request}
    assert "isr-change-late" not in {scenario.name for scenario in family.scenarios}
