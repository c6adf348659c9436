"""Rule 47: where a log begins once its oldest segments are too old, and what becomes of those who come too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import (
    EARLIEST,
    Fetch,
    FetchPartition,
    ListOffsets,
    Marker,
    Produce,
    RecordBatch,
)
from harness.broker.core.producers import Producers
from harness.broker.core.replica import Replica
from harness.broker.core.retention import ExpiredPart, Retention, retention_of
from harness.broker.core.transactions import marker_batch
from harness.broker.core.types import ACKS_ALL, NO_NODE, NONE, ErrorCode, TopicConfig
from harness.ground.observations import LogExpired
from harness.worlds.simulated.invariants import InvariantBrokenError
from tests.harness.broker.core.compacted import SECOND_US, append, records
from tests.harness.worlds.simulated.driven import AT

MakeLab = Callable[..., Any]
ABORT = Marker(commit=False, coordinator_epoch=0, transaction_version=2)
RETAINED = TopicConfig(retention_ms=5_000, segment_ms=1_000, min_insync_replicas=2)


def log_of(*keys: str) -> MemoryLog:
    """A log of one record a second; each begins a segment, and the second one a leader epoch."""
    log = MemoryLog()
    for second, key in enumerate(keys):
        log.roll()
        append(log, key, second * SECOND_US, epoch=min(second, 1))
    return log


def expire(log: MemoryLog, at_s: float, high_watermark: int | None = None) -> ExpiredPart | None:
    retention = retention_of(Retention, RETAINED)
    assert retention is not None
    return retention.expire(log, log.end_offset if high_watermark is None else high_watermark, int(at_s * SECOND_US))


@pytest.mark.parametrize(
    ("config", "expires"),
    [
        (TopicConfig(), False),
        (TopicConfig(retention_ms=NONE), False),
        (TopicConfig(retention_ms=0), True),
        (TopicConfig(retention_ms=0, cleanup_policy="compact"), False),
        (TopicConfig(retention_ms=0, cleanup_policy="compact,delete"), True),
    ],
)
def test_a_topic_that_keeps_its_records_has_no_retention(config: TopicConfig, expires: bool) -> None:
    assert (retention_of(Retention, config) is not None) is expires


@pytest.mark.parametrize(("at_s", "left"), [(5, "abcd"), (5.1, "bcd"), (7.1, "d"), (8, "d"), (8.1, "")])
def test_segments_go_when_their_youngest_record_is_too_old(at_s: float, left: str) -> None:
    log = log_of(*"abcd")
    gone = 4 - len(left)
    assert expire(log, at_s) == (ExpiredPart(gone, gone) if gone else None)
    assert [name for _, name in records(log)] == [*left]
    assert (log.start_offset, log.end_offset, log.segments[0]) == (gone, 4, gone)
    assert expire(log, at_s) is None


def test_a_segment_stays_with_one_young_record() -> None:
    log = MemoryLog()
    append(log, "a", 0)
    append(log, "b", 9 * SECOND_US)
    assert expire(log, 10) is None
    assert expire(log, 15) == ExpiredPart(2, 2)


@pytest.mark.parametrize(("high_watermark", "start"), [(0, 0), (2, 2), (3, 3)])
def test_nothing_goes_that_is_not_committed(high_watermark: int, start: int) -> None:
    log = log_of(*"abcd")
    expire(log, 100, high_watermark)
    assert log.start_offset == start


@pytest.mark.parametrize(("start", "epochs"), [(1, [(1, 1)]), (2, [(1, 2)]), (4, [(1, 4)])])
def test_leader_epochs_begin_with_the_log(start: int, epochs: list[tuple[int, int]]) -> None:
    log = log_of(*"abcd")
    log.drop_below(start)
    assert log.epochs() == epochs


def test_what_is_dropped_stays_so_through_a_loss_of_power() -> None:
    log = log_of(*"abcd")
    expire(log, 7.1)
    log.lose_unflushed()
    log.recover()
    assert (log.start_offset, log.end_offset, log.flushed_offset, log.batches) == (3, 3, 3, [])


def test_a_log_that_is_cut_below_its_start_begins_again_there() -> None:
    log = log_of(*"abcd")
    log.drop_below(3)
    log.truncate_to(2)
    assert (log.start_offset, log.end_offset, log.batches, log.epochs()) == (2, 2, [], [])


def test_a_start_inside_a_batch_leaves_the_batch() -> None:
    log = MemoryLog()
    log.append(RecordBatch(3, 300, ((b"a", b"0"), (b"b", b"1"), (b"c", b"2")), 0, 0, stamped_us=0))
    log.drop_below(1)
    assert (log.start_offset, len(log.batches), log.read(1, 3, 100)) == (1, 1, log.batches)


def test_a_producer_stays_known_whose_batches_are_dropped() -> None:
    log = log_of()
    for number in range(3):
        append(log, "a", number * SECOND_US, producer=(7, 0, number))
    append(log, "b", 9 * SECOND_US)
    log.drop_below(3)
    log.truncate_to(3)
    assert log.producers.last_sequence(7) == 2
    log.reset_to(3)
    assert log.producers.last_sequence(7) == NONE


def test_a_transaction_that_began_in_what_is_dropped_holds_nobody_back() -> None:
    log = MemoryLog()
    log.append(RecordBatch(1, 100, ((b"a", b""),), 0, 0, 7, 0, 0, transactional=True))
    append(log, "b", 0)
    log.drop_below(1)
    log.truncate_to(1)
    assert log.producers.transactions.open == {}
    log.append(replace(marker_batch(7, 0, ABORT), base_offset=1, leader_epoch=0))
    assert log.producers.transactions.aborted == []


def test_the_state_of_producers_is_the_same_after_a_truncation() -> None:
    kept, cut = (log_of() for _ in range(2))
    for log in (kept, cut):
        for number in range(9):
            append(log, "a", 0, producer=(number % 2, 0, number // 2))
    cut.drop_below(6)
    cut.truncate_to(7)
    expected = Producers(kept.batches[:7])
    assert [cut.producers.last_sequence(n) for n in range(2)] == [expected.last_sequence(n) for n in range(2)]


# --- three brokers ---------------------------------------------------------------------------------------------------


def write(cluster: Any, *names: str, pause_ms: int = 1_100) -> None:
    for name in names:
        cluster.write_ok(cluster.state().leader, ((b"", name.encode()),))
        cluster.run(pause_ms)


def starts(cluster: Any) -> list[int]:
    return [cluster.log(node).start_offset for node in range(3)]


def fetched(cluster: Any, node: int, offset: int) -> Any:
    part = FetchPartition(AT, offset)
    return cluster.ask(node, lambda c: Fetch(c, NO_NODE, 100, (part,))).partitions[0]


def test_every_replica_lets_its_log_start_later_and_readers_are_told(lab: MakeLab) -> None:
    cluster = lab(None, RETAINED)
    write(cluster, *"abcd")
    assert starts(cluster) == [0, 0, 0]
    cluster.run(3_000)
    assert 0 < min(starts(cluster)) <= max(starts(cluster)) < 5
    assert {fact.records > 0 for fact in cluster.seen(LogExpired)} == {True}
    start = cluster.log(0).start_offset
    assert cluster.ask(0, lambda c: ListOffsets(c, AT, EARLIEST)).offset == start
    assert fetched(cluster, 0, start - 1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetched(cluster, 0, start).log_start_offset == start
    cluster.run(8_000)
    assert (starts(cluster), cluster.high_watermark(0)) == ([5, 5, 5], 5)
    write(cluster, "e")
    assert cluster.log_end(2) == 6


def test_a_replica_that_was_away_for_longer_begins_at_its_leaders_start(lab: MakeLab) -> None:
    cluster = lab(None, RETAINED)
    cluster.kill(2)
    cluster.fence(2)
    write(cluster, *"abcdefghij")
    start = cluster.log(0).start_offset
    assert start > 1
    cluster.start(2)
    cluster.settle()
    assert start <= cluster.log(2).start_offset <= cluster.log(0).start_offset
    assert cluster.log(2).batches[-3:] == cluster.log(0).batches[-3:]
    cluster.move_leader(2)
    cluster.wait(lambda: cluster.leads(2))
    write(cluster, "k")


def test_a_follower_takes_over_the_start_of_its_leaders_log(lab: MakeLab) -> None:
    cluster = lab(None, RETAINED)
    write(cluster, *"abc")
    cluster.log(0).drop_below(2)
    write(cluster, "d", pause_ms=10)
    cluster.settle()
    assert starts(cluster) == [2, 2, 2]


def test_no_high_watermark_and_no_stable_offset_is_below_the_start(lab: MakeLab) -> None:
    cluster = lab(None, RETAINED)
    opening = replace(RecordBatch(1, 100, ((b"", b"a"),), NONE, NONE, 7, 0, 0), transactional=True)
    cluster.ask(0, lambda c: Produce(c, AT, ACKS_ALL, 1_000, opening))
    write(cluster, *"abc")
    replica = cluster.brokers[0].replicas[AT]
    assert replica.stable_end() == 1
    cluster.log(0).drop_below(3)
    assert replica.stable_end() == 3
    write(cluster, "d")
    cluster.log(1).checkpoint_high_watermark(0)
    cluster.kill(1)
    cluster.fence(1)
    cluster.start(1)
    cluster.wait(lambda: AT in cluster.brokers[1].replicas)
    assert cluster.high_watermark(1) >= cluster.log(1).start_offset == 3


def test_logs_of_other_topics_start_where_they_began(lab: MakeLab) -> None:
    cluster = lab(None, TopicConfig(segment_ms=1))
    write(cluster, *"abcdefgh")
    assert starts(cluster) == [0, 0, 0]
    assert not cluster.seen(LogExpired)


# --- wrong forms -----------------------------------------------------------------------------------------------------


def test_a_retention_that_drops_what_is_not_committed_breaks_an_invariant(
    lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retention, "_bound", lambda _, log, __: log.end_offset)
    cluster = lab(None, RETAINED)
    write(cluster, "a")
    cluster.shrink(2)
    cluster.shrink(1)
    cluster.write(0, ((b"", b"lost"),), acks=1)
    cluster.run(8_000)
    cluster.write(0, ((b"", b"b"),), acks=1)
    with pytest.raises(InvariantBrokenError, match="high-watermark-on-log"):
        cluster.run(1_000)


def test_a_follower_that_keeps_what_its_leader_has_dropped_never_catches_up(
    lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Replica, "restart_at", lambda *_: None)
    cluster = lab(None, RETAINED)
    cluster.kill(2)
    cluster.fence(2)
    write(cluster, *"abcdefghij")
    cluster.start(2)
    cluster.run(10_000)
    assert cluster.state().isr == (0, 1)
    assert cluster.log_end(2) == 1
