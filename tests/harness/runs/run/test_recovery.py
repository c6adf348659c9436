"""Whole runs whose clients or whose log do not come back: which of the two it was stands in the history."""

from functools import partial
from pathlib import Path

import msgspec
import pytest

from checkers import check_one, judge
from harness.plan import Processes
from harness.records.files import HISTORY
from harness.runs.phases.missing_nodes import missing_nodes
from harness.runs.run import perform_schedule
from harness.runs.run.performing import perform_run
from nemesis.cluster import ClusterView, PartitionView
from nemesis.plan import FaultPlan
from tests.checkers.in_memory import judge_events
from tests.harness.runs.run.test_run import TOPIC_PARTITIONS, chance, spec
from workloads import FreshWrites, PollOutcome, Retirement, SendOutcome, Settings
from workloads.operations import EventType, Function

DEAD_US = 4_000_000


@pytest.fixture
def world(make_world):
    return make_world(partitions=TOPIC_PARTITIONS)


def run(world, events, *, duration_ms=40_000, drain_limit_ms=20_000, **settings):
    run_spec = msgspec.structs.replace(
        spec(duration_ms=duration_ms, drain_limit_ms=drain_limit_ms, delivery_timeout_ms=2_000, **settings),
        faults=FaultPlan(count=0),
    )
    report = perform_schedule(run_spec, world, events, chance())
    verdict = judge_events(events.events)
    return report, verdict, judge(run_spec.chosen(), verdict)


def fall_silent(world, first=0):
    """From now on the producers that were made so far, from the ``first`` on, get no answer any more."""
    processes = [producer.process for producer in world.clients.producers][first:]
    world.clients.silent |= {(process, name) for process in processes for name in TOPIC_PARTITIONS}


def fresh_writes(events):
    (mark,) = events.of(Function.RECOVERY)
    return msgspec.json.decode(mark.detail, type=FreshWrites)


def test_producers_that_fall_silent_for_good_are_replaced_and_the_workload_goes_on(world, events):
    world.clock.call_at(DEAD_US, partial(fall_silent, world))
    report, verdict, judgement = run(world, events)
    sends = report.sends
    assert sends.acknowledged / (sends.attempted + sends.passed_over) > 0.9
    assert report.recovered_us is not None
    assert (verdict.recovery.tried, verdict.recovery.unwritten, verdict.recovery.unread) == (True, {}, {})
    assert verdict.recovery.retired == 3
    assert judgement.permitted == {"wedged-client": 9}
    assert judgement.broken == {}


def test_producers_that_fall_silent_at_the_end_are_still_tried_before_the_run_is_over(world, events):
    world.clock.call_at(39_500_000, partial(fall_silent, world))
    report, verdict, _ = run(world, events, drain_limit_ms=24_000)
    assert verdict.counts["wedged-client"] == 9
    assert report.ended_us - report.healed_us < 13_000_000


def test_a_run_whose_clients_work_does_not_wait_for_trials(world, events):
    report, verdict, _ = run(world, events)
    assert report.ended_us - report.healed_us < 3_000_000
    assert verdict.recovery.retired == 0
    assert "wedged-client" not in verdict.counts


def test_a_log_that_never_comes_back_though_all_nodes_are_there_is_unwritten_and_lacks_nothing(world, events):
    refused = SendOutcome(EventType.INFO, error="NotEnoughReplicasError")
    stop = partial(setattr, world.clients, "answer_send", lambda name: refused if name == "ackproof-1" else None)
    world.clock.call_at(DEAD_US, stop)
    _, verdict, judgement = run(world, events)
    assert fresh_writes(events).written == ("ackproof-0", "ackproof-2")
    assert verdict.recovery.unwritten == {"ackproof-1": "NotEnoughReplicasError"}
    assert verdict.recovery.lacking == {}
    assert "wedged-client" not in verdict.counts, "new producers fared no better"
    assert judgement.outcome == "stalled"


def test_a_log_partition_that_lacks_a_replica_says_so(world, events):
    world.cluster.never_in_sync = {"ackproof-1": {2}}
    _, verdict, _ = run(world, events, duration_ms=5_000)
    assert verdict.recovery.lacking == {"ackproof-1": "not in its ISR: broker 2"}
    assert verdict.recovery.absent == {}, "broker 2 runs, and does not join"
    assert verdict.recovery.unwritten == {}
    assert verdict.recovery.unread == {}, "it was not read to its end, because it lacked something"


def read_nothing(world, for_us, late_us=900_000):
    """Machine and log are slow from now on: a look is this late each second, and no reader gets a record."""
    until_us = world.clock.now_us() + for_us
    empty = PollOutcome(EventType.OK)
    world.clients.answer_poll = lambda *_: empty if world.clock.now_us() < until_us else None
    world.clock.starve(late_us, every_us=1_000_000)


def test_a_log_that_came_late_on_a_starved_machine_is_not_stalled(world, events):
    world.clock.call_at(4_900_000, partial(read_nothing, world, 20_000_000))
    report, verdict, judgement = run(world, events, duration_ms=5_000)
    assert report.drained
    assert (verdict.recovery.unwritten, verdict.recovery.unread) == ({}, {})
    assert judgement.outcome != "stalled"


@pytest.mark.parametrize(("late_us", "outcome"), [(700_000, "stalled"), (900_000, "unknown")])
def test_a_log_that_never_comes_back_on_a_slow_machine_is_stalled_if_it_had_its_limit_of_served_time(
    world, events, late_us, outcome
):
    world.clock.call_at(4_900_000, partial(read_nothing, world, 10**12, late_us))
    report, verdict, judgement = run(world, events, duration_ms=5_000)
    assert set(verdict.recovery.unread) == set(TOPIC_PARTITIONS)
    assert judgement.outcome == outcome
    assert bool(verdict.recovery.starved) is ("it woke the harness late" in judgement.reason) is (outcome == "unknown")
    assert report.ended_us - report.healed_us < 60_000_000


def test_a_log_that_takes_no_write_while_the_machine_never_serves_is_unknown_and_what_hindered_it_is_said(
    world, events
):
    refused = SendOutcome(EventType.INFO, error="NotEnoughReplicasError")

    def stop():
        world.clients.answer_send = lambda name: refused if name == "ackproof-1" else None
        world.disk_stands_until_us = 10**12

    world.clock.call_at(4_900_000, stop)
    _, verdict, judgement = run(world, events, duration_ms=5_000)
    assert (list(verdict.recovery.unwritten), judgement.stalled) == (["ackproof-1"], {})
    assert judgement.outcome == "unknown"
    assert "in 40.0 of 40.0 s the machine was too slow: its disk stands; run it on a machine" in judgement.reason


@pytest.mark.parametrize(("answer", "outcome"), [(PollOutcome(EventType.OK), "unknown"), (None, "stalled")])
def test_without_acknowledgements_the_machine_must_have_had_time_for_the_reads(world, events, answer, outcome):
    made_up = SendOutcome(EventType.OK)

    def stop():
        world.clients.answer_send = lambda name: made_up if name == "ackproof-1" else None
        world.clients.answer_poll = lambda *_: answer
        world.disk_stands_until_us = 10**12

    world.clock.call_at(4_900_000, stop)
    _, verdict, judgement = run(world, events, duration_ms=5_000, acks=0)
    assert "ackproof-1" in verdict.recovery.unwritten
    assert judgement.outcome == outcome


def test_a_write_that_failed_on_a_machine_that_had_time_is_a_stall_though_it_had_none_for_the_reads(world, events):
    refused = SendOutcome(EventType.INFO, error="NotEnoughReplicasError")
    stop = partial(setattr, world.clients, "answer_send", lambda name: refused if name == "ackproof-1" else None)
    world.clock.call_at(4_900_000, stop)
    begin = world.clients.consumer

    def starve_readers(*args, **more):
        if world.clock.now_us() > 15_000_000:
            world.disk_stands_until_us = 10**12
            world.clients.answer_poll = lambda *_: PollOutcome(EventType.OK)
        return begin(*args, **more)

    world.clients.consumer = starve_readers
    _, verdict, judgement = run(world, events, duration_ms=5_000)
    assert set(verdict.recovery.unread) == set(TOPIC_PARTITIONS)
    assert set(verdict.recovery.starved) == {"ackproof-0", "ackproof-2"}
    assert (judgement.outcome, list(judgement.stalled)) == ("stalled", ["ackproof-1"])


@pytest.mark.parametrize("disk_stands", [True, False])
def test_a_log_is_waited_for_while_the_disk_serves_nobody(world, events, disk_stands):
    comes_back_us = 40_000_000
    refused = SendOutcome(EventType.INFO, error="NotEnoughReplicasError")
    world.disk_stands_until_us = comes_back_us if disk_stands else 0

    def stop():
        world.clients.answer_send = lambda _: refused if world.clock.now_us() < comes_back_us else None

    world.clock.call_at(4_900_000, stop)
    report, _, judgement = run(world, events, duration_ms=5_000)
    assert (judgement.outcome == "stalled") is not disk_stands
    assert (report.ended_us > comes_back_us) is disk_stands


def waited_for(state, running, **settings):
    view = ClusterView({"t-0": state}, running=running, brokers=(0, 1, 2))
    return missing_nodes(view, ["t-0", "t-9"], Settings(**settings))


def led(*isr):
    return PartitionView(leader=isr[0], leader_epoch=1, isr=isr, replicas=(0, 1, 2))


def test_a_log_partition_with_a_leader_waits_for_its_in_sync_replicas_and_no_others():
    assert waited_for(led(0, 1), (0, 1), min_insync_replicas=2) == {}, "broker 2 is not in the ISR"
    assert waited_for(led(0, 1), (0, 2)) == {"t-0": "broker 1 did not run"}


def test_replicas_outside_the_isr_are_waited_for_while_too_few_run_for_the_writes_that_are_asked_for():
    both = {"t-0": "broker 1, broker 2 did not run"}
    assert waited_for(led(0), (0,), min_insync_replicas=2) == both
    assert waited_for(led(0), (0,), min_insync_replicas=2, acks=1) == {}, "acks=1 is not asked"
    assert waited_for(led(0), (0,), min_insync_replicas=2, acks=0) == both, "nobody reads what it takes"
    assert waited_for(led(0), (0, 1), min_insync_replicas=2) == {}, "broker 1 runs, and could join"


def test_a_log_partition_without_a_leader_waits_for_whoever_may_be_elected():
    leaderless = msgspec.structs.replace(led(0), leader=None)
    assert waited_for(leaderless, (1, 2)) == {"t-0": "broker 0 did not run"}
    assert waited_for(leaderless, (0,)) == {}
    eligible = msgspec.structs.replace(leaderless, isr=(), elr=(1,))
    assert waited_for(eligible, (0, 2)) == {"t-0": "broker 1 did not run"}
    nobody = msgspec.structs.replace(leaderless, isr=())
    assert waited_for(nobody, (0, 1)) == {"t-0": "broker 2 did not run"}, "it may be the last known leader"


def test_a_quorum_waits_for_as_many_as_commit_and_elect_and_not_for_its_isr():
    both = {"t-0": "broker 1, broker 2 did not run"}
    assert waited_for(led(0, 1), (0,), quorum_required_acks=2) == both
    assert waited_for(led(0, 1), (0, 2), quorum_required_acks=2, min_insync_replicas=3) == {}, "2 acknowledges too"
    leaderless = msgspec.structs.replace(led(0), leader=None)
    settings = {"commit_rule": "majority", "leader_election": "largest-epoch-and-log-end"}
    assert waited_for(leaderless, (1, 2), **settings) == {"t-0": "broker 0 did not run"}


def test_without_an_active_controller_every_log_partition_waits_for_the_controllers():
    view = ClusterView(
        {"t-0": led(0)}, running=(0,), brokers=(0, 1, 2), running_controllers=(), controller_active=False
    )
    assert missing_nodes(view, ["t-0"], Settings()) == {"t-0": "controller 100 did not run"}
    assert missing_nodes(msgspec.structs.replace(view, running_controllers=(100,)), ["t-0"], Settings()) == {}


def test_an_end_that_no_leader_names_is_unread_though_nothing_is_lacking(world, events):
    world.clients.unknown_ends.add("ackproof-2")
    _, verdict, _ = run(world, events, duration_ms=5_000)
    assert list(verdict.recovery.unread) == ["ackproof-2"]


def test_who_was_given_up_is_in_the_history_with_the_reason_in_words(world, events):
    world.clock.call_at(DEAD_US, partial(fall_silent, world, 2))
    run(world, events)
    (mark,) = events.of(Function.RETIRE)
    facts = msgspec.json.decode(mark.detail, type=Retirement)
    assert mark.error == (
        f"no write of {', '.join(TOPIC_PARTITIONS)} was acknowledged for {facts.silent_ms} ms; "
        f"producer {facts.successor} took its place"
    )


def test_without_acknowledgements_a_log_that_keeps_nothing_is_unwritten(world, events):
    made_up = SendOutcome(EventType.OK)
    stop = partial(setattr, world.clients, "answer_send", lambda name: made_up if name == "ackproof-1" else None)
    world.clock.call_at(DEAD_US, stop)
    _, verdict, _ = run(world, events, duration_ms=5_000, acks=0)
    assert verdict.recovery.unwritten == {"ackproof-1": "no final reader saw a write"}


@pytest.mark.system
def test_on_processes_an_idempotent_kafka_python_that_stays_silent_is_replaced_and_named(tmp_path: Path) -> None:
    """Two of three brokers are dead for 3 s, longer than delivery.timeout.ms (docs/guides/clients.md)."""
    run_spec = msgspec.structs.replace(
        spec(duration_ms=18_000, drain_limit_ms=40_000),
        world=Processes(),
        settings={"acks": "all", "min.insync.replicas": 2, "enable.idempotence": True, "delivery.timeout.ms": 2_000},
        faults=FaultPlan(
            families=("kill",), scenarios=("kill/two-overlapping",), count=2, fault_ms_min=9_000, fault_ms_max=9_000
        ),
    )
    ended = perform_run(run_spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    assert ended.report is not None
    assert ended.report["recovered_us"] is not None, "nobody was replaced"
    verdict = check_one(tmp_path / "run" / HISTORY)
    assert (verdict.recovery.tried, verdict.recovery.unwritten, verdict.recovery.unread) == (True, {}, {})
    assert verdict.recovery.retired >= 3
    assert {finding.mark for finding in verdict.anomalies["wedged-client"]} == {"kafka-python"}
    assert judge(run_spec.chosen(), verdict).broken == {}
