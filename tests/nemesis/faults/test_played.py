"""Faults that a player plays, and what they do: clean stops, wrong clocks, slow links, held messages."""

import pytest

from nemesis.cluster import CLIENTS, Link
from nemesis.faults import ClockStep, HoldConnections, Kill, Partition, SlowLink, Stop
from nemesis.player import Player
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault
from nemesis.topology import Shape

LEADER = Role(RoleKind.LEADER, 0)
HOUR_MS = 3_600_000


@pytest.fixture
def play(make_world):
    def start(*faults, until_ms):
        world = make_world()
        steps = tuple(
            ScheduledFault(begin_ms=begin_ms, end_ms=end_ms, group=0, family="any", scenario="any", fault=fault)
            for begin_ms, end_ms, fault in faults
        )
        schedule = Schedule(steps=steps, healed_ms=10_000)
        player = Player(schedule, world.target, world.clock, dead_brokers_max=2, witness=lambda receipt: None)
        player.start()
        world.drive(lambda: False, until_ms * 1000)
        return world.cluster.calls, player.receipts

    return start


def test_a_stopped_broker_is_started_again_at_the_end(play):
    calls, (receipt,) = play((100, 200, Stop(LEADER)), until_ms=300)
    assert calls == [("stop", (0,)), ("restart", 0)]
    assert receipt.fault == "stop"


def test_a_clock_is_set_right_at_the_end(play):
    calls, (receipt,) = play((100, 200, ClockStep(LEADER, HOUR_MS)), until_ms=300)
    assert calls == [("set", (0, HOUR_MS)), ("set", (0, 0))]
    assert (receipt.fault, receipt.targets) == ("clockstep", (0,))


def test_links_are_slow_where_a_partition_of_the_shape_would_cut(play):
    calls, (receipt,) = play((100, 200, SlowLink(LEADER, Shape.NO_FETCH)), until_ms=300)
    links = (Link(1, 0), Link(2, 0))
    assert calls == [("slow", (links,)), ("restore", (links,))]
    assert (receipt.fault, receipt.shape, receipt.links) == ("slowlink", Shape.NO_FETCH, links)


def test_a_cut_that_lasts_does_not_keep_a_link_slow(play):
    slow, cut = SlowLink(LEADER, Shape.NO_FETCH), Partition(LEADER, Shape.NO_FETCH)
    calls, _ = play((100, 200, slow), (150, 900, cut), until_ms=300)
    assert ("restore", ((Link(1, 0), Link(2, 0)),)) in calls
    assert not [call for call in calls if call[0] == "heal"]


def test_stops_count_against_the_budget_and_slow_links_do_not():
    assert (Stop.stops_brokers, Kill.stops_brokers) == (True, True)
    assert (SlowLink.stops_brokers, ClockStep.stops_brokers) == (False, False)


def test_connections_are_held_where_a_partition_of_the_shape_would_cut_and_delivered_at_the_end(play):
    coordinator = Role(RoleKind.TRANSACTION_COORDINATOR)
    calls, (receipt, skipped) = play(
        (100, 200, HoldConnections(LEADER, Shape.FROM_CLIENTS)),
        (150, 250, HoldConnections(coordinator, Shape.FROM_CLIENTS)),
        until_ms=300,
    )
    links = (Link(0, CLIENTS), Link(CLIENTS, 0))
    assert calls == [("hold", (links,)), ("deliver", links)]
    assert (receipt.fault, receipt.links, receipt.took_effect) == ("holdconnections", links, True)
    assert (skipped.mark, skipped.reason) == ("skipped", "a transaction coordinator does not exist now")
