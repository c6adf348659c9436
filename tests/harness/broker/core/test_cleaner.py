"""Rules 31 and 32: what one pass of a cleaner leaves of a log, and what a later one does."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.broker.core.cleaner import Cleaner, Pass, cleaner_of
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import Deletion, Marker, RecordBatch
from harness.broker.core.types import NONE, TopicConfig
from tests.harness.broker.core.compacted import COMPACTED, SECOND_US, append, records, table

NEVER = 10**9


def log_of(*keys: str, roll: bool = True) -> MemoryLog:
    """A log of one record a batch and second: "a" writes key a, "-a" deletes it; a last segment begins behind them."""
    log = MemoryLog()
    for second, key in enumerate(keys):
        append(log, key, second * SECOND_US)
    if roll:
        log.roll()
        append(log, "end", len(keys) * SECOND_US)
    return log


def clean(log: MemoryLog, at_s: float = NEVER, high_watermark: int | None = None, **changed: Any) -> Pass | None:
    """One pass, with a dirty ratio of 0 and no lag unless a test says so."""
    cleaner = cleaner_of(Cleaner, TopicConfig(**{**COMPACTED, **changed}))
    assert cleaner is not None
    return cleaner.clean(log, log.end_offset if high_watermark is None else high_watermark, int(at_s * SECOND_US))


def test_a_topic_that_keeps_all_records_has_no_cleaner() -> None:
    assert cleaner_of(Cleaner, TopicConfig()) is None
    assert cleaner_of(Cleaner, TopicConfig(cleanup_policy="compact,delete")) is not None


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    log = log_of("a", "b", "a", "c", "b", "a")
    assert clean(log) == Pass(bound=6, records=3, tombstones=0)
    assert records(log) == [(3, "c"), (4, "b"), (5, "a"), (6, "end")]
    assert (log.end_offset, log.start_offset, log.cleaned_to) == (7, 0, 6)


def test_of_a_batch_the_records_that_stay_keep_their_offsets() -> None:
    log = MemoryLog()
    log.append(RecordBatch(3, 300, ((b"a", b"0"), (b"b", b"1"), (b"a", b"2")), 0, 0, stamped_us=0))
    log.roll()
    append(log, "end", 0)
    assert clean(log) == Pass(3, 1, 0)
    (batch, _) = log.batches
    assert (batch.count, batch.next_offset, batch.offsets, batch.size_bytes) == (3, 3, (1, 2), 200)
    assert batch.records == ((b"b", b"1"), (b"a", b"2"))
    assert clean(log) is None, "nothing is dirty any more"


@pytest.mark.parametrize(("high_watermark", "left"), [(7, [2, 3, 4, 5, 6]), (3, [1, 2, 3, 4, 5, 6]), (0, range(7))])
def test_nothing_above_the_high_watermark_or_in_the_newest_segment_goes(high_watermark: int, left: Any) -> None:
    log = log_of("a", "b", "a", "b")
    append(log, "a", 5 * SECOND_US)
    append(log, "b", 6 * SECOND_US)
    assert log.segments == [0, 4]
    clean(log, high_watermark=high_watermark)
    assert [offset for offset, _ in records(log)] == [*left]


def test_a_high_watermark_inside_a_batch_leaves_the_whole_batch() -> None:
    log = MemoryLog()
    append(log, "a", 0)
    log.append(RecordBatch(2, 200, ((b"a", b"1"), (b"a", b"2")), 1, 0, stamped_us=0))
    log.roll()
    append(log, "end", 0)
    clean(log, high_watermark=2)
    assert (records(log), log.cleaned_to) == ([(0, "a"), (1, "a"), (2, "a"), (3, "end")], 1)


def test_a_segment_with_a_young_record_and_all_after_it_stay() -> None:
    log = MemoryLog()
    for second, key in enumerate(("a", "a", "a", "a")):
        append(log, key, second * SECOND_US)
        log.roll()
    append(log, "end", 4 * SECOND_US)
    assert clean(log, at_s=7.0, min_compaction_lag_ms=10_000) is None
    assert clean(log, at_s=11.5, min_compaction_lag_ms=10_000) == Pass(2, 1, 0)
    assert records(log) == [(1, "a"), (2, "a"), (3, "a"), (4, "end")]


def test_a_pass_waits_for_enough_that_is_dirty() -> None:
    log = log_of("a", "b", "c", "d")
    assert clean(log, min_cleanable_dirty_ratio=0.5) == Pass(4, 0, 0), "all of it was dirty"
    log.roll()
    append(log, "end", 9 * SECOND_US)
    assert clean(log, min_cleanable_dirty_ratio=0.5) is None, "a fifth of it is dirty"
    assert clean(log, min_cleanable_dirty_ratio=0.1) == Pass(5, 0, 0)


def test_a_bad_batch_is_in_the_way() -> None:
    log = log_of("a", "a", "b")
    log.damage(2)
    assert clean(log) is None
    assert len(log.batches) == 4


def test_a_tombstone_that_waits_for_replicas_goes_when_all_are_past_it() -> None:
    log = log_of("a", "-a", "b")
    cleaner = cleaner_of(Cleaner, TopicConfig(**COMPACTED))
    assert cleaner is not None
    for removable_to, stays in ((0, True), (1, True), (2, False)):
        cleaner.clean(log, log.end_offset, 2**50 * (removable_to + 1), removable_to)
        assert ("-a" in [name for _, name in records(log)]) is stays
        log.roll()
        append(log, "end", 9 * SECOND_US)


def test_a_tombstone_goes_in_a_later_pass_when_its_time_is_over() -> None:
    log = log_of("a", "-a", "b")
    assert clean(log, at_s=10, delete_retention_ms=5_000) == Pass(3, 1, 0)
    assert records(log) == [(1, "-a"), (2, "b"), (3, "end")]
    assert log.batches[0].delete_horizon_us == 15 * SECOND_US
    for at_s, left in ((14.9, [1, 2, 3, 4]), (15.0, [2, 3, 4, 5])):
        log.roll()
        append(log, f"after {at_s}", int(at_s * SECOND_US))
        clean(log, at_s=at_s, delete_retention_ms=5_000)
        assert [offset for offset, _ in records(log)] == left
    assert table(log.batches).keys() == {"b", "end", "after 14.9", "after 15.0"}


def test_without_anything_new_to_clean_a_tombstone_stays() -> None:
    log = log_of("a", "-a", "b")
    assert clean(log, at_s=10, delete_retention_ms=0) is not None
    assert clean(log, at_s=NEVER, delete_retention_ms=0) is None
    assert (1, "-a") in records(log)


def test_a_tombstone_that_a_later_record_replaces_goes_at_once() -> None:
    log = log_of("-a", "a")
    assert clean(log, at_s=10) == Pass(2, 0, 1)
    assert records(log) == [(1, "a"), (2, "end")]


def test_a_copy_of_a_tombstone_keeps_its_time() -> None:
    leader, copy = log_of("a", "-a", "b"), MemoryLog()
    clean(leader, at_s=10, delete_retention_ms=5_000)
    for batch in leader.batches:
        copy.skip_to(batch.base_offset)
        copy.append(batch)
        copy.roll()
    clean(copy, at_s=16, delete_retention_ms=5_000)
    assert [offset for offset, _ in records(copy)] == [2, 3]


def test_a_producer_is_known_by_its_last_batch_whatever_has_become_of_the_records() -> None:
    log = MemoryLog()
    for sequence in range(2):
        append(log, "a", 0, producer=(7, 0, sequence))
    append(log, "a", 0, producer=(8, 0, 0))
    append(log, "b", 0)
    log.roll()
    append(log, "end", 0)
    clean(log)
    assert [(batch.base_offset, len(batch.records)) for batch in log.batches] == [(1, 0), (2, 1), (3, 1), (4, 1)]
    log.truncate_to(4)
    assert log.producers.last_sequence(7) == 1
    assert log.producers.last_sequence(8) == 0


def test_the_last_batch_of_a_pass_stays_so_that_a_reader_gets_past_it() -> None:
    log = log_of("a", "-a")
    log.batches[1] = RecordBatch(1, 100, (Deletion(b"a", b""),), 1, 0, stamped_us=0, delete_horizon_us=0)
    assert clean(log, at_s=10) == Pass(2, 1, 1)
    assert [(batch.base_offset, batch.records) for batch in log.batches[:-1]] == [(1, ())]


def test_a_batch_of_the_leaders_own_stays() -> None:
    log = MemoryLog()
    log.append(RecordBatch(1, 0, (), 0, 0, stamped_us=0))
    append(log, "a", 0)
    log.roll()
    append(log, "end", 0)
    clean(log)
    assert [batch.base_offset for batch in log.batches] == [0, 1, 2]


def test_a_segment_ends_with_the_first_batch_that_comes_later_than_its_time(lab: Any) -> None:
    cluster = lab(None, TopicConfig(**{**COMPACTED, "segment_ms": 1_000}))
    for _ in range(3):
        cluster.write_ok(0, ((b"a", b""),))
        cluster.run(600)
    assert cluster.log(0).segments == [0, 2]
    cluster.settle()
    assert cluster.log(1).segments == cluster.log(2).segments == [0, 2]


def test_what_was_cleaned_stays_so_through_a_loss_of_power() -> None:
    log = log_of("a", "a", "b")
    clean(log)
    assert (log.flushed_offset, log.durable_offset) == (3, 3)
    assert log.lose_unflushed() == 1
    log.recover()
    assert (records(log), log.end_offset, log.cleaned_to) == ([(1, "a"), (2, "b")], 3, 3)


def test_batches_of_other_topics_have_no_time(lab: Any) -> None:
    cluster = lab()
    cluster.write_ok(0, "x")
    assert [(batch.stamped_us, batch.kept) for batch in cluster.log(0).batches] == [(NONE, None)] * 2


def in_transactions(*steps: str) -> MemoryLog:
    """A log of one producer under version 2: "a" writes key a, "+" and "!" are the markers of a commit and an abort."""
    log, producer, epoch = MemoryLog(), 7, 0
    for step in steps:
        offset, second = log.end_offset, log.end_offset * SECOND_US
        if step in {"+", "!"}:
            epoch += 1
            kind = Marker(step == "+", 0, 2)
            end = RecordBatch(1, 0, (), offset, 0, producer, epoch, NONE, transactional=True, marker=kind)
            log.append(replace(end, stamped_us=second))
        else:
            pair = ((step.encode(), str(offset).encode()),)
            record = RecordBatch(1, 100, pair, offset, 0, producer, epoch, 0, transactional=True)
            log.append(replace(record, stamped_us=second))
    return log


def after_another(log: MemoryLog, key: str) -> MemoryLog:
    """The log with one more plain record in a segment that is not written to any more."""
    log.roll()
    append(log, key, log.end_offset * SECOND_US)
    log.roll()
    append(log, f"end of {key}", log.end_offset * SECOND_US)
    return log


def test_what_was_aborted_goes_and_replaces_nothing() -> None:
    log = after_another(in_transactions("a", "+", "a", "!", "b", "+"), "c")
    clean(log)
    assert [offset for offset, _ in records(log)] == [0, 4, 6, 7]
    assert [batch.base_offset for batch in log.batches if batch.marker is not None] == [1, 3, 5]


def test_nothing_of_an_open_transaction_or_after_it_goes() -> None:
    log = after_another(in_transactions("a", "+", "a", "+", "b"), "b")
    append(log, "b", 9 * SECOND_US)
    log.roll()
    append(log, "end", 10 * SECOND_US)
    assert clean(log) == Pass(bound=4, records=1, tombstones=0)
    assert [offset for offset, _ in records(log)] == [2, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(("retention_ms", "late"), [(5_000, 4), (1_000, 3), (0, 3)])
def test_a_marker_goes_when_its_transaction_has_no_batch_and_its_time_is_over(retention_ms: int, late: int) -> None:
    """The first pass empties the transaction, the second one finds nothing of it, and one after that is late enough."""
    log = after_another(in_transactions("k", "+", "a", "!", "b", "+"), "c")
    left = []
    for at_s in (20, 21, 22, 26):
        clean(log, at_s=at_s, delete_retention_ms=retention_ms)
        left.append([batch.base_offset for batch in log.batches if batch.marker is not None])
        assert log.producers.transactions.aborted == []  # Without the marker it would hide b.
        after_another(log, f"d{at_s}")
    assert left == [[1, 3, 5] if number < late else [1, 5] for number in (1, 2, 3, 4)]


def test_a_marker_stays_with_a_record_of_its_transaction_and_as_the_last_of_its_producer() -> None:
    log = after_another(in_transactions("a", "+", "b", "!"), "c")
    for at_s in (20, 40, 60, 80):
        clean(log, at_s=at_s, delete_retention_ms=0)
        after_another(log, f"d{at_s}")
    assert [batch.base_offset for batch in log.batches if batch.marker is not None] == [1, 3]
