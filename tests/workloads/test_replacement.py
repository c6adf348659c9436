"""A producer that stops working is replaced, and called wedged only where its successor could do what it could not."""

import itertools

import msgspec
import pytest

from workloads import NEVER_SENT, Retirement, SendOutcome
from workloads.driver import REPORT_MS, Workload
from workloads.operations import EventType, Function
from workloads.plan import WorkloadPlan
from workloads.replacement import REFUSALS_MAX, REPLACE_EVERY_MS, TRIAL_WRITES
from workloads.settings import Settings

SECOND_US = 1_000_000
PARTITIONS = ("ackproof-0", "ackproof-1", "ackproof-2")
FATAL = f"{NEVER_SENT}: KafkaException: _FATAL"


@pytest.fixture
def log(perfect_world):
    return perfect_world.clients


@pytest.fixture
def start(perfect_world, events):
    def begin(settings=None, **plan):
        plan = {"consumers": 0, "producers": 1} | plan
        clients, clock = perfect_world.clients, perfect_world.clock
        settings = settings or Settings(delivery_timeout_ms=2_000)
        workload = Workload(WorkloadPlan(**plan), settings, clients=clients, clock=clock, recorder=events)
        workload.begin()
        return workload

    return begin


@pytest.fixture
def run_to(perfect_world):
    return lambda seconds: perfect_world.drive(lambda: False, int(seconds * SECOND_US))


def retired(events):
    marks = events.of(Function.RETIRE)
    assert all(event.process == event.instance >= 0 and event.type is EventType.INFO for event in marks)
    return {event.instance: msgspec.json.decode(event.detail, type=Retirement) for event in marks}


def acknowledged(events, since_s=0.0):
    done = [event for event in events.of(Function.SEND, EventType.OK) if event.time_us >= since_s * SECOND_US]
    return {event.instance for event in done}


def instances(log):
    return [producer.process for producer in log.producers]


def test_a_producer_that_falls_silent_is_replaced_within_a_second_of_its_delivery_timeout(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    start()
    run_to((2_000 + REPORT_MS) / 1000 - 0.2)
    assert instances(log) == [0]
    run_to((2_000 + REPORT_MS) / 1000 + 0.2)
    assert len(instances(log)) == 2
    last = events.of(Function.SEND, EventType.INVOKE)[-1]
    assert last.instance == instances(log)[1]


def test_nearly_all_writes_go_through_though_every_producer_falls_silent_for_good(start, run_to, events, log):
    workload = start(producers=3)
    run_to(5)
    log.silent = {(process, name) for process in instances(log) for name in PARTITIONS}
    run_to(60)
    counts = workload.producers.counts
    assert counts.acknowledged / (counts.attempted + counts.passed_over) > 0.9
    assert {facts.wedged for facts in retired(events).values()} == {PARTITIONS}


def test_a_silent_producer_whose_successor_is_acknowledged_is_wedged_where_it_was_silent(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    start()
    run_to(20)
    (facts,) = retired(events).values()
    assert (facts.reason, facts.successor, facts.client) == ("silent", instances(log)[1], "perfect of 0")
    assert (facts.partitions, facts.wedged) == (("ackproof-1",), ("ackproof-1",))
    assert 2_500 <= facts.silent_ms < 3_000
    assert log.producers[0].closed
    assert not log.producers[1].closed


def test_nobody_is_wedged_before_the_last_write_of_its_trial_could_have_been_answered(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    start(Settings(delivery_timeout_ms=10_000, request_timeout_ms=8_000))
    run_to(10.5 + TRIAL_WRITES - 1 + 8 + 1)
    assert retired(events) == {}, "it is still being tried"
    run_to(30)
    assert [facts.wedged for facts in retired(events).values()] == [("ackproof-1",)]


def test_a_producer_that_works_again_beside_its_successor_is_not_wedged(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    start()
    run_to(6)
    log.silent.clear()
    run_to(20)
    assert [facts.wedged for facts in retired(events).values()] == [()]
    assert len(instances(log)) == 2


def test_where_the_log_is_not_writable_the_successors_are_silent_too_and_nobody_is_wedged(start, run_to, events, log):
    log.answer_send = lambda partition: SendOutcome(EventType.INFO, error="NotEnoughReplicasError")
    start()
    run_to(30)
    assert len(retired(events)) > 3
    assert {facts.wedged for facts in retired(events).values()} == {()}
    assert {facts.errors for facts in retired(events).values()} == {("NotEnoughReplicasError",)}


def test_a_log_that_is_writable_for_moments_only_makes_nobody_wedged(start, run_to, events, log, perfect_world):
    """The old instance is silent; its successor is acknowledged in one of every three seconds."""
    log.silent = {(0, name) for name in PARTITIONS}
    start(replace_silent_ms=4_000)

    def answer(_):
        moment = perfect_world.clock.now_us() // SECOND_US % 3 == 0
        return None if moment else SendOutcome(EventType.INFO, error="NotLeaderForPartitionError")

    log.answer_send = answer
    run_to(60)
    assert [facts.wedged for facts in retired(events).values()] == [()]


def test_a_client_that_refuses_every_send_is_replaced_before_it_is_silent_for_long(start, run_to, events, log):
    start()
    run_to(3)
    log.refusing = {0: FATAL}
    run_to(3.5)
    assert len(instances(log)) == 2
    run_to(15)
    (facts,) = retired(events).values()
    assert (facts.reason, facts.errors, facts.wedged) == ("fatal", (FATAL,), PARTITIONS)


@pytest.mark.parametrize(
    "error", ["KafkaTimeoutError: no metadata", "MessageSizeTooLargeError", "10000 sends are outstanding"]
)
def test_a_refusal_that_passes_or_is_the_records_fault_is_not_fatal(start, run_to, log, error):
    start()
    log.refusing = {0: f"{NEVER_SENT}: {error}"}
    run_to(2.4)
    assert instances(log) == [0]


def test_a_client_that_is_fatal_from_its_first_send_on_is_made_anew_once_a_second_at_most(start, run_to, log):
    log.refusing = dict.fromkeys(range(10_000), FATAL)
    start(writes_per_second=1_000)
    run_to(10)
    assert 5 < len(instances(log)) <= 1 + 10_000 // REPLACE_EVERY_MS


def test_with_acks_0_nobody_is_silent_but_who_refuses_is_replaced(start, run_to, log):
    log.silent = {(0, name) for name in PARTITIONS}
    start(Settings(acks=0, delivery_timeout_ms=2_000), writes_per_second=10)
    run_to(20)
    assert instances(log) == [0]
    log.refusing = {0: FATAL}
    run_to(22)
    assert len(instances(log)) == 2


def test_writes_of_a_trial_are_sends_of_the_history_by_the_old_instance_a_second_apart(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    start()
    run_to(20)
    begun = events.of(Function.SEND, EventType.INVOKE)
    replaced_us = next(event.time_us for event in begun if event.instance != 0)
    trial = [event.time_us for event in begun if event.instance == 0 and event.time_us > replaced_us]
    assert len(trial) == TRIAL_WRITES
    assert min(after - before for before, after in itertools.pairwise(trial)) >= SECOND_US


def test_a_producer_that_crashes_meanwhile_ends_no_trial(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    workload = start()
    run_to(5)
    workload.producers.crash_producer(0)
    run_to(20)
    assert [facts.wedged for facts in retired(events).values()] == [("ackproof-1",)]


def test_a_trial_goes_on_beside_the_next_successor_where_that_one_is_silent_too(start, run_to, events, log):
    """The old instance is dead; its successor meets an outage before the trial is decided, and is replaced in turn."""
    log.silent = {(0, "ackproof-1")}
    start()
    run_to(4)
    log.answer_send = lambda partition: SendOutcome(EventType.INFO, error="NotEnoughReplicasError")
    run_to(8)
    log.answer_send = lambda partition: None
    run_to(30)
    wedged = {instance: facts.wedged for instance, facts in retired(events).items()}
    assert wedged.pop(0) == ("ackproof-1",)
    assert set(wedged.values()) == {()}


def test_a_trial_that_the_end_of_the_run_cuts_off_says_nothing(start, run_to, events, log):
    log.silent = {(0, "ackproof-1")}
    workload = start()
    run_to(5)
    assert not workload.producers.settled
    workload.close_clients()
    run_to(6)
    assert [facts.wedged for facts in retired(events).values()] == [()]
    assert workload.producers.outstanding == 0


def test_a_slow_workload_is_no_silence(start, run_to, events):
    start(writes_per_second=0.2)
    run_to(100)
    assert retired(events) == {}


def test_refusals_between_acknowledgements_are_not_fatal(start, run_to, log, perfect_world):
    start(writes_per_second=10)
    for second in range(1, 20, 2):
        run_to(second)
        log.refusing = {0: FATAL}
        run_to(second + (REFUSALS_MAX - 3) / 10)
        log.refusing = {}
    assert instances(log) == [0]
