"""Rule 33: a log with gaps against a naive twin, and copies of one log that are cleaned at times of their own."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.broker.core.cleaner import Cleaner
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import RecordBatch
from harness.broker.core.types import TopicConfig
from tests.harness.broker.core.compacted import COMPACTED, SECOND_US, append, record, table

#: The cleaner with whose table a replica's is compared while tombstones may not go: it keeps every record.
KEPT = Cleaner(TopicConfig(**{**COMPACTED, "delete_retention_ms": 10**9}))
QUICK = Cleaner(TopicConfig(**{**COMPACTED, "delete_retention_ms": 0}))
KEYS = st.sampled_from(["a", "b", "c", "-a", "-b"])


class Twin:
    """The content of a log as a list of (first offset, next offset, leader epoch, {offset: record})."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int, dict[int, Any]]] = []
        self.epochs: list[tuple[int, int]] = []
        self.end = 0

    def append(self, keys: list[str], epoch: int, skip: int) -> None:
        base = self.end + skip
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs = [pair for pair in self.epochs if pair[1] < base] + [(epoch, base)]
        self.batches.append((base, base + len(keys), epoch, {base + n: record(key) for n, key in enumerate(keys)}))
        self.end = base + len(keys)

    def truncate(self, offset: int) -> None:
        cut = next((first for first, end, _, _ in self.batches if first < offset < end), min(offset, self.end))
        self.batches = [batch for batch in self.batches if batch[1] <= cut]
        self.epochs = [pair for pair in self.epochs if pair[1] < offset]
        self.end = cut

    def read(self, offset: int, limit: int) -> list[tuple[int, Any]]:
        batches = []
        for first, end, _, held in self.batches:
            if end > limit:
                break
            if end > offset:
                batches += [(first, held)]
        return batches


Step = tuple[str, Any]
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.tuples(st.lists(KEYS, min_size=1, max_size=3), st.booleans(), st.integers(0, 3))
        ),
        st.tuples(st.just("truncate"), st.integers(0, 100)),
        st.tuples(st.just("roll"), st.none()),
        st.tuples(st.just("clean"), st.integers(0, 100)),
        st.tuples(st.just("power"), st.booleans()),
    ),
    max_size=25,
)


@given(STEPS, st.sampled_from([KEPT, QUICK]))
def test_a_log_with_gaps_is_what_its_twin_says(steps: list[Step], cleaner: Cleaner) -> None:
    log, twin, epoch, now_us = MemoryLog(), Twin(), 0, 0
    for what, how in steps:
        now_us += SECOND_US
        if what == "append":
            keys, next_epoch, skip = how
            epoch += next_epoch
            log.skip_to(log.end_offset + skip)
            content = tuple(map(record, keys))
            log.append(RecordBatch(len(keys), 100, content, log.end_offset, epoch, stamped_us=now_us))
            twin.append(keys, epoch, skip)
        elif what == "truncate":
            offset = how * (log.end_offset + 1) // 100
            log.truncate_to(offset)
            twin.truncate(offset)
            epoch = log.epochs()[-1][0] if log.epochs() else epoch
        elif what == "roll":
            log.roll()
        elif what == "power":
            if how:
                log.flush()
            log.lose_unflushed()
            log.recover()
            if log.end_offset < twin.end:
                twin.truncate(log.end_offset)
            assert log.end_offset == log.durable_offset
            epoch = log.epochs()[-1][0] if log.epochs() else epoch
        else:
            before = table(log.batches)
            cleaner.clean(log, how * (log.end_offset + 1) // 100, now_us)
            assert table(log.batches) == before
            left = {batch.base_offset: {*batch.offsets} for batch in log.batches}
            assert left.keys() <= {batch[0] for batch in twin.batches}
            twin.batches = [
                (first, end, of, {offset: held[offset] for offset in left[first]})
                for first, end, of, held in twin.batches
                if first in left
            ]
        agree(log, twin)


def agree(log: MemoryLog, twin: Twin) -> None:
    """Ends, epochs, and every read of both."""
    assert (log.end_offset, list(log.epochs())) == (twin.end, twin.epochs)
    assert log.durable_offset <= log.flushed_offset <= log.end_offset
    assert log.cleaned_to <= log.end_offset
    assert log.segments[-1] <= log.end_offset
    for offset in range(twin.end + 1):
        for limit in (offset, twin.end):
            batches = [(b.base_offset, dict(b.placed())) for b in log.read(offset, limit, 10**6)]
            assert batches == twin.read(offset, limit)
        if first := log.read(offset, twin.end, 1):
            assert len(first) == 1, "one batch at least, and no more than fit"
            assert first[0].next_offset > offset


@given(
    st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=30),
    st.lists(
        st.tuples(st.sampled_from(["fetch", "leader", "follower", "new epoch"]), st.integers(1, 300)), max_size=30
    ),
    st.integers(0, 2**32),
)
def test_replicas_that_clean_at_their_own_times_give_the_same_table(
    writes: list[tuple[str, bool]], steps: list[tuple[str, int]], pick: int
) -> None:
    """As long as no tombstone goes: the table of a copy of a cleaned log, cleaned itself, is that of all records."""
    leader, follower, epoch = MemoryLog(), MemoryLog(), 0
    due = [writes[n :: len(steps) + 1] for n in range(len(steps) + 1)]
    everything: list[RecordBatch] = []
    for number, (what, size) in enumerate([*steps, ("fetch", 10**6), ("fetch", 10**6)]):
        for key, rolls in due[number] if number < len(due) else ():
            append(leader, key, number * SECOND_US, epoch)
            everything.append(leader.batches[-1])
            if rolls:
                leader.roll()
        if what == "fetch":
            for batch in leader.read(follower.end_offset, leader.end_offset, size):
                follower.skip_to(batch.base_offset)
                follower.append(batch)
                if pick >> number & 1:
                    follower.roll()
        elif what == "new epoch":
            epoch += 1
        else:
            KEPT.clean(leader if what == "leader" else follower, follower.end_offset, number * SECOND_US)
    for _ in range(len(writes)):
        for batch in leader.read(follower.end_offset, leader.end_offset, 1):
            follower.skip_to(batch.base_offset)
            follower.append(batch)
    assert follower.end_offset == leader.end_offset
    assert table(leader.batches) == table(follower.batches) == table(everything)
    assert {*follower.epochs()} <= {*leader.epochs()} | {
        (batch.leader_epoch, batch.base_offset) for batch in everything
    }
    assert follower.epochs()[-1] <= leader.epochs()[-1]
