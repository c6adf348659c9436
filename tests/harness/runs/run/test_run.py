import random

import msgspec
import pytest

from harness.ground.errors import StartError
from harness.plan import RunSpec, Simulated, timings_of
from harness.runs.phases import unhealthy
from harness.runs.run import perform_schedule, planned
from nemesis.cluster import ClusterView, PartitionView
from nemesis.plan import FaultPlan
from workloads.operations import NEMESIS, EventType, Function
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

TOPIC_PARTITIONS = ("ackproof-0", "ackproof-1", "ackproof-2")


def spec(families=("kill",), *, count=2, duration_ms=6_000, drain_limit_ms=4_000, **settings):
    return RunSpec(
        world=Simulated(),
        cell="acks=all,isr=1,unclean=false/kill",
        family="+".join(families),
        settings=Settings(**settings).to_mapping(),
        workload=WorkloadPlan(duration_ms=duration_ms, drain_limit_ms=drain_limit_ms),
        faults=FaultPlan(families=families, count=count),
        seed=1,
    )


def chance(seed=1):
    source = random.Random(seed)
    return lambda label, bound: source.randrange(bound)


@pytest.fixture
def world(make_world):
    return make_world(partitions=TOPIC_PARTITIONS)


def phases(events):
    return [msgspec.json.decode(event.detail)["mark"] for event in events.of(Function.PHASE)]


def times_of(events):
    return {msgspec.json.decode(event.detail)["mark"]: event.time_us for event in events.of(Function.PHASE)}


def test_a_run_breaks_heals_drains_and_closes(world, events):
    report = perform_schedule(spec(), world, events, chance())
    assert phases(events) == ["break", "heal", "drain", "end"]
    assert report.drained
    assert report.unhealthy == {}
    assert (world.opened, world.closed) == (1, 1)
    assert [event.type for event in events.of(Function.DRAIN)] == [EventType.OK] * 3


def test_everything_acknowledged_is_read_by_the_final_readers(world, events):
    report = perform_schedule(spec(), world, events, chance())
    final = {event.process for event in events.of(Function.DRAIN)}
    read = {
        record.value
        for event in events.of(Function.POLL, EventType.OK)
        if event.process in final
        for records in event.micro[0].records.values()
        for record in records
    }
    acknowledged = {event.micro[0].value for event in events.of(Function.SEND, EventType.OK)}
    assert read == acknowledged
    assert len(acknowledged) == report.sends.acknowledged > 500


def test_time_never_goes_back_in_a_history(world, events):
    perform_schedule(spec(("kill", "partition")), world, events, chance())
    times_us = [event.time_us for event in events.events]
    assert times_us == sorted(times_us)


def test_faults_stand_in_the_history_with_their_receipts(world, events):
    report = perform_schedule(
        spec(("kill", "pause", "partition"), count=5, duration_ms=15_000), world, events, chance()
    )
    faults = events.of(Function.FAULT)
    assert {event.process for event in faults} == {NEMESIS}
    details = [msgspec.json.decode(event.detail) for event in faults]
    assert len([detail for detail in details if detail["mark"] == "begin"]) == len(report.faults) >= 4
    assert all(detail["took_effect"] for detail in details if detail["mark"] == "end")


def test_no_fault_lasts_beyond_the_break_phase(world, events):
    report = perform_schedule(spec(("pause",)), world, events, chance())
    assert max(receipt.ended_us for receipt in report.faults) <= times_of(events)["heal"]
    assert world.cluster.dead == world.cluster.frozen == world.cluster.links == set()


def test_writing_goes_on_after_healing_until_every_partition_acknowledged(world, events):
    report = perform_schedule(spec(), world, events, chance())
    after = {
        event.micro[0].partition
        for event in events.of(Function.SEND, EventType.OK)
        if event.time_us >= times_of(events)["heal"]
    }
    assert after == set(TOPIC_PARTITIONS)
    assert report.healed_us <= report.recovered_us <= report.healed_us + 200_000


def test_a_cluster_without_an_active_controller_has_not_recovered(world, events):
    world.clock.call_at(5_000_000, lambda: setattr(world.cluster, "controller_active", False))
    world.clock.call_at(7_500_000, lambda: setattr(world.cluster, "controller_active", True))
    report = perform_schedule(spec(duration_ms=6_000), world, events, chance())
    assert report.healed_us < 7_500_000 <= report.recovered_us < 7_600_000


def begins_us(report):
    """The begin of the schedule, by its first fault."""
    return report.faults[0].begun_us - report.schedule.steps[0].begin_ms * 1000


def test_faults_wait_for_a_cluster_that_is_well_and_has_acknowledged_something_everywhere(world, events):
    world.cluster.never_in_sync = {"ackproof-1": {2}}
    world.clock.call_at(3_000_000, world.cluster.never_in_sync.clear)
    report = perform_schedule(spec(duration_ms=6_000), world, events, chance())
    assert 3_000_000 <= begins_us(report) < 3_100_000
    assert times_of(events)["heal"] == begins_us(report) + 6_000_000
    written = {e.micro[0].partition for e in events.of(Function.SEND, EventType.OK) if e.time_us < begins_us(report)}
    assert written == set(TOPIC_PARTITIONS)


def test_faults_begin_in_the_end_where_nothing_is_ever_acknowledged(world, events):
    world.clients.silent_sends = True
    report = perform_schedule(spec(duration_ms=6_000), world, events, chance())
    assert 15_000_000 <= begins_us(report) < 15_100_000
    assert report.faults


def slow_kills(world, takes_us):
    quick = world.cluster.kill

    def slow(node):
        world.clock.time_us += takes_us
        return quick(node)

    world.cluster.kill = slow


@pytest.mark.parametrize("takes_us", [700_000, 5_000_000])
def test_faults_that_take_their_time_make_the_break_phase_longer(world, events, takes_us):
    slow_kills(world, takes_us)
    report = perform_schedule(spec(count=6, duration_ms=12_000), world, events, chance())
    kills = [receipt for receipt in report.faults if receipt.fault == "kill"]
    assert len(kills) >= 2
    assert len(report.faults) == len(report.schedule.steps), "also those that became due in what was added"
    assert times_of(events)["heal"] == begins_us(report) + 12_000_000 + takes_us * len(kills)


def test_the_break_phase_becomes_no_longer_than_a_minute_more(world, events):
    slow_kills(world, 50_000_000)
    report = perform_schedule(spec(count=6, duration_ms=12_000), world, events, chance())
    assert {receipt.mark for receipt in report.faults} == {"end", "skipped"}
    assert len(report.faults) == len(report.schedule.steps)
    assert 72_000_000 <= report.healed_us - times_of(events)["break"] < 72_000_000 + 50_000_000


def test_nothing_is_sent_while_draining(world, events):
    perform_schedule(spec(), world, events, chance())
    assert not [e for e in events.of(Function.SEND) if e.time_us > times_of(events)["drain"]]


def test_a_cluster_that_never_recovers_is_given_up_in_time_and_proves_nothing(world, events):
    world.cluster.never_in_sync = {"ackproof-1": {2}}
    run_spec = spec(drain_limit_ms=4_000)
    report = perform_schedule(run_spec, world, events, chance())
    assert report.recovered_us is None
    assert report.unhealthy == {"ackproof-1": "not in its ISR: broker 2"}
    assert not report.drained
    types = {event.partitions[0]: event.type for event in events.of(Function.DRAIN)}
    assert types == {"ackproof-0": EventType.OK, "ackproof-1": EventType.INFO, "ackproof-2": EventType.OK}
    assert report.ended_us - report.healed_us < run_spec.workload.ending_limit_ms * 1000 + 1_000_000


def test_a_send_that_is_never_answered_ends_as_unknown_when_its_client_is_closed(world, events):
    world.clients.silent_sends = True
    report = perform_schedule(spec(), world, events, chance())
    assert report.sends.unknown == report.sends.attempted > 0
    assert report.sends.acknowledged == 0
    assert phases(events)[-1] == "end"


def test_every_operation_is_completed_at_the_end(world, events):
    perform_schedule(spec(("partition",)), world, events, chance())
    completions = {EventType.OK, EventType.FAIL, EventType.INFO}
    for function in (Function.SEND, Function.POLL):
        assert len(events.of(function, EventType.INVOKE)) == len(events.of(function, *completions))


@pytest.mark.parametrize("method", ["open", "drive"])
def test_the_world_is_closed_whatever_happens(world, events, monkeypatch, method):
    def fail(*_):
        raise StartError("broker 1 did not start; read logs/broker-1.log")

    monkeypatch.setattr(world, method, fail)
    with pytest.raises(StartError):
        perform_schedule(spec(), world, events, chance())
    assert world.closed == 1


def test_schedules_follow_the_settings_of_the_run():
    settings = Settings(broker_session_timeout_ms=700, replica_lag_time_max_ms=900)
    assert (timings_of(settings).session_ms, timings_of(settings).lag_ms) == (700, 900)


def test_the_same_seed_plans_the_same_faults():
    assert planned(spec(), chance(5)) == planned(spec(), chance(5))


@pytest.mark.parametrize(
    ("state", "running", "lack"),
    [
        (PartitionView(0, 1, (0, 1), (0, 1)), (0, 1), None),
        (PartitionView(None, 1, (0,), (0, 1)), (0, 1), "it has no leader"),
        (PartitionView(0, 1, (0, 1), (0, 1)), (1,), "its leader, broker 0, does not run"),
        (PartitionView(0, 1, (0,), (0, 1)), (0, 1), "not in its ISR: broker 1"),
        (None, (0, 1), "the controller does not know it"),
    ],
)
def test_health_says_what_a_partition_lacks(state, running, lack):
    view = ClusterView({"t-0": state} if state else {}, running, (0, 1))
    assert unhealthy(view, ["t-0"]).get("t-0") == lack
