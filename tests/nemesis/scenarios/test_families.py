"""Scenarios chosen by name, and what the scenarios of several families are for."""

import hashlib
import itertools
import random

import msgspec
import pytest

from nemesis.faults import FAULTS, Fault, Partition, Stop
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES, Timings, is_strike, scenarios_named, strikes_of
from nemesis.schedule import draw_schedule
from nemesis.topology import Shape


def drawn(seed, *, duration_ms=120_000, **plan):
    chance = random.Random(seed)
    return draw_schedule(
        FaultPlan(**plan),
        timings=Timings(),
        brokers=3,
        partitions=3,
        duration_ms=duration_ms,
        draw=lambda label, bound: chance.randrange(bound),
    )


def shown(schedule):
    return [
        scenario for _, scenario in sorted({(step.group, f"{step.family}/{step.scenario}") for step in schedule.steps})
    ]


@pytest.mark.parametrize(
    ("families", "digest"),
    [
        ("kill", "67cdef6409355d36"),
        ("pause", "1838a9fe10bc317e"),
        ("partition", "a5de0b92ed8db86a"),
        ("restart", "a59469d95309d4f5"),
        ("power", "5177203a9107301e"),
        ("kill+pause+partition", "debdc625a5bc74c4"),
    ],
)
def test_the_schedules_of_a_seed_never_change(families, digest):
    """A seed in a report must give the same faults again after the program has learned new scenarios."""
    plan = {"families": tuple(families.split("+")), "count": 20, "dead_brokers_max": 3}
    schedules = b"".join(msgspec.json.encode(drawn(seed, **plan)) for seed in range(5))
    assert hashlib.sha256(schedules).hexdigest()[:16] == digest


def test_chosen_scenarios_are_performed_in_their_order_whatever_chance_says():
    chosen = ("S06", "kill/bounce-in-turn", "S12", "S01")
    for seed in range(5):
        schedule = drawn(seed, families=("kill",), scenarios=chosen, count=1, dead_brokers_max=3)
        names = ["kill/last-in-sync", "kill/bounce-in-turn", "kill/everybody", "kill/leader-ahead"]
        assert shown(schedule) == names


def test_chosen_scenarios_are_performed_again_until_there_are_enough_faults():
    schedule = drawn(1, families=("partition",), scenarios=("S21", "S22"), count=5)
    assert shown(schedule) == ["partition/write-parked", "partition/reply-lost"] * 2 + ["partition/write-parked"]


def test_a_family_is_about_the_faults_of_each_of_its_scenarios_not_about_what_prepares_for_them():
    two = {
        "controller": {"kill", "pause"},
        "coordinator": {"kill", "pause"},
        "transaction-coordinator": {"kill", "pause"},
        "lying-disk": {"lyingdisk", "powerloss"},
        "rack": {"kill", "partition", "powerloss"},
        "instance-scale": {"instanceadd", "instancestop"},
        "storm": {"kill", "pause", "partition", "moveleader"},
    }
    assert {family: len(strikes_of(family)) for family in FAMILIES if family not in two} == dict.fromkeys(
        [family for family in FAMILIES if family not in two], 1
    )
    named = {"kill": "kill", "restart": "kill", "power": "powerloss", "wipe": "wipedisk", "move": "moveleader"}
    assert {family: strikes_of(family) for family in named} == {name: {kind} for name, kind in named.items()}
    assert {family: strikes_of(family) for family in two} == two
    assert strikes_of("of another version") == frozenset()


def test_a_node_that_is_replaced_is_what_the_family_of_upgrades_is_about_one_that_only_joins_is_not():
    kinds = ("upgrade", "replace", "leave", "join", "finalize", "kill", "of another version")
    assert [kind for kind in kinds if is_strike("upgrade", kind)] == ["upgrade", "replace"]
    assert [kind for kind in kinds if is_strike("kill", kind)] == ["kill"]
    assert not is_strike("of another version", "kill")


def test_a_number_is_told_by_every_family_that_has_it():
    assert {family for family, _ in scenarios_named("S03", FAMILIES)} == {"move", "reassign", "rolling"}
    schedule = drawn(1, families=("kill", "restart"), scenarios=("S31",), count=1)
    assert shown(schedule) == ["kill/bounce-in-turn", "restart/bounce-in-turn"]


def test_a_chosen_scenario_above_the_budget_is_not_performed():
    assert drawn(1, families=("kill",), scenarios=("S12",), dead_brokers_max=2).steps == ()


def test_no_two_scenarios_of_a_family_have_the_same_name():
    for family in FAMILIES.values():
        names = [name for scenario in family.every_scenario for name in family.names(scenario)]
        assert len(names) == len(set(names))


def test_a_leader_that_is_stopped_is_cut_off_until_its_successor_leads():
    """Or its followers would fetch, while it takes its time to stop, what they are to lack."""
    cut, stop = drawn(2, families=("rolling",), scenarios=("rolling/leader-ahead",), count=1).steps
    assert isinstance(cut.fault, Partition)
    assert isinstance(stop.fault, Stop)
    assert cut.end_ms - stop.begin_ms == Timings().fence_ms
    assert stop.begin_ms - cut.begin_ms < Timings().lag_ms


def test_a_rolling_restart_stops_every_broker_once_and_never_two():
    for scenario in ("rolling/one-after-the-other", "rolling/in-haste"):
        steps = drawn(3, families=("rolling",), scenarios=(scenario,), count=1, dead_brokers_max=1).steps
        assert sorted(step.fault.role.pick for step in steps) == [0, 1, 2]
        assert all(earlier.end_ms < later.begin_ms for earlier, later in itertools.pairwise(steps))


def test_a_broker_is_away_for_longer_than_a_tombstone_stays_and_then_leads():
    away, *moves = drawn(6, families=("away",), count=1).steps
    assert away.end_ms - away.begin_ms > Timings().retention_ms
    assert {move.fault.role.partition for move in moves} == {0, 1, 2}
    assert {move.fault.role.pick for move in moves} == {away.fault.role.pick}
    assert min(move.begin_ms for move in moves) > away.end_ms


def test_a_reply_is_lost_for_longer_than_its_client_waits():
    (cut,) = drawn(4, families=("partition",), scenarios=("S22",), count=1).steps
    assert cut.fault.shape is Shape.MUTE_TO_CLIENTS
    assert cut.end_ms - cut.begin_ms > Timings().request_ms


@pytest.mark.parametrize("scenario", ["outage/two-killed-while-third-lags", "outage/two-frozen-while-third-lags"])
def test_an_outage_leaves_one_replica_that_lags_and_is_still_in_sync(scenario):
    cut, *stopped = drawn(5, families=("outage",), scenarios=(scenario,), count=1).steps
    assert cut.fault.shape is Shape.FROM_BROKERS
    assert cut.fault.role.kind == "follower"
    assert {step.fault.role.kind for step in stopped} == {"leader", "follower"}
    [other] = [step.fault.role for step in stopped if step.fault.role.kind == "follower"]
    assert other.pick % 2 != cut.fault.role.pick % 2
    assert all(cut.begin_ms < step.begin_ms < cut.end_ms for step in stopped)
    assert stopped[0].begin_ms - cut.begin_ms < Timings().lag_ms


#: Faults that no scenario has, and why.
ALONE = {
    **dict.fromkeys(("dropmessages", "delaymessages"), "the storms of hunts draw it; scripts and schedules name it"),
    "finalize": "the last step of an upgrade",
    **dict.fromkeys(("leave", "replace", "join"), "a step of an upgrade in which nodes are replaced"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_in_a_scenario_of_its_family_or_says_why_not(fault: type[Fault]) -> None:
    """A fault without ``hits`` that is in no scenario is never drawn, and cannot be chosen by name either."""
    family = FAMILIES[fault.family]
    begun = {type(begun) for scenario in (*family.scenarios, *family.on_request) for begun in scenario.faults()}
    assert (fault in begun) != (fault.kind in ALONE)
