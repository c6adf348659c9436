"""After healing, fresh clients write to every log partition; what they could not is in the history, with why."""

import msgspec
import pytest

from tests.workloads.leaders import ObedientLeaders
from workloads import FreshWrites, SendOutcome
from workloads.driver import Workload
from workloads.operations import EventType, Function
from workloads.plan import WorkloadPlan
from workloads.recovery import RENEW_MS
from workloads.settings import Settings

SECOND_US = 1_000_000
PARTITIONS = ("ackproof-0", "ackproof-1", "ackproof-2")


@pytest.fixture
def recover(perfect_world, events):
    """Writes afresh and reads, for ten seconds at most, after a second of work."""

    def through(lacking=None, **settings):
        world, clock = perfect_world, perfect_world.clock
        settings = Settings(**settings)
        workload = Workload(WorkloadPlan(), settings, clients=world.clients, clock=clock, recorder=events)
        workload.begin()
        world.drive(lambda: False, SECOND_US)
        workload.close_clients()
        ending = workload.begin_ending(ObedientLeaders())
        recovery = ending.write(workload.partitions)
        world.drive(lambda: recovery.finished, 11 * SECOND_US)
        recovery.end()
        world.drive(lambda: False, clock.now_us() + SECOND_US)
        drain = ending.begin_drain(lacking or {}, recovery.values)
        world.drive(lambda: drain.finished, clock.now_us() + 10 * SECOND_US)
        drain.end()
        ending.record_recovery(recovery, drain, absent={}, out_of_sync={}, slow_writing="", slow_reading="")
        (mark,) = events.of(Function.RECOVERY)
        return mark.type, msgspec.json.decode(mark.detail, type=FreshWrites)

    return through


def test_a_fresh_instance_writes_to_every_log_partition(recover, events, perfect_world):
    kind, fresh = recover()
    assert (kind, fresh.written, fresh.unwritten) == (EventType.OK, PARTITIONS, {})
    newest = perfect_world.clients.producers[-1]
    writes = [e for e in events.of(Function.SEND, EventType.OK) if e.instance == newest.process]
    assert sorted(e.micro[0].partition for e in writes) == list(PARTITIONS)
    assert len(perfect_world.clients.producers) == 4
    assert all(producer.closed for producer in perfect_world.clients.producers)


def test_a_log_partition_that_takes_no_write_is_named_with_the_reason(recover, perfect_world):
    refused = SendOutcome(EventType.INFO, error="RequestTimedOutError")
    perfect_world.clients.answer_send = lambda partition: refused if partition == "ackproof-1" else None
    kind, fresh = recover()
    assert (kind, fresh.unwritten) == (EventType.INFO, {"ackproof-1": "RequestTimedOutError"})
    assert fresh.written == ("ackproof-0", "ackproof-2")
    assert fresh.lacking == {}


def test_what_the_cluster_lacked_is_said_beside_it(recover, perfect_world):
    perfect_world.clients.silent = {(n, "ackproof-2") for n in range(1_000)}
    _, fresh = recover({"ackproof-2": "it has no leader"})
    assert fresh.unwritten == {"ackproof-2": "no answer"}
    assert fresh.lacking == {"ackproof-2": "it has no leader"}


def test_a_fresh_client_that_fails_is_followed_by_another(recover, perfect_world):
    log = perfect_world.clients
    log.refusing = {5: "NeverSent: broken"}
    kind, _ = recover()
    assert kind is EventType.OK
    assert 5 in [producer.process for producer in log.producers]
    assert len(log.producers) == 5


def test_a_fresh_client_that_gives_no_answer_is_followed_by_another(recover, perfect_world):
    perfect_world.clients.silent = {(5, name) for name in PARTITIONS}
    kind, fresh = recover()
    assert (kind, fresh.unwritten) == (EventType.OK, {})
    assert [producer.process for producer in perfect_world.clients.producers][3] == 5
    assert len(perfect_world.clients.producers) == 5


def test_a_late_acknowledgement_of_a_client_that_gave_no_answer_counts(recover, perfect_world, events):
    slow_ms = RENEW_MS + 1_000
    perfect_world.clock.call_at(SECOND_US, lambda: setattr(perfect_world.clients, "latency_us", slow_ms * 1_000))
    recover()
    first = perfect_world.clients.producers[3].process
    late = [e for e in events.of(Function.SEND, EventType.OK) if e.time_us > SECOND_US + RENEW_MS * 1_000]
    assert {e.instance for e in late} == {first}


def test_a_log_that_never_answers_is_asked_by_a_few_clients_only(recover, perfect_world):
    perfect_world.clients.silent = {(n, name) for n in range(5, 1_000) for name in PARTITIONS}
    _, fresh = recover()
    assert fresh.unwritten == dict.fromkeys(PARTITIONS, "no answer")
    assert len(perfect_world.clients.producers) == 3 + 4


def test_without_acknowledgements_a_write_counts_once_a_final_reader_saw_it(recover):
    kind, fresh = recover(acks=0)
    assert (kind, fresh.written) == (EventType.OK, PARTITIONS)


def test_without_acknowledgements_a_write_that_nobody_reads_proves_nothing(recover, perfect_world):
    made_up = SendOutcome(EventType.OK)
    perfect_world.clients.answer_send = lambda partition: made_up if partition == "ackproof-1" else None
    kind, fresh = recover(acks=0)
    assert (kind, fresh.unwritten) == (EventType.INFO, {"ackproof-1": "no final reader saw a write"})
