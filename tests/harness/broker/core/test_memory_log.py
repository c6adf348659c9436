"""The log in memory: two ends, epochs, and what a power loss takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import EpochEnd, RecordBatch
from harness.broker.core.replica import UNDEFINED, end_of_epoch, truncation_offset
from harness.broker.core.types import ErrorCode


def filled(*batches: tuple[int, int]) -> MemoryLog:
    """A log of batches given as (count, leader epoch)."""
    log = MemoryLog()
    for count, epoch in batches:
        log.append(RecordBatch(count, 10, "r", log.end_offset, epoch))
    return log


def test_a_batch_has_to_follow_the_end() -> None:
    with pytest.raises(ValueError, match="does not follow the log's end 2"):
        filled((2, 0)).append(RecordBatch(1, 10, "r", 3, 0))


def test_power_loss_takes_the_unflushed_tail_only() -> None:
    log = filled((2, 0), (1, 1))
    log.flush()
    log.append(RecordBatch(3, 10, "r", 3, 2))
    assert log.lose_unflushed() == 3
    log.recover()
    assert (log.end_offset, log.flushed_offset, list(log.epochs())) == (3, 3, [(0, 0), (1, 2)])


def test_power_loss_tears_the_first_unflushed_batch_and_the_next_start_drops_it() -> None:
    log = filled((2, 0))
    log.flush()
    log.append(RecordBatch(3, 10, "r", 2, 0))
    log.append(RecordBatch(1, 10, "r", 5, 0))
    assert log.lose_unflushed() == 4
    assert [(batch.base_offset, batch.intact) for batch in log.batches] == [(0, True), (2, False)]
    log.recover()
    assert [(batch.base_offset, batch.intact) for batch in log.batches] == [(0, True)]


def test_a_disk_that_lies_calls_flushed_what_a_power_loss_takes() -> None:
    log = filled((2, 0))
    log.flush()
    log.lie()
    log.append(RecordBatch(3, 10, "r", 2, 0))
    log.flush()
    assert (log.flushed_offset, log.durable_offset) == (5, 2)
    assert log.lose_unflushed() == 3
    log.recover()
    assert (log.end_offset, log.flushed_offset) == (2, 2)


def test_a_disk_that_lies_keeps_no_checkpoint_and_no_leader_epoch_through_a_power_loss() -> None:
    """S33 on Kafka 4.3.1; a disk that obeys again has written both."""
    log = filled((2, 0))
    log.flush()
    log.checkpoint_high_watermark(1)
    log.lie()
    log.checkpoint_high_watermark(2)
    log.start_epoch(3, 2)
    assert (log.checkpointed_high_watermark(), [*log.epochs()]) == (2, [(0, 0), (3, 2)])
    log.lose_unflushed()
    assert (log.checkpointed_high_watermark(), [*log.epochs()]) == (1, [(0, 0)])
    log.append(RecordBatch(1, 10, "r", 2, 2))
    log.checkpoint_high_watermark(3)
    log.flush()
    log.obey()
    log.lose_unflushed()
    assert (log.checkpointed_high_watermark(), [*log.epochs()], log.end_offset) == (3, [(0, 0), (2, 2)], 3)


class TestBadBatches:
    """Rule 25: who reads a log again, from where on, and what a bad batch ends."""

    def test_a_start_after_an_unclean_stop_ends_the_log_before_the_first_bad_batch(self) -> None:
        log = filled((2, 0), (3, 1), (1, 2))
        log.damage(1)
        assert log.is_read_again
        log.recover()
        assert (log.end_offset, list(log.epochs())) == (2, [(0, 0)])

    def test_a_start_after_a_clean_stop_finds_nothing(self) -> None:
        log = filled((2, 0), (3, 1), (1, 2))
        log.close()
        log.damage(1)
        assert not log.is_read_again
        log.recover()
        assert log.end_offset == 6
        log.recover()
        assert log.end_offset == 2, "the stop before was clean, the one since then was not"


class TestProducers:
    """Rule 21: what the log knows of a producer is what it has from it, whatever has become of the rest."""

    def log(self) -> MemoryLog:
        log = MemoryLog()
        for sequence in range(4):
            log.append(self.batch(sequence))
        return log

    def batch(self, sequence: int) -> RecordBatch:
        return RecordBatch(1, 10, "r", sequence, 0, 7, 0, sequence)

    def knows(self, log: MemoryLog) -> list[int]:
        """The batches of which it has the place, and last the one that it waits for."""
        answers = [log.producers.validate(self.batch(sequence)) for sequence in range(5)]
        return [n for n, (error, batch) in enumerate(answers) if batch or error == ErrorCode.NONE]

    def test_truncation_keeps_what_stays_and_forgets_the_rest(self) -> None:
        log = self.log()
        assert self.knows(log) == [0, 1, 2, 3, 4]
        log.truncate_to(2)
        assert self.knows(log) == [0, 1, 2]

    def test_a_start_that_ends_the_log_at_a_bad_batch_forgets_what_was_behind(self) -> None:
        log = self.log()
        log.damage(1)
        log.recover()
        assert self.knows(log) == [0, 1]

    def test_a_loss_of_power_takes_what_was_not_flushed_from_memory_too(self) -> None:
        log = self.log()
        log.truncate_to(3)
        log.flush()
        log.append(self.batch(3))
        log.lose_unflushed()
        log.recover()
        assert self.knows(log) == [0, 1, 2, 3]

    def test_a_reset_log_knows_nobody(self) -> None:
        log = self.log()
        log.reset_to(9)
        assert log.producers.last_sequence(7) == -1


def test_a_read_returns_whole_batches_from_the_one_that_holds_the_offset() -> None:
    log = filled((2, 0), (3, 0), (1, 0))
    assert [b.base_offset for b in log.read(3, 6, 1_000)] == [2, 5]
    assert [b.base_offset for b in log.read(0, 4, 1_000)] == [0]
    assert [b.base_offset for b in log.read(0, 6, 1)] == [0]
    assert list(log.read(6, 6, 1_000)) == []


def test_truncation_inside_a_batch_drops_it_whole() -> None:
    log = filled((2, 0), (3, 1), (1, 2))
    log.truncate_to(4)
    assert (log.end_offset, list(log.epochs())) == (2, [(0, 0), (1, 2)])


def test_an_epoch_that_held_nothing_gives_way_to_the_next_at_the_same_offset() -> None:
    log = filled((2, 0))
    log.start_epoch(1, 2)
    log.start_epoch(3, 2)
    log.start_epoch(2, 2)
    assert list(log.epochs()) == [(0, 0), (3, 2)]


def test_epochs_never_fall_along_a_log() -> None:
    with pytest.raises(ValueError, match="epoch 1 does not follow epoch 2"):
        filled((1, 0), (1, 2), (1, 1))


def test_a_reset_log_starts_empty_at_its_offset() -> None:
    log = filled((2, 0))
    log.checkpoint_high_watermark(2)
    log.reset_to(9)
    assert (log.start_offset, log.end_offset, log.flushed_offset, list(log.epochs())) == (9, 9, 9, [])


EPOCHS = [(1, 0), (3, 10), (4, 15)]


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (4, EpochEnd(4, 20)),
        (3, EpochEnd(3, 15)),
        (2, EpochEnd(1, 10)),
        (1, EpochEnd(1, 10)),
        (0, EpochEnd(0, 0)),
        (5, UNDEFINED),
        (-1, UNDEFINED),
    ],
)
def test_an_epoch_ends_where_the_next_known_one_starts(epoch: int, end: EpochEnd) -> None:
    assert end_of_epoch(EPOCHS, epoch, 20) == end


def test_without_epochs_nothing_can_be_said() -> None:
    assert end_of_epoch([], 0, 20) == UNDEFINED


def test_a_follower_that_does_not_know_the_leaders_epoch_has_to_ask_again() -> None:
    assert truncation_offset([(1, 0), (3, 8)], 12, EpochEnd(2, 9)) == (8, False)


histories = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=8)


@given(shared=histories, own=histories, others=histories)
def test_comparing_epochs_finds_the_end_of_what_two_logs_share(
    shared: list[tuple[int, int]], own: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    """Epochs grow along a log and no two leaders share one: then the comparison never cuts too little."""
    epoch, common = 0, []
    for count, step in shared:
        epoch += step
        common.append((count, epoch))
    follower = filled(*common, *((count, epoch + 1 + 2 * i) for i, (count, _) in enumerate(own)))
    leader = filled(*common, *((count, epoch + 2 + 2 * i) for i, (count, _) in enumerate(others)))
    leader.start_epoch(epoch + 100, leader.end_offset)  # The present epoch: larger than any that a follower knows.
    for _ in range(20):
        last = follower.epochs()[-1][0]
        end = end_of_epoch(leader.epochs(), last, leader.end_offset)
        if end.leader_epoch == last and end.end_offset >= follower.end_offset:
            break
        follower.truncate_to(truncation_offset(follower.epochs(), follower.end_offset, end)[0])
    assert follower.end_offset == sum(count for count, _ in common)
