"""A history as the slow judge sees it: operations, sends and reads as plain lists.

The judge is written from ``docs/reference/anomalies.md`` and ``docs/guides/history-format.md`` alone. It knows the
records of histories, and nothing of the checkers, so that it does not share what they take for granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from workloads.operations import NO_INSTANCE, Event, EventType, Function, Poll, Reached, Record, Send

#: Functions whose events stand alone: nobody asked for them.
ALONE = {Function.DRAIN, Function.PROCESS, Function.REBALANCE, Function.STABLE, Function.LOG_START, Function.RETIRE}
READING, SENDING = {Function.POLL, Function.TXN}, {Function.SEND, Function.TXN}
UNCOMMITTED = "read_uncommitted"


@dataclass(eq=False)
class Operation:
    """An invocation and its end. Either may be missing; without an end nobody knows what became of it."""

    asked: Event | None
    ended: Event | None
    number: int

    @property
    def event(self) -> Event:
        event = self.ended or self.asked
        assert event is not None
        return event

    @property
    def kind(self) -> EventType:
        return EventType.INFO if self.ended is None else self.ended.type

    @property
    def happened(self) -> bool:
        return self.kind is EventType.OK

    @property
    def failed(self) -> bool:
        return self.kind is EventType.FAIL

    @property
    def micro(self) -> tuple[Any, ...]:
        if self.ended is not None and self.ended.micro:
            return self.ended.micro
        return self.asked.micro if self.asked is not None else ()

    @property
    def begin(self) -> int:
        """The place in the history of its begin."""
        return (self.asked or self.event).index

    @property
    def end(self) -> int | None:
        return None if self.ended is None else self.ended.index

    @property
    def begin_us(self) -> int:
        return (self.asked or self.event).time_us

    @property
    def who(self) -> int:
        """The client: its instance, or its process where the instance is not told."""
        return self.event.process if self.event.instance == NO_INSTANCE else self.event.instance

    @property
    def uncommitted(self) -> bool:
        return self.event.isolation == UNCOMMITTED

    @cached_property
    def detail(self) -> dict[str, Any]:
        for event in (self.ended, self.asked):
            if event is not None and event.detail is not None:
                return dict(msgspec.json.decode(event.detail))
        return {}

    @property
    def reached(self) -> list[Reached]:
        return [micro for micro in self.micro if isinstance(micro, Reached)]


@dataclass(eq=False)
class Sent:
    """One send of a value, whatever became of it."""

    op: Operation
    log: str
    value: int
    offset: int | None
    key: int | None
    tombstone: bool

    @property
    def failed(self) -> bool:
        """The operation failed, or this send of a transaction did."""
        return self.op.failed or (self.op.happened and str(self.value) in self.op.detail.get("failed", {}))

    @property
    def acknowledged(self) -> bool:
        return self.op.happened and not self.failed


@dataclass(eq=False)
class Seen:
    """One record that a poll brought."""

    op: Operation
    log: str
    offset: int
    value: int
    damaged: bool


@dataclass(eq=False)
class Final:
    """A final reader of one log partition that came to the end that it was told."""

    log: str
    process: int
    end: int
    said: Event
    begin: int
    times: dict[str, Any]
    seen: list[Seen] = field(default_factory=list)

    @property
    def uncommitted(self) -> bool:
        return self.said.isolation == UNCOMMITTED

    @property
    def values(self) -> set[int]:
        return {seen.value for seen in self.seen if not seen.damaged}


class Told:
    """All facts of one history, as lists in the order of the events."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = [msgspec.structs.replace(event, index=index) for index, event in enumerate(events)]
        self.levels = any(event.isolation is not None for event in self.events)
        self.operations = list(self._operations())
        self.sends = [
            Sent(op, m.partition, m.value, m.offset, m.record_key, m.tombstone)
            for op in self.operations
            if op.event.function in SENDING
            for m in op.micro
            if isinstance(m, Send)
        ]
        self.reads = [
            Seen(op, log, record.offset, record.value, bool(record.defect))
            for op in self.operations
            if op.event.function in READING
            for log, record in read_by(op)
        ]
        self.ok_reads = [seen for seen in self.reads if seen.op.happened and not seen.damaged]
        self.finals = list(self._finals())
        self.transactions = [op for op in self.operations if op.event.function is Function.TXN]
        self.logs = sorted({sent.log for sent in self.sends} | {seen.log for seen in self.reads})

    def _operations(self) -> Iterator[Operation]:
        open_now: dict[int, Operation] = {}
        for event in self.events:
            if event.type is EventType.INVOKE:
                open_now[event.process] = Operation(event, None, event.index)
                yield open_now[event.process]
            elif event.function in ALONE or event.process not in open_now:
                yield Operation(None, event, event.index)
            else:
                open_now.pop(event.process).ended = event

    def _finals(self) -> Iterator[Final]:
        for event in self.events:
            if event.function is not Function.DRAIN or event.type is not EventType.OK or event.offset is None:
                continue
            for log in event.partitions:
                begin = min(other.index for other in self.events if other.process == event.process)
                times = {} if event.detail is None else dict(msgspec.json.decode(event.detail))
                mine = [s for s in self.reads if s.op.event.process == event.process and s.log == log and s.op.happened]
                yield Final(log, event.process, event.offset, event, begin, times, mine)

    # What is known of writes and their places.

    def sends_of(self, log: str, value: int) -> list[Sent]:
        return [sent for sent in self.sends if (sent.log, sent.value) == (log, value)]

    def was_read(self, log: str, value: int) -> bool:
        return any((seen.log, seen.value) == (log, value) for seen in self.ok_reads)

    def proved(self, op: Operation) -> bool:
        """It was acknowledged, or its end is not known and a client read something that it sent."""
        if op.happened:
            return True
        if op.failed:
            return False
        mine = {(sent.log, sent.value) for sent in self.sends if sent.op is op}
        whole = op.event.function is Function.TXN
        return any((s.log, s.value) in mine and not (whole and s.op.uncommitted) for s in self.ok_reads)

    def wrote(self, sent: Sent) -> bool:
        """The send was acknowledged, or its operation is proved to have happened."""
        return not sent.failed and self.proved(sent.op)

    def places(self, log: str, value: int) -> list[int]:
        """The offsets of a value: as answered to who certainly wrote it, and as clients read it."""
        return sorted(offset for offset, values in self.all_places(log).items() if value in values)

    def all_places(self, log: str, *, committed: bool = False) -> dict[int, set[int]]:
        """The values at each offset of a log partition; if asked, by the reads of readers of committed records."""
        return self._places[log, committed]

    @cached_property
    def _places(self) -> dict[tuple[str, bool], dict[int, set[int]]]:
        places: dict[tuple[str, bool], dict[int, set[int]]] = {
            (log, committed): {} for log in self.logs for committed in (False, True)
        }
        for committed in (False, True):
            for sent in self.sends:
                if sent.offset is not None and self.wrote(sent):
                    places[sent.log, committed].setdefault(sent.offset, set()).add(sent.value)
            for seen in self.reads:
                if not seen.damaged and not (committed and seen.op.uncommitted):
                    places[seen.log, committed].setdefault(seen.offset, set()).add(seen.value)
        return places

    def finals_of(self, log: str) -> list[Final]:
        return [final for final in self.finals if final.log == log]

    def log_start(self, log: str) -> int:
        """The highest offset at which a broker said that the log begins."""
        told = [
            reached.offset
            for op in self.operations
            if op.event.function is Function.LOG_START
            for reached in op.reached
            if reached.partition == log
        ]
        return max(told, default=0)

    def aborted(self, op: Operation) -> bool:
        """Its abort was answered, or it was fenced before it asked for the commit, and then refused."""
        return op.event.function is Function.TXN and op.failed

    def is_aborted(self, log: str, value: int) -> bool:
        """It was sent in a transaction that was never committed, and no other send of it was acknowledged."""
        writers = self.sends_of(log, value)
        of_transactions = [s for s in writers if s.op.event.function is Function.TXN]
        never = any(s.failed or self.never_committed(s.op) for s in of_transactions)
        return never and not any(s.acknowledged for s in writers)

    def never_committed(self, op: Operation) -> bool:
        """It was aborted, or nobody ever asked for its commit."""
        unasked = not op.happened and bool(op.detail) and op.detail.get("asked") != "commit"
        return self.aborted(op) or (op.event.function is Function.TXN and unasked)


def read_by(op: Operation) -> list[tuple[str, Record]]:
    return [
        (log, record)
        for micro in op.micro
        if isinstance(micro, Poll)
        for log, records in micro.records.items()
        for record in records
    ]
