"""Transactions (rules 34 to 41): what a log partition knows of them, what readers get, what the coordinator does."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core import messages
from harness.broker.core.messages import Marker, RecordBatch
from harness.broker.core.producers import KnownProducer, Producers
from harness.broker.core.transaction_coordinator import LOG, TransactionState
from harness.broker.core.transactions import PartitionTransactions
from harness.broker.core.types import CONTROLLER, NO_ERROR, NONE, BrokerConfig, ErrorCode
from nemesis.cluster import Link
from tests.harness.broker.core.transaction_lab import Identity, TransactionLab
from tests.harness.worlds.simulated.driven import AT


def record(offset: int, producer: int = 7, epoch: int = 0, sequence: int = 0) -> RecordBatch:
    return RecordBatch(1, 100, "r", offset, 0, producer, epoch, sequence, transactional=True)


def marker(
    offset: int, *, commit: bool, producer: int = 7, epoch: int = 1, coordinator_epoch: int = 0, version: int = 2
) -> RecordBatch:
    kind = Marker(commit, coordinator_epoch, version)
    return RecordBatch(1, 0, (), offset, 0, producer, epoch, NONE, transactional=True, marker=kind)


def knowing(*batches: RecordBatch) -> PartitionTransactions:
    return Producers(batches).transactions


# --- what a log partition knows (rules 34, 35) -----------------------------------------------------------------------


def test_the_first_open_transaction_holds_readers_back_until_its_marker_is_committed() -> None:
    """The example of the module's text."""
    log = [record(0), record(1), record(2, producer=8), record(4), marker(5, commit=False)]
    assert knowing(*log[:4]).stable_end(5) == 0
    ended = knowing(*log)
    assert ended.stable_end(5) == 0
    assert ended.stable_end(6) == 2
    assert knowing(*log, marker(6, commit=True, producer=8)).stable_end(7) == 7


def test_the_last_stable_offset_is_never_above_the_high_watermark() -> None:
    assert knowing().stable_end(3) == 3
    assert knowing(record(5)).stable_end(3) == 3


def test_aborted_transactions_are_found_by_what_was_fetched() -> None:
    transactions = knowing(record(0), marker(1, commit=False), record(2, epoch=1), marker(3, commit=True, epoch=2))
    (aborted,) = transactions.aborted_between(0, 4)
    assert (aborted.first_offset, aborted.marker_offset) == (0, 1)
    assert transactions.aborted_between(1, 4) == (aborted,)
    assert transactions.aborted_between(2, 4) == ()


def test_only_the_records_of_an_aborted_transaction_are_aborted() -> None:
    log = [record(0), record(1, producer=8), record(2), marker(3, commit=False), record(4, epoch=1)]
    ends = [marker(5, commit=True, epoch=2), marker(6, commit=True, producer=8)]
    assert [batch.base_offset for batch in (*log, *ends) if knowing(*log, *ends).is_aborted(batch)] == [0, 2]


def test_a_marker_where_nothing_is_open_ends_nothing() -> None:
    assert knowing(marker(0, commit=False)).aborted_between(0, 1) == ()


# --- markers and epochs (rule 36) -------------------------------------------------------------------------------------


def test_a_marker_raises_the_epoch_and_the_next_transaction_begins_at_zero() -> None:
    producers = Producers([record(0), marker(1, commit=True)])
    assert producers.validate(record(NONE, epoch=0, sequence=1)) == (ErrorCode.INVALID_PRODUCER_EPOCH, None)
    assert producers.validate(record(NONE, epoch=1, sequence=1)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
    assert producers.validate(record(NONE, epoch=1, sequence=0)) == (ErrorCode.NONE, None)
    assert producers.last_sequence(7) == NONE


def test_a_marker_of_the_same_epoch_lets_sequences_go_on() -> None:
    producers = Producers([record(0), marker(1, commit=True, epoch=0, version=1)])
    assert producers.validate(record(NONE, sequence=1)) == (ErrorCode.NONE, None)


@pytest.mark.parametrize(("version", "expected"), [(1, ErrorCode.NONE), (2, ErrorCode.INVALID_PRODUCER_EPOCH)])
def test_a_late_marker_cannot_end_the_next_transaction_under_version_2(version: int, expected: ErrorCode) -> None:
    """KAFKA-19446: under version 1 nothing tells the two transactions apart."""
    epoch = version - 1
    late = marker(NONE, commit=True, epoch=epoch, version=version)
    producers = Producers([record(0), late, record(2, epoch=epoch, sequence=2 - version)])
    assert producers.validate(late) == (expected, None)


def test_a_marker_that_is_repeated_is_taken() -> None:
    once = marker(1, commit=True)
    assert Producers([record(0), once]).validate(once) == (ErrorCode.NONE, None)


def test_markers_of_old_producers_and_of_old_coordinators_are_refused() -> None:
    producers = Producers([record(0, epoch=3), marker(1, commit=True, epoch=4, coordinator_epoch=5)])
    old_coordinator = marker(NONE, commit=True, epoch=9, coordinator_epoch=4)
    assert producers.validate(old_coordinator) == (ErrorCode.TRANSACTION_COORDINATOR_FENCED, None)
    old_producer = marker(NONE, commit=True, epoch=3, coordinator_epoch=5)
    assert producers.validate(old_producer) == (ErrorCode.INVALID_PRODUCER_EPOCH, None)


# --- readers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("commit", "seen"), [(True, ["a", "b"]), (False, [])])
def test_a_reader_of_committed_records_gets_all_of_a_transaction_or_nothing(commit: bool, seen: list[str]) -> None:
    lab = TransactionLab()
    identity = lab.in_transaction("a", "b")
    assert lab.read() == []
    assert lab.read(committed=False) == ["a", "b"]
    assert lab.stable_end() == 0
    assert lab.end(identity, commit=commit).error == ErrorCode.NONE
    lab.complete()
    assert lab.read() == seen
    assert lab.stable_end() == lab.high_watermark(0) == 3


def test_a_new_leader_knows_what_is_open_and_what_was_aborted() -> None:
    lab = TransactionLab()
    lab.end(lab.in_transaction("a"), commit=False)
    lab.complete()
    lab.in_transaction("b")
    lab.move_leader(2)
    lab.wait(lambda: lab.leads(2))
    lab.run(1_000)
    assert lab.read(2) == []
    assert lab.stable_end(2) == 2


# --- the coordinator -------------------------------------------------------------------------------------------------


def test_partitions_are_added_before_anything_is_written_and_ends_are_told_again() -> None:
    lab = TransactionLab()
    identity = lab.init()
    assert lab.end(identity, commit=True).error == ErrorCode.INVALID_TXN_STATE
    assert lab.add(identity) == lab.add(identity) == ErrorCode.NONE
    first = lab.end(identity, commit=True)
    lab.run(1_000)
    again = lab.end(identity, commit=True)
    assert (again.error, again.producer_epoch) == (ErrorCode.NONE, first.producer_epoch)
    assert lab.end(identity, commit=False).error == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("version", "raised"), [(1, 0), (2, 1)])
def test_each_end_raises_the_epoch_under_version_2(version: Any, raised: int) -> None:
    lab = TransactionLab(BrokerConfig(transaction_version=version))
    identity = lab.in_transaction("a")
    answer = lab.end(identity, commit=True)
    lab.complete()
    assert lab.markers() == [(True, raised)]
    assert answer.producer_epoch == (NONE if version == 1 else 1)


def test_a_successor_aborts_what_is_open_and_fences_the_producer_before_it() -> None:
    lab = TransactionLab()
    old = lab.in_transaction("a")
    new = lab.init()
    assert new.producer_id == old.producer_id
    assert new.producer_epoch > old.producer_epoch
    assert lab.put(old, "b", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert lab.end(old, commit=True).error == ErrorCode.PRODUCER_FENCED
    assert lab.add(old) == ErrorCode.PRODUCER_FENCED
    assert lab.read() == []
    assert [commit for commit, _ in lab.markers()] == [False]


def test_a_producer_goes_on_under_a_new_epoch_only_if_it_is_in_charge() -> None:
    lab = TransactionLab()
    own, other = lab.init(), lab.init()

    def renew(identity: Identity) -> Any:
        return lab.ask(lab.coordinator, lambda c: messages.InitProducerId(c, "one", 60_000, *identity))

    assert renew(own).error == ErrorCode.PRODUCER_FENCED
    assert renew(other).producer_epoch == other.producer_epoch + 1


def test_a_transaction_that_is_open_for_too_long_is_aborted() -> None:
    lab = TransactionLab(timeout_ms=1_000)
    identity = lab.in_transaction("a")
    lab.run(12_000)
    assert [commit for commit, _ in lab.markers()] == [False]
    assert lab.end(identity, commit=True).error == ErrorCode.INVALID_TXN_STATE
    assert lab.add(identity) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "seen"), [(1, ["a", "b"]), (2, ["a"])], ids=["1: the next one is committed half written", "2: refused"]
)
def test_an_end_that_arrives_late_ends_the_next_transaction_under_version_1(version: Any, seen: list[str]) -> None:
    """KAFKA-17754: a commit is sent twice, and its first copy arrives when the next transaction is half written."""
    lab = TransactionLab(BrokerConfig(transaction_version=version))
    identity = lab.in_transaction("a")
    late = lab.end_late(identity, commit=True)
    answer = lab.end(identity, commit=True)
    lab.complete()
    following = Identity(answer.producer_id, answer.producer_epoch) if version > 1 else identity
    assert lab.add(following) == ErrorCode.NONE
    assert lab.put(following, "b", 0 if version > 1 else 1) == ErrorCode.NONE
    lab.send(lab.coordinator, late)
    lab.run(1_000)
    assert lab.read() == seen


def test_a_decision_counts_once_it_is_committed() -> None:
    """The coordinator dies with a decision that nobody else has: its successor knows of an open transaction."""
    lab = TransactionLab()
    identity = lab.in_transaction("a")
    lab.network.cut([Link(*pair) for pair in ((1, 0), (1, 2), (0, 1), (2, 1))])
    correlation = lab.correlation()
    lab.send(1, messages.EndTxn(correlation, "one", *identity, True))
    lab.run(300)
    assert lab.answer(correlation) is None
    lab.kill(1)
    lab.network.heal(lab.links)
    lab.wait(lambda: lab.coordinator in {0, 2})
    lab.run(1_000)
    assert lab.read() == []
    assert lab.end(identity, commit=False).error == ErrorCode.NONE
    lab.complete()
    assert lab.markers() == [(False, 1)]


@pytest.mark.parametrize("commit", [True, False])
def test_a_new_coordinator_goes_on_with_what_was_decided(*, commit: bool) -> None:
    """No marker is written before the coordinator dies; its successor writes them."""
    lab = TransactionLab()
    identity = lab.in_transaction("a")
    lab.lose = lambda source, target, message: source == 1 and isinstance(message, messages.WriteTxnMarkers)
    assert lab.end(identity, commit=commit).error == ErrorCode.NONE
    assert lab.markers() == []
    lab.kill(1)
    lab.complete()
    assert lab.markers() == [(commit, 1)]
    assert lab.read() == ["a"] * commit


def test_the_answer_to_a_late_marker_does_not_count_for_the_next_transaction() -> None:
    """A marker is sent again, and its first copy arrives when the marker of the next transaction is on its way."""
    lab = TransactionLab()
    identity = lab.in_transaction("a")
    lab.lose = lambda source, target, message: isinstance(message, messages.WriteTxnMarkers)
    answer = lab.end(identity, commit=True)
    lab.run(200)
    first = next(message for _, _, message in lab.sent if isinstance(message, messages.WriteTxnMarkers))
    lab.lose = lambda source, target, message: False
    lab.complete()
    following = Identity(answer.producer_id, answer.producer_epoch)
    assert lab.add(following) == lab.put(following, "b", 0) == ErrorCode.NONE
    lab.lose = lambda source, target, message: isinstance(message, messages.WriteTxnMarkers) and message is not first
    assert lab.end(following, commit=True).error == ErrorCode.NONE
    lab.deliver(1, 0, first)
    lab.run(200)
    lab.lose = lambda source, target, message: False
    lab.complete()
    assert lab.markers() == [(True, 1), (True, 2)]
    assert lab.read() == ["a", "b"]


def test_only_the_leader_of_the_log_is_a_coordinator() -> None:
    lab = TransactionLab()
    answer = lab.ask(0, lambda c: messages.InitProducerId(c, "one", 60_000))
    assert answer.error == ErrorCode.NOT_COORDINATOR
    lab.ask(CONTROLLER, lambda c: messages.MoveLeader(c, LOG.topic, 0, 0))
    lab.wait(lambda: lab.coordinator == 0)
    lab.run(1_000)
    assert lab.ask(1, lambda c: messages.InitProducerId(c, "one", 60_000)).error == ErrorCode.NOT_COORDINATOR
    assert lab.init().producer_epoch == 0


def test_who_waits_for_a_coordinator_that_is_deposed_is_told() -> None:
    """The decision is on its log and not committed: the client asks the next coordinator."""
    lab = TransactionLab()
    identity = lab.in_transaction("a")
    lab.lose = lambda source, target, message: target == 1 and isinstance(message, messages.Fetch)
    ends = lab.end_late(identity, commit=True)
    lab.send(1, ends)
    lab.run(100)
    assert lab.answer(ends.correlation) is None
    lab.ask(CONTROLLER, lambda c: messages.MoveLeader(c, LOG.topic, 0, 0))
    lab.wait(lambda: lab.coordinator == 0)
    lab.run(100)
    assert lab.answer(ends.correlation).error == ErrorCode.NOT_COORDINATOR


def test_a_coordinator_that_has_not_read_its_log_says_so() -> None:
    """The log that it read is not committed yet: followers do not fetch from it."""
    lab = TransactionLab()
    lab.init()
    lab.lose = lambda source, target, message: target == 2 and isinstance(message, messages.Fetch)
    lab.ask(CONTROLLER, lambda c: messages.MoveLeader(c, LOG.topic, 0, 2))
    lab.run(300)
    replica = lab.brokers[2].replicas[LOG]
    assert replica.leading
    assert replica.high_watermark < replica.log.end_offset
    answer = lab.ask(2, lambda c: messages.InitProducerId(c, "one", 60_000))
    assert answer.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.lose = lambda source, target, message: False
    lab.run(1_500)
    assert lab.init().producer_epoch == 1


def test_producers_and_transactions_are_described_where_they_are_known() -> None:
    lab = TransactionLab()
    identity = lab.in_transaction("a", "b")
    lab.run(500)
    for node in range(3):
        (producer,) = lab.log(node).producers.described()
        assert producer == KnownProducer(*identity, 1, NONE, NONE, 0)
    error, records = lab.brokers[1].transactional_ids
    assert (error, records["one"].state, records["one"].partitions) == (NO_ERROR, TransactionState.ONGOING, (AT,))
    assert lab.brokers[0].transactional_ids == (ErrorCode.NOT_COORDINATOR, {})
    lab.end(identity, commit=False)
    lab.complete()
    (producer,) = lab.log(0).producers.described()
    assert producer == KnownProducer(identity.producer_id, 1, NONE, NONE, 0, NONE)
    assert lab.brokers[1].transactional_ids[1]["one"].state is TransactionState.COMPLETE_ABORT


def test_a_transactional_id_is_described_once_its_producer_is_committed() -> None:
    lab = TransactionLab()
    lab.lose = lambda source, target, message: target == 1 and isinstance(message, messages.Fetch)
    lab.send(1, messages.InitProducerId(lab.correlation(), "one", 60_000))
    lab.run(200)
    assert lab.brokers[1].replicas[LOG].log.end_offset == 1
    assert lab.brokers[1].transactional_ids == (NO_ERROR, {})
    lab.lose = lambda source, target, message: False
    lab.run(2_000)
    assert lab.brokers[1].transactional_ids[1]["one"].producer_epoch == 0


def test_transactions_of_a_partition_survive_truncation_and_restart() -> None:
    lab = TransactionLab()
    lab.end(lab.in_transaction("a"), commit=False)
    lab.complete()
    lab.kill(0)
    lab.start(0)
    lab.wait(lab.settled)
    for node in range(3):
        assert [each.first_offset for each in lab.log(node).producers.transactions.aborted] == [0]
    log = lab.log(2)
    log.truncate_to(1)
    assert log.producers.transactions.open == {log.batches[0].producer_id: 0}
    assert log.producers.transactions.aborted == []
