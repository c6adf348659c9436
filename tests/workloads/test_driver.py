import msgspec
import pytest

from tests.workloads.leaders import ObedientLeaders
from workloads.client import Offsets, PollOutcome, SendOutcome
from workloads.consumers import shares
from workloads.driver import Workload
from workloads.operations import HARNESS, EventType, Function, PayloadDefect
from workloads.plan import WorkloadPlan
from workloads.producers import OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX
from workloads.settings import Settings
from workloads.values import split

SECOND_US = 1_000_000


@pytest.fixture
def start(perfect_world, events):
    def begin(**plan):
        clients, clock = perfect_world.clients, perfect_world.clock
        workload = Workload(WorkloadPlan(**plan), Settings(), clients=clients, clock=clock, recorder=events)
        workload.begin()
        return workload

    return begin


@pytest.fixture
def run_to(perfect_world):
    return lambda time_us: perfect_world.drive(lambda: False, time_us)


def sends(events, *types):
    return events.of(Function.SEND, *types)


def open_operations_never_exceed_one(events):
    """Every invoke of a process finds its previous one completed (a drain statement is no completion)."""
    open_by_process = set()
    for event in events.events:
        if event.process < 0 or event.function is Function.DRAIN:
            continue
        if event.type is EventType.INVOKE:
            assert event.process not in open_by_process
            open_by_process.add(event.process)
        else:
            open_by_process.remove(event.process)
    return True


def test_writes_are_evenly_spaced_at_the_asked_rate(start, run_to, events):
    start(writes_per_second=100, producers=3)
    run_to(SECOND_US - 1)
    times_us = [event.time_us for event in sends(events, EventType.INVOKE)]
    assert times_us == [n * 10_000 for n in range(100)]


def test_a_rate_that_does_not_divide_a_second_does_not_drift(start, run_to, events):
    start(writes_per_second=30, producers=1)
    run_to(100 * SECOND_US - 1)
    assert len(sends(events, EventType.INVOKE)) == 3_000


def test_every_producer_writes_to_every_partition_under_every_key(start, run_to, events, perfect_world):
    start(writes_per_second=300, producers=3, partitions=3, keys=4)
    run_to(SECOND_US)
    pairs = {(split(e.micro[0].value)[0], e.micro[0].partition) for e in sends(events, EventType.INVOKE)}
    assert len(pairs) == 9
    for records in perfect_world.clients.records.values():
        assert {key for key, _ in records} == {b"key-0", b"key-1", b"key-2", b"key-3"}


def test_values_are_unique(start, run_to, events):
    start(writes_per_second=500)
    run_to(3 * SECOND_US)
    values = [event.micro[0].value for event in sends(events, EventType.INVOKE)]
    assert len(values) == len(set(values))


def test_a_process_has_one_open_operation_even_if_answers_are_slow(start, run_to, events, perfect_world):
    perfect_world.clients.latency_us = SECOND_US // 2
    workload = start(writes_per_second=100, producers=2)
    run_to(5 * SECOND_US)
    workload.close_clients()
    run_to(7 * SECOND_US)
    assert open_operations_never_exceed_one(events)
    assert workload.producers.outstanding == 0


def test_an_acknowledgement_stands_in_the_history_at_the_time_of_the_clients_answer(
    start, run_to, events, perfect_world
):
    perfect_world.clients.answer_send = lambda partition: SendOutcome(EventType.OK, 0, answered_us=17)
    start(writes_per_second=1, producers=1, consumers=0)
    run_to(SECOND_US // 2)
    assert [event.time_us for event in sends(events, EventType.OK)] == [17]
    assert perfect_world.clock.now_us() > 17


def test_a_fast_log_needs_no_second_process(start, run_to, events):
    start(writes_per_second=100, producers=2, consumers=0)
    run_to(5 * SECOND_US)
    assert {event.process for event in sends(events)} == {0, 1}


def test_a_process_whose_send_ended_unknown_is_never_used_again(start, run_to, events, perfect_world):
    perfect_world.clients.answer_send = lambda partition: SendOutcome(EventType.INFO, error="KafkaTimeoutError")
    workload = start(writes_per_second=100, producers=1)
    run_to(SECOND_US)
    processes = [event.process for event in sends(events, EventType.INFO)]
    assert len(processes) == len(set(processes)) == workload.producers.counts.unknown > 90
    assert len(perfect_world.clients.producers) == 1


def test_a_refused_send_keeps_its_process(start, run_to, events, perfect_world):
    perfect_world.clients.answer_send = lambda partition: SendOutcome(EventType.FAIL, error="MessageSizeTooLargeError")
    workload = start(writes_per_second=100, producers=1, consumers=0)
    run_to(SECOND_US)
    assert {event.process for event in sends(events)} == {0}
    assert workload.producers.counts.rejected > 90
    assert workload.producers.counts.acknowledged == 0


def test_outstanding_sends_are_bounded_and_what_was_not_made_is_counted(start, run_to, perfect_world):
    perfect_world.clients.silent_sends = True
    workload = start(writes_per_second=1_000, producers=2)
    run_to(2 * SECOND_US)
    assert workload.producers.outstanding == workload.producers.counts.attempted == 2 * OUTSTANDING_MAX
    assert workload.producers.counts.attempted + workload.producers.counts.passed_over == 2_001


def test_large_payloads_without_an_answer_are_bounded_in_bytes(start, run_to, perfect_world):
    perfect_world.clients.silent_sends = True
    workload = start(writes_per_second=100, producers=2, payload_bytes=1_000_000)
    run_to(2 * SECOND_US)
    assert workload.producers.outstanding == 2 * -(-OUTSTANDING_BYTES_MAX // 1_000_000)


def test_a_full_producer_is_not_looked_at_for_every_write_that_it_does_not_make(
    start, run_to, perfect_world, monkeypatch
):
    perfect_world.clients.silent_sends = True
    workload = start(writes_per_second=10_000, producers=1, consumers=0)
    run_to(SECOND_US // 10)
    looked_at_us = []
    call_at = perfect_world.clock.call_at
    monkeypatch.setattr(
        perfect_world.clock,
        "call_at",
        lambda time_us, callback: (looked_at_us.append(time_us), call_at(time_us, callback)),
    )
    run_to(2 * SECOND_US // 10)
    assert len(looked_at_us) <= 105  # of 1,000 writes that are due; the rest is Producers' look for silent ones
    assert workload.producers.counts.attempted == OUTSTANDING_MAX
    assert workload.producers.counts.attempted + workload.producers.counts.passed_over > 1_990


def test_a_producer_that_was_full_writes_again_when_it_is_answered(start, run_to, events, perfect_world):
    perfect_world.clients.latency_us = 100_000
    start(writes_per_second=10_000, producers=1, consumers=0)
    run_to(3 * SECOND_US)
    # 256 of them every tenth of a second, and nothing but the rest in between.
    assert len(sends(events, EventType.OK)) > 0.95 * 29 * OUTSTANDING_MAX


def test_closing_leaves_no_send_open(start, run_to, events, perfect_world):
    perfect_world.clients.silent_sends = True
    workload = start(writes_per_second=100)
    run_to(SECOND_US)
    workload.close_clients()
    run_to(2 * SECOND_US)
    assert len(sends(events, EventType.INVOKE)) == len(sends(events, EventType.INFO)) > 90
    assert all(producer.closed for producer in perfect_world.clients.producers)


@pytest.mark.parametrize(
    ("consumers", "dealt"),
    [(1, [("a", "b", "c")]), (2, [("a", "c"), ("b",)]), (4, [("a",), ("b",), ("c",), ("a",)]), (0, [])],
)
def test_partitions_are_dealt_out_to_consumers(consumers, dealt):
    assert shares(("a", "b", "c"), consumers) == dealt


def test_what_was_written_is_read_once(start, run_to, events):
    workload = start(writes_per_second=100)
    run_to(3 * SECOND_US)
    workload.producers.stop()
    run_to(4 * SECOND_US)
    read = [r.value for e in events.of(Function.POLL, EventType.OK) for rs in e.micro[0].records.values() for r in rs]
    acknowledged = [event.micro[0].value for event in sends(events, EventType.OK)]
    assert sorted(read) == sorted(acknowledged)
    assert workload.consumers.records_read == len(read)


def test_a_damaged_record_is_read_as_a_defect(start, run_to, events, perfect_world):
    perfect_world.clients.records = {"ackproof-0": [(b"key-0", b"x" * 40)]}
    start(writes_per_second=1)
    run_to(SECOND_US // 2)
    first = next(e for e in events.of(Function.POLL, EventType.OK) if "ackproof-0" in e.micro[0].records)
    assert first.micro[0].records["ackproof-0"][0].defect is PayloadDefect.CHECKSUM


def test_polls_of_a_trickle_are_paced(start, run_to, events):
    start(writes_per_second=200, consumers=1, poll_wait_ms=100)
    run_to(2 * SECOND_US)
    assert 19 <= len(events.of(Function.POLL, EventType.OK)) <= 21


def test_a_consumer_that_lost_its_position_is_replaced_by_a_fresh_process(start, run_to, events, perfect_world):
    doomed = set()

    def answer(process, _):
        doomed.add(process)
        return PollOutcome(EventType.INFO, error="KafkaConnectionError") if len(doomed) == 1 else None

    perfect_world.clients.answer_poll = answer
    start(writes_per_second=10, producers=1, consumers=1)
    run_to(SECOND_US)
    ended = events.of(Function.POLL, EventType.INFO)
    assert [event.process for event in ended] == [1]
    assert {event.process for event in events.of(Function.POLL, EventType.OK)} == {2}
    assert perfect_world.clients.consumers[0].closed
    assert open_operations_never_exceed_one(events)


def test_a_failed_poll_is_repeated_by_the_same_process_without_spinning(start, run_to, events, perfect_world):
    perfect_world.clients.answer_poll = lambda *_: PollOutcome(EventType.FAIL, error="NodeNotReadyError")
    start(consumers=1, poll_wait_ms=1)
    run_to(SECOND_US)
    assert len({event.process for event in events.of(Function.POLL)}) == 1
    assert len(events.of(Function.POLL, EventType.FAIL)) < 110


def drained(workload, perfect_world, unhealthy=()):
    workload.producers.stop()
    workload.close_clients()
    now_us = perfect_world.clock.now_us()
    perfect_world.drive(lambda: False, now_us + SECOND_US)
    drain = workload.begin_ending(ObedientLeaders()).begin_drain(dict.fromkeys(unhealthy, "it has no leader"))
    perfect_world.drive(lambda: drain.finished, now_us + 10 * SECOND_US)
    drain.end()
    perfect_world.drive(lambda: False, perfect_world.clock.now_us() + SECOND_US)
    return drain


def test_fresh_processes_state_that_they_read_every_partition_to_its_end(start, run_to, events, perfect_world):
    workload = start(writes_per_second=100)
    run_to(2 * SECOND_US)
    earlier = {event.process for event in events.events}
    drain = drained(workload, perfect_world)
    stated = {e.partitions[0]: (e.type, e.offset) for e in events.of(Function.DRAIN)}
    assert stated == {
        name: (EventType.OK, len(records)) for name, records in sorted(perfect_world.clients.records.items())
    }
    assert not earlier & {event.process for event in events.of(Function.DRAIN)}
    assert drain.complete
    assert all(consumer.closed for consumer in perfect_world.clients.consumers)
    assert open_operations_never_exceed_one(events)


def test_an_empty_partition_is_drained_at_once(start, events, perfect_world):
    workload = start(writes_per_second=0.001, partitions=1, producers=1)
    perfect_world.clients.silent_sends = True
    perfect_world.clients.records = {}
    perfect_world.clients.answer_send = lambda partition: SendOutcome(EventType.INFO)
    drained(workload, perfect_world)
    assert [(e.type, e.offset) for e in events.of(Function.DRAIN)] == [(EventType.OK, 0)]


def test_an_unhealthy_partition_proves_nothing_though_it_was_read(start, run_to, events, perfect_world):
    workload = start(writes_per_second=100)
    run_to(SECOND_US)
    drain = drained(workload, perfect_world, unhealthy=["ackproof-1"])
    stated = {e.partitions[0]: (e.type, e.offset, e.error) for e in events.of(Function.DRAIN)}
    assert stated["ackproof-1"] == (EventType.INFO, None, "it has no leader")
    assert stated["ackproof-0"][0] is stated["ackproof-2"][0] is EventType.OK
    assert drain.finished
    assert not drain.complete


def test_an_end_that_nobody_tells_ends_as_unknown(start, run_to, events, perfect_world):
    workload = start(writes_per_second=100)
    run_to(SECOND_US)
    perfect_world.clients.unknown_ends.add("ackproof-2")
    drain = drained(workload, perfect_world)
    types = {e.partitions[0]: e.type for e in events.of(Function.DRAIN)}
    assert types == {"ackproof-0": EventType.OK, "ackproof-1": EventType.OK, "ackproof-2": EventType.INFO}
    assert drain.finished
    assert not drain.complete


def test_a_final_reader_that_is_replaced_starts_over(start, run_to, events, perfect_world):
    workload = start(writes_per_second=100, consumers=1)
    run_to(SECOND_US)
    polls = []

    def answer(process, _):
        polls.append(process)
        return PollOutcome(EventType.INFO, error="KafkaConnectionError") if len(polls) == 1 else None

    workload.close_clients()
    run_to(2 * SECOND_US)
    perfect_world.clients.answer_poll = answer
    drain = drained(workload, perfect_world)
    assert drain.complete
    assert {event.process for event in events.of(Function.DRAIN)} == {polls[0] + 1}


@pytest.mark.parametrize("answers", [True, False])
def test_a_final_reader_that_gets_no_end_is_replaced(start, run_to, perfect_world, monkeypatch, answers):
    workload = start(writes_per_second=100, consumers=1)
    run_to(SECOND_US)
    stuck, plain = [], type(perfect_world.clients.consumers[0]).end_offsets

    def end_offsets(self, partitions, done):
        stuck.append(self)
        if self is not stuck[0]:
            plain(self, partitions, done)
        elif answers:
            self.log.later(lambda: done(Offsets({}, "KafkaConnectionError")))

    monkeypatch.setattr(type(perfect_world.clients.consumers[0]), "end_offsets", end_offsets)
    drain = drained(workload, perfect_world)
    assert (drain.complete, drain.unread) == (True, {})
    assert len(set(map(id, stuck))) == 2
    assert all(consumer.closed for consumer in perfect_world.clients.consumers)


def test_a_final_reader_whose_polls_stay_empty_is_replaced(start, run_to, events, perfect_world):
    workload = start(writes_per_second=100, consumers=1)
    run_to(SECOND_US)
    seen = []

    def answer(process, _):
        seen.append(process)
        return PollOutcome(EventType.OK) if process == seen[0] else None

    workload.close_clients()
    run_to(2 * SECOND_US)
    perfect_world.clients.answer_poll = answer
    assert drained(workload, perfect_world).complete
    assert {event.process for event in events.of(Function.DRAIN)} == {seen[0] + 1}
    assert open_operations_never_exceed_one(events)


def test_a_log_partition_of_which_nothing_comes_any_more_is_unread(start, run_to, perfect_world):
    workload = start(writes_per_second=100, consumers=1)
    run_to(SECOND_US)
    workload.close_clients()
    run_to(2 * SECOND_US)
    perfect_world.clients.answer_poll = lambda *_: PollOutcome(EventType.OK)
    drain = drained(workload, perfect_world)
    assert list(drain.unread) == ["ackproof-0", "ackproof-1", "ackproof-2"]


def test_time_in_which_a_starved_machine_served_nobody_makes_no_log_partition_unread(start, run_to, perfect_world):
    """Nine tenths of each second are gone before anything that was due is served."""
    workload = start(writes_per_second=100, consumers=1)
    run_to(SECOND_US)
    workload.close_clients()
    run_to(2 * SECOND_US)
    perfect_world.clients.answer_poll = lambda *_: PollOutcome(EventType.OK)
    perfect_world.clock.starve(900_000, every_us=SECOND_US)
    readers = len(perfect_world.clients.consumers)
    drain = drained(workload, perfect_world)
    assert (drain.finished, drain.unread) == (True, {})
    assert len(perfect_world.clients.consumers) == readers + 1, "no reader was replaced for what it could not do"


def test_a_log_that_is_too_long_for_the_limit_is_not_unread(start, run_to, events, perfect_world, monkeypatch):
    """Each poll gives one record."""
    workload = start(writes_per_second=100, consumers=1, partitions=1)
    run_to(3 * SECOND_US)
    consumer = type(perfect_world.clients.consumers[0])
    plain = consumer._fetch

    def fetch(self):
        for record in plain(self):
            self.positions[record.partition] = record.offset + 1
            yield record
            return

    workload.close_clients()
    run_to(4 * SECOND_US)
    monkeypatch.setattr(consumer, "_fetch", fetch)
    drain = drained(workload, perfect_world)
    assert (drain.complete, drain.unread) == (False, {})
    (statement,) = events.of(Function.DRAIN)
    assert statement.error.endswith("raise drain_limit_ms")


def test_phases_are_marked_by_the_harness(start, run_to, events, perfect_world):
    workload = start()
    workload.mark("heal")
    drained(workload, perfect_world)
    marks = events.of(Function.PHASE)
    assert [msgspec.json.decode(event.detail)["mark"] for event in marks] == ["break", "heal", "drain"]
    assert {event.process for event in marks} == {HARNESS}


def test_recovery_asks_every_partition_for_a_later_acknowledgement(start, run_to, perfect_world):
    workload = start(writes_per_second=100)
    run_to(SECOND_US)
    assert workload.all_acknowledged_since(SECOND_US // 2)
    perfect_world.clients.answer_send = lambda p: SendOutcome(EventType.INFO) if p == "ackproof-1" else None
    run_to(2 * SECOND_US)
    assert not workload.all_acknowledged_since(SECOND_US + SECOND_US // 2)


def test_every_send_carries_its_producers_instance_though_sends_overlap(start, run_to, events, perfect_world):
    perfect_world.clients.latency_us = SECOND_US // 2
    start(writes_per_second=100, producers=2)
    run_to(2 * SECOND_US)
    by_instance = {}
    for event in sends(events):
        by_instance.setdefault(event.instance, set()).add(event.process)
    assert by_instance.keys() == {0, 1} == {producer.process for producer in perfect_world.clients.producers}
    assert all(len(processes) > 10 for processes in by_instance.values())
    assert not by_instance[0] & by_instance[1]


def test_a_crashed_producers_sends_end_unknown_and_a_new_instance_writes_on(start, run_to, events, perfect_world):
    perfect_world.clients.latency_us = SECOND_US // 2
    workload = start(writes_per_second=100, producers=2, consumers=0)
    run_to(SECOND_US)
    crashed_producer = workload.producers.crash_producer(3)
    run_to(2 * SECOND_US)
    workload.close_clients()
    run_to(3 * SECOND_US)
    crashed = [event for event in sends(events, EventType.INFO) if event.error == "ClientCrashed"]
    assert {event.instance for event in crashed} == {crashed_producer["instance"]} == {1}
    assert len(crashed) == crashed_producer["outstanding"] > 20
    later = {event.instance for event in sends(events, EventType.INVOKE) if event.time_us > SECOND_US}
    assert later == {0, crashed_producer["successor"]}
    assert workload.producers.outstanding == 0
    assert open_operations_never_exceed_one(events)


def test_a_crash_takes_no_other_producers_sends_with_it(start, run_to, events):
    workload = start(writes_per_second=100, producers=3, consumers=0)
    run_to(SECOND_US)
    workload.producers.crash_producer(0)
    run_to(2 * SECOND_US)
    assert {event.instance for event in sends(events, EventType.INFO)} <= {0}
    assert len(sends(events, EventType.OK)) > 190


def test_bursts_write_as_much_as_steady_in_a_tenth_of_the_time(start, run_to, events):
    start(name="bursts", writes_per_second=100, producers=2)
    run_to(3 * SECOND_US - 1)
    times_us = [event.time_us for event in sends(events, EventType.INVOKE)]
    assert len(times_us) == 300
    assert max(time_us % SECOND_US for time_us in times_us) < SECOND_US // 10


def test_payloads_have_the_size_that_was_asked_for(start, run_to, perfect_world):
    start(writes_per_second=100, payload_bytes=1_000)
    run_to(SECOND_US)
    assert {len(payload) for kept in perfect_world.clients.records.values() for _, payload in kept} == {1_000}
