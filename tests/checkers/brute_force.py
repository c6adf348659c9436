"""The rest beside the slow judge (:mod:`tests.checkers.judge`), once more in plain Python over events.

Cycles, cleaners that stand still, counts and replicas' logs: slow, obvious, written without looking at the kernels.
Values are known by (key, value), operations by their index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from checkers.columns.replica_file import TransactionPart
from workloads.operations import CleanerTimes, Event, EventType, Function, Poll, Record, Send

OK, INFO, INVOKE = EventType.OK, EventType.INFO, EventType.INVOKE
Findings = list[tuple[Any, ...]]


def sends_of(event: Event) -> list[Send]:
    return [m for m in event.micro if isinstance(m, Send)]


def keyed_sends(events: list[Event]) -> dict[tuple[str, int], Send]:
    """The send of each value that has a key; of several, the last."""
    sends = [send for event in events for send in sends_of(event) if send.record_key is not None]
    return {(send.partition, send.value): send for send in sends}


def reads_of(event: Event) -> list[tuple[str, Record]]:
    polls = [m for m in event.micro if isinstance(m, Poll)]
    return [(key, record) for poll in polls for key, records in poll.records.items() for record in records]


def sound(event: Event) -> list[tuple[str, Record]]:
    return [(key, record) for key, record in reads_of(event) if not record.defect]


def keys_read(event: Event) -> set[str]:
    return {key for m in event.micro if isinstance(m, Poll) for key in m.records}


class Log:
    """The version order of every key, and who wrote what."""

    def __init__(self, events: list[Event]) -> None:
        self.done = [event for event in events if event.type != INVOKE]
        self.read_ok = {(k, r.value) for e in self.done if e.type == OK for k, r in sound(e)}
        self.writer = {(s.partition, s.value): e for e in self.done for s in sends_of(e)}
        self.log: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for event in self.done:
            for key, record in sound(event):
                self.log[key][record.offset].add(record.value)
            if self.committed(event):
                for send in sends_of(event):
                    if send.offset is not None:
                        self.log[send.partition][send.offset].add(send.value)
        self.order = {key: [offsets[o] for o in sorted(offsets)] for key, offsets in self.log.items()}

    def committed(self, event: Event) -> bool:
        if event.type == INFO:
            return any((s.partition, s.value) in self.read_ok for s in sends_of(event))
        return event.type == OK

    def index(self, key: str, value: int) -> int | None:
        """The last place at which the value stands alone."""
        alone = [position for position, values in enumerate(self.order.get(key, [])) if values == {value}]
        return alone[-1] if alone else None


def drains_of(events: list[Event]) -> list[Event]:
    return [e for e in events if e.function == Function.DRAIN and e.type == OK and e.offset is not None]


def dead_cleaner(events: list[Event]) -> Findings:
    sends, began, findings = keyed_sends(events), _invocations(events), []
    for drain in drains_of(events):
        times = msgspec.json.decode(drain.detail, type=CleanerTimes) if drain.detail else None
        if times is None or times.dirty_ratio is None:
            continue
        (key,) = drain.partitions
        touched = [events[index] for index in _touching(events, key, drain.process)]
        starts = [events[began.get(event.index, event.index)].time_us for event in touched if event.type != INVOKE]
        ready_us = min(starts) - times.record_ms * 1000 - 5_000_000
        written = [
            (send, events[began[event.index]].time_us, event.time_us)
            for event in events
            for send in sends_of(event)
            if event.type == OK and event.index in began and send.partition == key and send.offset is not None
        ]
        closing = [begun_us for _, begun_us, done_us in written if done_us <= ready_us]
        latest_us = max(closing, default=0) - (times.segment_ms or 0) * 1000 - 1_000_000
        end = max((send.offset or 0 for send, _, done_us in written if done_us <= latest_us), default=-1) + 1
        read = [
            record
            for event in events
            for name, record in (sound(event) if event.type == OK and event.process == drain.process else ())
            if name == key and record.offset < end
        ]
        keyed = [(r, sends[key, r.value].record_key) for r in read if (key, r.value) in sends]
        old = sum(any(k == other and r.offset < o.offset for o, other in keyed) for r, k in keyed)
        if old > 3 * times.dirty_ratio * len(read):
            findings.append((key, old, len(read), times.dirty_ratio, drain.index))
    return sorted(findings)


def _touching(events: list[Event], key: str, process: int) -> Iterator[int]:
    """Indexes of the events in which a process did something with a key."""
    for event in events:
        touched = {s.partition for s in sends_of(event)} | keys_read(event) | set(event.partitions)
        if event.process == process and key in touched:
            yield event.index


def dependencies(events: list[Event], *, ww_deps: bool) -> set[tuple[int, int, str]]:
    """Every (writer, reader or next writer, kind) between different operations."""
    log = Log(events)
    edges: set[tuple[int, int, str]] = set()
    for event in log.done:
        for key, record in sound(event):
            writer = log.writer.get((key, record.value))
            if writer is not None:
                edges.add((writer.index, event.index, "wr"))
    for key, places in log.order.items() if ww_deps else ():
        sure = [min(values) for position, values in enumerate(places) if log.index(key, min(values)) == position]
        writers = [log.writer[key, value].index for value in sure if (key, value) in log.writer]
        edges |= {(a, b, "ww") for a, b in pairwise(writers)}
    return {(a, b, kind) for a, b, kind in edges if a != b}


def cycles(events: list[Event], *, ww_deps: bool) -> set[str]:
    """The kinds of cycle that there are, by trying every path; with real time, those with one step of it."""
    edges = dependencies(events, ww_deps=ww_deps)
    began = _invocations(events)
    kind = {e.index: e.type for e in events}
    names = set()
    for start in {a for a, _, _ in edges}:
        for end, reads in _reachable(edges, start):
            name = "G1c" if reads else "G0"
            if end == start:
                names.add(name)
            if kind[end] == OK and end < began.get(start, -1):
                names.add(f"{name}-realtime")
    return names


def divergent_offsets(logs: list[tuple[dict[int, tuple[int, int]], int]]) -> list[int]:
    """Committed offsets at which some replicas, each a log and its high watermark, have different records.

    A record is its content and the leader epoch under which it was appended.
    """
    committed = min((high for _, high in logs), default=0)
    return [offset for offset in range(committed) if len({log[offset] for log, _ in logs if offset in log}) > 1]


def divergent_keys(logs: list[list[tuple[int, int, int, bool, int]]]) -> list[int]:
    """Keys whose state is not the same in all logs; a record is (value, key, producer, is tombstone, part)."""
    tables = [_table(log) for log in logs]
    every = {key for table in tables for key in table}
    return sorted(key for key in every if len({table.get(key) for table in tables}) > 1) if len(logs) > 1 else []


def _table(log: list[tuple[int, int, int, bool, int]]) -> dict[int, int | None]:
    table: dict[int, int | None] = {}
    for position, (value, key, producer, tombstone, part) in enumerate(log):
        ends = [
            p
            for _, _, other, _, p in log[position:]
            if other == producer and p in (TransactionPart.ABORT, TransactionPart.COMMIT)
        ]
        if key >= 0 and (
            part == TransactionPart.RECORD
            or (part == TransactionPart.IN_TRANSACTION and ends[:1] == [TransactionPart.COMMIT])
        ):
            table[key] = None if tombstone else value
    return table


def _reachable(edges: set[tuple[int, int, str]], start: int) -> set[tuple[int, bool]]:
    """(operation, whether some way there has a read) for every way of at least one step."""
    seen: set[tuple[int, bool]] = set()
    todo = [(start, False)]
    while todo:
        node, reads = todo.pop()
        for a, b, kind in edges:
            after = (b, reads or kind == "wr")
            if a == node and after not in seen:
                seen.add(after)
                todo.append(after)
    return seen


def _invocations(events: list[Event]) -> dict[int, int]:
    """The begin of a completion's operation. In generated histories a process does one thing at a time."""
    open_: dict[int, int] = {}
    began: dict[int, int] = {}
    for event in events:
        if event.type == INVOKE:
            open_[event.process] = event.index
        elif event.process in open_:
            began[event.index] = open_.pop(event.process)
    return began


def consume_counts(events: list[Event]) -> dict[int, int]:
    """{times: how many values a process that had subscribed with this partition in or out of the list got so often}."""
    times: dict[tuple[int, str, int], int] = defaultdict(int)
    subscribers = _subscribers(events)
    for event in events:
        for key, record in sound(event) if event.type == OK else ():
            if (event.process, key) in subscribers:
                times[event.process, key, record.value] += 1
    counts: dict[int, int] = defaultdict(int)
    for number in times.values():
        counts[number] += 1
    return dict(counts)


def _subscribers(events: list[Event]) -> set[tuple[int, str]]:
    """(process, key) where an ok subscription listed the key, or took it away."""
    subscribers: set[tuple[int, str]] = set()
    used: dict[int, set[str]] = defaultdict(set)
    for event in events:
        if event.type != INVOKE:
            used[event.process] |= keys_read(event)
        if event.type in (OK, INFO):
            used[event.process] |= {s.partition for s in sends_of(event)}
        if event.function in (Function.ASSIGN, Function.SUBSCRIBE) and event.type in (OK, INFO):
            if event.function == Function.SUBSCRIBE and event.type == OK:
                subscribers |= {(event.process, key) for key in used[event.process] | set(event.partitions)}
            used[event.process] = set(event.partitions)
    return subscribers
