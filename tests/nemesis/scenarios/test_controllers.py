"""The controller as a target: it is no broker, so it has no part in the budget of dead brokers."""

import random

import pytest

from nemesis.cluster import CONTROLLER, ClusterView
from nemesis.faults import Aim, Kill
from nemesis.plan import FaultPlan
from nemesis.player import Player
from nemesis.receipts import effect_shown
from nemesis.scenarios import Timings
from nemesis.scenarios.controller import ACTIVE
from nemesis.schedule import Schedule, ScheduledFault, draw_schedule


def play(world, *faults, dead_brokers_max=0):
    steps = tuple(
        ScheduledFault(begin_ms=100, end_ms=200, group=0, family="controller", scenario="gone", fault=fault)
        for fault in faults
    )
    player = Player(
        Schedule(steps=steps, healed_ms=1_000),
        world.target,
        world.clock,
        dead_brokers_max=dead_brokers_max,
        witness=lambda _: None,
    )
    player.start()
    return player


def test_the_active_controller_dies_outside_the_budget_of_dead_brokers_and_returns(make_world):
    world = make_world()
    player = play(world, Kill(ACTIVE))
    world.drive(lambda: False, 150_000)
    assert world.cluster.dead == {CONTROLLER}
    world.drive(lambda: False, 250_000)
    assert world.cluster.dead == set()
    assert [(receipt.targets, receipt.took_effect) for receipt in player.receipts] == [((CONTROLLER,), True)]


def test_a_controller_that_is_dead_cannot_be_killed_again(make_world):
    world = make_world()
    player = play(world, Kill(ACTIVE), Kill(ACTIVE))
    world.drive(lambda: False, 150_000)
    assert [receipt.reason for receipt in player.receipts][
        1
    ] == "the active controller (controller 100) does not run now"


def test_a_controller_that_died_by_itself_is_started_when_all_is_healed(make_world):
    world = make_world()
    player = play(world)
    world.cluster.dead = {CONTROLLER}
    player.heal_all()
    assert world.cluster.dead == set()


def test_the_active_one_of_several_is_meant():
    view = ClusterView({}, (0,), (0,), controllers=(102, 100, 101), running_controllers=(101, 102))
    assert Kill(ACTIVE).aim(view) == Aim(nodes=(102,))
    assert effect_shown(Aim(nodes=(102,)), {"100": {}}) == (False, "nothing was observed of controller 102")


@pytest.mark.parametrize("seed", range(5))
def test_a_controllers_death_needs_no_budget_and_a_leaders_does(seed):
    chance = random.Random(seed)

    def scenarios(dead_brokers_max):
        schedule = draw_schedule(
            FaultPlan(families=("controller",), count=20, dead_brokers_max=dead_brokers_max),
            timings=Timings(),
            brokers=3,
            partitions=3,
            duration_ms=200_000,
            draw=lambda _, bound: chance.randrange(bound),
        )
        return {step.scenario for step in schedule.steps}

    assert scenarios(0) == {"gone", "frozen"}
    assert scenarios(1) == {"gone", "frozen", "with-the-leader", "after-the-leader"}
