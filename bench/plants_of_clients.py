"""Plants in transactions, in groups and their pipelines, and in compacted logs: see :mod:`bench.plants`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bench.plant_parts import ONE, OTHER, READER, TWO, A, B, C, HistoryBuilder, Plant, read_of, send_of, written
from workloads import (
    NOTHING,
    CleanerTimes,
    EventType,
    Function,
    GroupMember,
    MicroOperation,
    ProducerEpoch,
    Reached,
    Send,
    StableOffset,
    TransactionEnd,
)

#: A transaction that its producer does not end may be open for this time.
OPEN_MS: Final = 20_000
GROUP: Final = GroupMember(group="planted")
STATIC: Final = GroupMember(group="planted", instance_id="m")
#: A cleaner that keeps tombstones for a day, and one that keeps every record for an hour.
TOMBSTONES_KEPT: Final = CleanerTimes(record_ms=0, tombstone_ms=86_400_000)
#: One that closes each segment at once, and lets no record be old.
CLEANED_AT_ONCE: Final = CleanerTimes(record_ms=0, tombstone_ms=0, segment_ms=0, dirty_ratio=0.0)
RECORDS_KEPT: Final = CleanerTimes(record_ms=3_600_000, tombstone_ms=0)
#: A log that is not compacted, and keeps no record for longer than a second.
EXPIRED: Final = CleanerTimes(record_ms=0, tombstone_ms=0, retention_ms=1_000)


# --- transactions ---


def _begin(history: HistoryBuilder, *writes: Send | Reached, process: int = ONE) -> None:
    begun = tuple(msgspec.structs.replace(write, offset=None) if isinstance(write, Send) else write for write in writes)
    history.event(process, EventType.INVOKE, Function.TXN, micro=begun)


def _end(
    history: HistoryBuilder, *writes: Send | Reached, kind: EventType = EventType.OK, process: int = ONE, **facts: Any
) -> None:
    """End a transaction whose end was asked for just now."""
    asked: dict[str, Any] = {"asked": "abort" if kind is EventType.FAIL else "commit", "ending_us": history.time_us}
    named: dict[str, Any] = {"transactional_id": "planted", "number": 0, **asked, **facts}
    history.wait(1)
    detail = TransactionEnd(**named)
    history.event(process, kind, Function.TXN, micro=writes, detail=detail)


def _transaction(history: HistoryBuilder, *sends: Send, kind: EventType = EventType.OK, **facts: Any) -> None:
    _begin(history, *sends)
    _end(history, *sends, kind=kind, **facts)


def _first(history: HistoryBuilder) -> Send:
    return Send(history.keys[0], A, history.end)


def _aborted_read(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), kind=EventType.FAIL)
    history.together((READER, read_of(history, (A, 0))))


def _early_read(history: HistoryBuilder) -> None:
    _begin(history, _first(history))
    history.together((READER, read_of(history, (A, 0))))
    _end(history, _first(history))


def _torn(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), Send(history.keys[1], B, history.end))
    history.together((OTHER, send_of(history, (C, 1), key=1)))
    history.together((READER, (*read_of(history, (A, 0)), *read_of(history, (C, 1), key=1))))


def _failed_send(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), Send(history.keys[1], B), failed={str(B): "MessageTimedOut"})
    history.together((READER, read_of(history, (A, 0))))


def _zombie(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), superseded_us=history.time_us, producer=ProducerEpoch(4000, 3))
    history.together((READER, read_of(history, (A, 0))))


def _hanging(history: HistoryBuilder) -> None:
    _transaction(history, _first(history))
    history.together((READER, read_of(history, (A, 0))))
    history.wait(OPEN_MS * 1000)
    detail = StableOffset(high_watermark=history.end + 1, open_ms=OPEN_MS)
    reached = Reached(history.keys[0], history.end)
    history.event(READER, EventType.OK, Function.STABLE, micro=(reached,), detail=detail)


# --- groups ---


def _all_of(history: HistoryBuilder, *placed: tuple[int, int]) -> tuple[MicroOperation, ...]:
    """One poll of the whole log partition, and of (value, distance from the end)."""
    return read_of(history, *((offset, offset - history.end) for offset in range(history.end)), *placed)


def _of_group(
    history: HistoryBuilder,
    member: int,
    function: Function,
    *,
    micro: tuple[MicroOperation, ...] = (),
    partitions: tuple[str, ...] = (),
    detail: GroupMember = GROUP,
) -> None:
    history.event(member, EventType.OK, function, micro=micro, partitions=partitions, detail=detail)


def _asked_and_told(
    history: HistoryBuilder, member: int, function: Function, offset: int, detail: GroupMember = GROUP
) -> None:
    """A member asks the group for something with an offset, and the group answers."""
    for kind in (EventType.INVOKE, EventType.OK):
        history.event(member + 1, kind, function, micro=(Reached(history.keys[0], offset),), detail=detail)


def _join(history: HistoryBuilder, member: int, detail: GroupMember = GROUP) -> None:
    """A member is assigned the log partition, and processes it from its begin to its end."""
    _of_group(history, member, Function.REBALANCE, partitions=(history.keys[0],), detail=detail)
    history.together((member, _all_of(history)))
    _of_group(history, member, Function.PROCESS, micro=(Reached(history.keys[0], history.end, 0),), detail=detail)


def _skipped(history: HistoryBuilder) -> None:
    _join(history, ONE)
    written(history, A, B)
    history.together((TWO, read_of(history, (B, 1))))
    _of_group(history, TWO, Function.PROCESS, micro=(Reached(history.keys[0], history.end + 2, history.end + 1),))
    _asked_and_told(history, TWO, Function.COMMIT, history.end + 2)


def _went_back(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _asked_and_told(history, ONE, Function.COMMIT, history.end)
    _asked_and_told(history, TWO, Function.COMMITTED, history.end - 1)


def _returned_group(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _asked_and_told(history, ONE, Function.COMMIT, history.end)
    _asked_and_told(history, TWO, Function.DELETE_GROUP, NOTHING)
    _asked_and_told(history, TWO, Function.COMMITTED, history.end)


def _two_owners(history: HistoryBuilder) -> None:
    for member in (ONE, TWO):
        _join(history, member)
    for member in (TWO, ONE):
        _asked_and_told(history, member, Function.COMMIT, history.end)


def _unfenced_instance(history: HistoryBuilder) -> None:
    for instance in (ONE, TWO):
        _join(history, instance, STATIC)
    _asked_and_told(history, ONE, Function.COMMIT, history.end, STATIC)


def _stale_generation(history: HistoryBuilder) -> None:
    for instance in (ONE, TWO):
        _join(history, instance, GroupMember(group="planted", generation=7))


# --- pipelines ---


class _Effects:
    """A transaction of a group's member: it writes ``value`` for the records ``since`` to ``offset`` of the input."""

    def __init__(self, history: HistoryBuilder, member: int, value: int, since: int, offset: int) -> None:
        self._history = history
        self._producer = member + 2
        self._micro = (Send(history.keys[1], value, history.end + value - A), Reached(history.keys[0], offset, since))
        self._sources = {history.keys[0]: tuple(range(since, offset))}
        _begin(history, *self._micro, process=self._producer)
        _asked_and_told(history, member, Function.OFFSETS, offset)
        self._handed_us = history.time_us
        history.wait(1)

    def end(self, kind: EventType = EventType.OK) -> None:
        """Commit it, or abort it."""
        facts = {"group": GROUP.group, "handed_us": self._handed_us, "sources": self._sources}
        _end(self._history, *self._micro, kind=kind, process=self._producer, **facts)


def _missing_effect(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _Effects(history, ONE, A, 0, history.end - 1).end()
    _Effects(history, ONE, B, history.end, history.end).end()
    history.together((READER, read_of(history, (A, 0), (B, 1), key=1)))


def _doubled_effect(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _Effects(history, ONE, A, 0, history.end).end()
    _Effects(history, ONE, B, 0, history.end).end()
    history.together((READER, read_of(history, (A, 0), (B, 1), key=1)))


def _aborted_commit(history: HistoryBuilder) -> None:
    _join(history, ONE)
    aborted = _Effects(history, ONE, A, 0, history.end - 1)
    committed = _Effects(history, ONE + 2, B, 0, history.end)
    committed.end()
    aborted.end(EventType.FAIL)
    _asked_and_told(history, TWO, Function.COMMITTED, history.end - 1)
    history.together((READER, read_of(history, (B, 1), key=1)))


def _unstable_offset(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _Effects(history, ONE, A, 0, history.end - 1).end()
    pending = _Effects(history, ONE, B, history.end - 1, history.end)
    _asked_and_told(history, TWO, Function.COMMITTED, history.end - 1)
    pending.end()
    history.together((READER, read_of(history, (A, 0), (B, 1), key=1)))


# --- compacted logs ---


def _keyed(history: HistoryBuilder, *tombstones: bool) -> None:
    """Records of one key, one behind the other."""
    for distance, tombstone in enumerate(tombstones):
        send = Send(history.keys[0], A + distance, history.end + distance, record_key=7, tombstone=tombstone)
        history.together((ONE, (send,)))


def _final_read(
    history: HistoryBuilder, reader: int, *placed: tuple[int, int], cleaner: CleanerTimes | None = None
) -> None:
    """A reader reads the log partition to its end, two records behind what was there; of these it sees some."""
    history.together((reader, _all_of(history, *placed)))
    end = history.end + 2
    history.event(reader, EventType.OK, Function.DRAIN, partitions=(history.keys[0],), offset=end, detail=cleaner)


def _out_of_order(history: HistoryBuilder) -> None:
    """A write is refused as out of order, and a reader sees that everything is there."""
    refused = (Send(history.keys[0], A),)
    history.event(ONE, EventType.INVOKE, Function.SEND, micro=refused)
    history.event(ONE, EventType.INFO, Function.SEND, micro=refused, error="OutOfOrderSequenceNumberError: 1")
    history.together((READER, _all_of(history)))
    history.event(READER, EventType.OK, Function.DRAIN, partitions=(history.keys[0],), offset=history.end)


def _lost_tombstone(history: HistoryBuilder) -> None:
    _keyed(history, False, True)
    _final_read(history, READER, cleaner=TOMBSTONES_KEPT)


def _cleaned_early(history: HistoryBuilder) -> None:
    _keyed(history, False, False)
    _final_read(history, READER, (B, 1), cleaner=RECORDS_KEPT)


def _dead_cleaner(history: HistoryBuilder) -> None:
    _keyed(history, False, False)
    history.wait(2_000_000)
    history.together((ONE, send_of(history, (C, 2))))
    history.wait(6_000_000)
    _final_read(history, READER, (A, 0), (B, 1), (C, 2), cleaner=CLEANED_AT_ONCE)


def _expired(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (A, 0))))
    history.wait(3_000_000)
    _final_read(history, READER, cleaner=EXPIRED)


def _returned(history: HistoryBuilder) -> None:
    _keyed(history, False, True)
    _final_read(history, READER, (A, 0))


def _different_states(history: HistoryBuilder) -> None:
    _keyed(history, False, False)
    _final_read(history, READER, (A, 0))
    _final_read(history, OTHER, (B, 1))


def _different_reads(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (A, 0))))
    _final_read(history, READER, (A, 0))
    _final_read(history, OTHER)


#: By anomaly.
OF_CLIENTS: Final[dict[str, Plant]] = {
    "aborted-read": Plant(_aborted_read, {"aborted-read": 1}),
    "early-read": Plant(_early_read, {"early-read": 1}),
    "torn-transaction": Plant(_torn, {"torn-transaction": 1, "lost-write": 1, "unseen": 1}),
    "failed-send-committed": Plant(_failed_send, {"failed-send-committed": 1}),
    "zombie": Plant(_zombie, {"zombie": 1}),
    "hanging-transaction": Plant(_hanging, {"hanging-transaction": 1}),
    "group-skip": Plant(_skipped, {"group-skip": 1}),
    "group-went-back": Plant(_went_back, {"group-went-back": 1}),
    "returned-group": Plant(_returned_group, {"returned-group": 1}),
    "two-owners": Plant(_two_owners, {"two-owners": 1}),
    "unfenced-instance": Plant(_unfenced_instance, {"unfenced-instance": 1}),
    "stale-generation": Plant(_stale_generation, {"stale-generation": 1}),
    "missing-effect": Plant(_missing_effect, {"missing-effect": 1}),
    "doubled-effect": Plant(_doubled_effect, {"doubled-effect": 1}),
    "aborted-commit": Plant(_aborted_commit, {"aborted-commit": 1}),
    "unstable-offset": Plant(_unstable_offset, {"unstable-offset": 1}),
    "divergent-reads": Plant(_different_reads, {"divergent-reads": 1}),
    "returned-key": Plant(_returned, {"returned-key": 1}),
    "lost-tombstone": Plant(_lost_tombstone, {"lost-tombstone": 1}),
    "cleaned-early": Plant(_cleaned_early, {"cleaned-early": 1}),
    "dead-cleaner": Plant(_dead_cleaner, {"dead-cleaner": 1}),
    "expired-write": Plant(_expired, {"expired-write": 1}),
    "unfounded-out-of-order": Plant(_out_of_order, {"unfounded-out-of-order": 1}),
    "divergent-state": Plant(_different_states, {"divergent-state": 1}),
}
