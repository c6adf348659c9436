"""Idempotent producers (rule 21): what is recognised, where it is remembered, and the two stories that need it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.messages import InitProducerId, ProduceResponse, RecordBatch
from harness.broker.core.producers import BATCHES_KEPT, LAST_SEQUENCE, PRODUCERS_KEPT, Producers
from harness.broker.core.types import NONE, BrokerConfig, ErrorCode, TopicConfig
from harness.ground.observations import SequenceRefused


def batch(sequence: int, count: int = 1, epoch: int = 0, producer: int = 7, offset: int = 0) -> RecordBatch:
    return RecordBatch(count, 100, "r", offset, 0, producer, epoch, sequence)


def knowing(*batches: RecordBatch) -> Producers:
    return Producers(batches)


def test_any_of_the_last_five_batches_is_recognised_and_older_ones_are_not() -> None:
    producers = knowing(*(batch(number, offset=100 + number) for number in range(7)))
    for number in range(2, 7):
        error, appended_batch = producers.validate(batch(number))
        assert error == ErrorCode.NONE
        assert appended_batch is not None
        assert appended_batch.base_offset == 100 + number
    assert producers.validate(batch(1)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
    assert BATCHES_KEPT == 5


def test_a_gap_is_refused_and_the_next_sequence_is_taken() -> None:
    producers = knowing(batch(0, count=3))
    assert producers.validate(batch(4)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
    assert producers.validate(batch(3)) == (ErrorCode.NONE, None)


def test_a_batch_that_only_begins_like_a_known_one_is_no_duplicate() -> None:
    assert knowing(batch(0, count=3)).validate(batch(0, count=2)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)


def test_sequences_wrap() -> None:
    assert knowing(batch(LAST_SEQUENCE - 1, count=2)).validate(batch(0)) == (ErrorCode.NONE, None)
    assert knowing(batch(LAST_SEQUENCE, count=3)).validate(batch(2)) == (ErrorCode.NONE, None)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Producers().validate(batch(41)) == (ErrorCode.NONE, None)


def test_a_new_epoch_begins_at_zero_and_an_old_one_is_refused() -> None:
    producers = knowing(batch(5, epoch=1))
    assert producers.validate(batch(0, epoch=2)) == (ErrorCode.NONE, None)
    assert producers.validate(batch(6, epoch=2)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)
    assert producers.validate(batch(6, epoch=0)) == (ErrorCode.INVALID_PRODUCER_EPOCH, None)


def test_what_a_coordinator_writes_for_a_producer_has_an_epoch_and_no_number() -> None:
    producers = knowing(batch(NONE, epoch=1))
    assert producers.validate(batch(NONE, epoch=1)) == (ErrorCode.NONE, None)
    assert producers.validate(batch(NONE, epoch=0)) == (ErrorCode.INVALID_PRODUCER_EPOCH, None)


def test_batches_of_an_earlier_epoch_are_no_duplicates() -> None:
    """A producer that begins a new epoch counts from 0 again, so its batches have the numbers of others before."""
    producers = knowing(batch(0), batch(1, offset=1), batch(2, offset=2), batch(0, epoch=1, offset=3))
    assert producers.validate(batch(1, epoch=1)) == (ErrorCode.NONE, None)
    assert producers.validate(batch(2, epoch=1)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)


def test_as_many_producers_are_remembered_as_is_said() -> None:
    producers = knowing(*(batch(0, producer=number) for number in range(PRODUCERS_KEPT)))
    assert producers.validate(batch(9, producer=0)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)


def test_the_producer_that_was_silent_longest_is_forgotten_first() -> None:
    producers = knowing(*(batch(0, producer=number) for number in range(PRODUCERS_KEPT)), batch(1, producer=0))
    producers.record(batch(0, producer=PRODUCERS_KEPT))
    assert producers.validate(batch(9, producer=1)) == (ErrorCode.NONE, None)
    assert producers.validate(batch(9, producer=0)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None)


@pytest.mark.parametrize(("producer", "copies"), [((NONE, NONE, NONE), 2), ((7, 0, 0), 1)])
def test_s22_a_retry_after_a_lost_answer_is_a_duplicate_only_without_idempotence(
    lab: Any, producer: tuple[int, int, int], copies: int
) -> None:
    cluster = lab(topic=TopicConfig(min_insync_replicas=2))
    cluster.lose = lambda source, target, message: isinstance(message, ProduceResponse)
    cluster.write(0, "x", producer=producer)
    cluster.run(50)
    cluster.heal()
    retry = cluster.write(0, "x", producer=producer)
    cluster.run(50)
    assert cluster.outcome(retry) == ErrorCode.NONE
    assert cluster.answer(retry).base_offset == (1 if copies == 1 else 2)
    assert cluster.committed().count("x") == copies


@pytest.mark.parametrize(("producer", "copies"), [((NONE, NONE, NONE), 2), ((7, 0, 0), 1)])
def test_s21_a_retry_after_an_uncertain_write_is_a_duplicate_only_without_idempotence(
    lab: Any, producer: tuple[int, int, int], copies: int
) -> None:
    cluster = lab(topic=TopicConfig(min_insync_replicas=2))
    cluster.shrink(1, 2)
    uncertain = cluster.write(0, "refused", producer=producer)
    cluster.run(20)
    assert cluster.outcome(uncertain) == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.heal()
    cluster.settle()
    cluster.lose = lambda source, target, message: {source, target} <= {0, 1, 2}
    first = cluster.write(0, "x", timeout_ms=500, producer=producer)
    cluster.run(600)
    assert cluster.outcome(first) == ErrorCode.REQUEST_TIMED_OUT
    cluster.heal()
    cluster.settle()
    retry = cluster.write(0, "x", producer=producer)
    cluster.run(100)
    assert cluster.outcome(retry) == ErrorCode.NONE
    assert cluster.committed().count("x") == copies


def test_a_new_leader_recognises_a_retry_because_followers_remember_too(lab: Any) -> None:
    cluster = lab()
    first = cluster.write(0, "x", producer=(7, 0, 0))
    cluster.run(50)
    cluster.kill(0)
    cluster.fence(0)
    cluster.wait(lambda: cluster.leads(1))
    retry = cluster.write(1, "x", producer=(7, 0, 0))
    cluster.run(50)
    assert cluster.answer(retry).base_offset == cluster.answer(first).base_offset
    assert cluster.committed().count("x") == 1


def test_a_restarted_leader_recognises_a_retry_from_its_log(lab: Any) -> None:
    cluster = lab()
    cluster.write(0, "x", producer=(7, 0, 0))
    cluster.run(50)
    cluster.kill(0, 1, 2)
    cluster.fence(0, 1, 2)
    for node in range(3):
        cluster.start(node)
    cluster.settle()
    cluster.write(cluster.state().leader, "x", producer=(7, 0, 0))
    cluster.run(50)
    assert cluster.committed().count("x") == 1


def test_a_leader_that_lacks_batches_of_a_producer_says_so(lab: Any) -> None:
    cluster = lab()
    for number in (0, 1, 5):
        cluster.write(0, "x", producer=(7, 0, number))
    cluster.run(50)
    (refused,) = cluster.seen(SequenceRefused)
    assert (refused.producer_id, refused.sequence, refused.last_sequence) == (7, 5, 1)


@pytest.mark.parametrize(
    ("rule", "again"), [("all-batches", []), ("last-batch", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])]
)
def test_a_broker_that_was_started_again_knows_all_batches_from_its_log_or_as_kafka_does_the_last(
    lab: Any, rule: Any, again: list[ErrorCode]
) -> None:
    cluster = lab(BrokerConfig(producers_after_restart=rule))
    first, last = (cluster.write(0, value, producer=(7, 0, number)) for number, value in enumerate("xy"))
    cluster.run(50)
    cluster.kill(0, 1, 2)
    cluster.fence(0, 1, 2)
    for node in range(3):
        cluster.start(node)
    cluster.settle()
    leader = cluster.state().leader
    refused = cluster.write(leader, "x", producer=(7, 0, 0))
    repeated = cluster.write(leader, "y", producer=(7, 0, 1))
    cluster.run(50)
    assert cluster.answer(repeated).base_offset == cluster.answer(last).base_offset
    assert [error for error in [cluster.answer(refused).error] if error] == again
    assert again or cluster.answer(refused).base_offset == cluster.answer(first).base_offset
    assert cluster.committed()[-2:] == ["x", "y"]


def test_truncation_forgets_what_it_cut_off(lab: Any) -> None:
    cluster = lab()
    cluster.isolate(0)
    cluster.fence(0)
    cluster.write(0, "cut off", acks=1, producer=(7, 0, 0))
    cluster.run(50)
    cluster.heal()
    cluster.settle()
    cluster.move_leader(0)
    cluster.settle()
    again = cluster.write(0, "again", producer=(7, 0, 0))
    cluster.run(50)
    assert cluster.outcome(again) == ErrorCode.NONE
    assert cluster.committed() == ["base", "again"]


def test_a_duplicate_waits_for_its_commitment_like_the_first(lab: Any) -> None:
    cluster = lab()
    cluster.lose = lambda source, target, message: {source, target} <= {0, 1, 2}
    first = cluster.write(0, "x", producer=(7, 0, 0))
    retry = cluster.write(0, "x", producer=(7, 0, 0))
    cluster.run(300)
    assert (cluster.outcome(first), cluster.outcome(retry)) == (None, None)
    cluster.heal()
    cluster.settle()
    assert (cluster.outcome(first), cluster.outcome(retry)) == (ErrorCode.NONE, ErrorCode.NONE)


def test_no_two_producers_get_the_same_id(lab: Any) -> None:
    cluster = lab()
    given = [cluster.ask(node, InitProducerId) for node in (0, 1, 2, 0, 1, 2)]
    assert all(answer.error == ErrorCode.NONE for answer in given)
    assert len({answer.producer_id for answer in given}) == 6


def test_a_broker_without_a_block_of_ids_asks_the_client_to_come_back(lab: Any) -> None:
    cluster = lab()
    cluster.brokers[0]._producer_ids._left = 0
    assert cluster.ask(0, InitProducerId).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    cluster.run(10)
    assert cluster.ask(0, InitProducerId).error == ErrorCode.NONE
