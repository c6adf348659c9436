"""The schedules against the reference broker: they make weak settings lose, and find nothing in strong ones."""

from functools import cache

import pytest

from harness.ground.choices import Choices
from harness.plan import RunSpec, Simulated
from harness.runs.run import perform_schedule
from harness.worlds.simulated.world import SimulatedWorld
from nemesis.plan import FaultPlan
from workloads.operations import EventType, Function
from workloads.plan import WorkloadPlan
from workloads.settings import ACKS_ALL, Settings

#: Many of these look at the same runs, which one worker keeps.
pytestmark = pytest.mark.xdist_group("virtual-time")
FAMILIES = ("kill", "pause", "partition")
SEEDS = range(2)


class Events:
    def __init__(self):
        self.events = []

    def record(self, event):
        self.events.append(event)


def perform(family, seed, settings, log_dirs=1, **faults):
    spec = RunSpec(
        world=Simulated(),
        cell=family,
        family=family,
        settings=settings.to_mapping(),
        workload=WorkloadPlan(writes_per_second=20.0, duration_ms=15_000),
        faults=FaultPlan(families=(family,), count=4, **faults),
        seed=seed,
        log_dirs=log_dirs,
    )
    choices, recorder = Choices(seed), Events()
    return perform_schedule(spec, SimulatedWorld(spec, choices), recorder, choices.draw), recorder.events


def lost_writes(events):
    """Acknowledged values that the final readers, all at the log's end, did not read."""
    final = {event.process for event in events if event.function is Function.DRAIN}
    acknowledged = {
        event.micro[0].value for event in events if event.function is Function.SEND and event.type is EventType.OK
    }
    read = {
        record.value
        for event in events
        if event.process in final and event.function is Function.POLL and event.type is EventType.OK
        for records in event.micro[0].records.values()
        for record in records
    }
    return acknowledged - read


@cache
def lost_in(family, seed, **settings):
    report, events = perform(family, seed, Settings(**settings))
    assert report.drained, report.unhealthy
    assert report.sends.acknowledged > 200
    return len(lost_writes(events))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("acks", [0, 1])
@pytest.mark.parametrize("min_isr", [1, 2])
def test_every_schedule_makes_weak_acknowledgements_lose(family, acks, min_isr):
    assert all(lost_in(family, seed, acks=acks, min_insync_replicas=min_isr) for seed in SEEDS)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("min_isr", [1, 2])
def test_no_schedule_makes_all_in_sync_replicas_lose_under_clean_elections(family, min_isr):
    assert [lost_in(family, seed, acks=ACKS_ALL, min_insync_replicas=min_isr) for seed in SEEDS] == [0] * len(SEEDS)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_unclean_election_loses_what_the_last_in_sync_replica_promised(family):
    assert any(lost_in(family, seed, acks=ACKS_ALL, unclean_leader_election_enable=True) for seed in range(12))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_fault_that_was_possible_took_effect(family):
    report, _ = perform(family, 0, Settings(acks=ACKS_ALL, min_insync_replicas=2))
    fired = [receipt for receipt in report.faults if receipt.mark != "skipped"]
    assert len(fired) >= 3
    assert all(receipt.took_effect for receipt in fired)


@pytest.mark.parametrize("min_isr", [1, 2])
def test_loss_of_power_takes_what_all_in_sync_replicas_had_only_in_memory(min_isr):
    assert all(lost_in("power", seed, acks=ACKS_ALL, min_insync_replicas=min_isr) for seed in SEEDS)


@pytest.mark.parametrize("min_isr", [1, 2])
def test_loss_of_power_takes_nothing_that_was_flushed_before_it_was_acknowledged(min_isr):
    settings = {"acks": ACKS_ALL, "min_insync_replicas": min_isr, "flush_messages": 1}
    assert [lost_in("power", seed, **settings) for seed in SEEDS] == [0] * len(SEEDS)


def test_all_brokers_without_power_at_once_lose_or_keep_by_flush_messages():
    for flush_messages, loses in ((2**63 - 1, True), (1, False)):
        settings = Settings(acks=ACKS_ALL, min_insync_replicas=2, flush_messages=flush_messages)
        performed = [perform("power", seed, settings, dead_brokers_max=3) for seed in range(4)]
        assert any(
            receipt.story == "everybody" and receipt.took_effect for run, _ in performed for receipt in run.faults
        )
        assert any(lost_writes(events) for _, events in performed) is loses


def test_a_dead_leader_is_seen_to_be_replaced():
    report, _ = perform("kill", 0, Settings())
    kill = next(receipt for receipt in report.faults if receipt.fault == "kill")
    assert any("leader" in change for change in kill.moved.values())


def test_the_same_seed_gives_the_same_events():
    assert perform("partition", 5, Settings(acks=1)) == perform("partition", 5, Settings(acks=1))
