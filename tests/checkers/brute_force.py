"""Every anomaly once more, in plain Python over events: slow, obvious, and written without looking at the kernels.

Each function takes the events of one history and gives a sorted list of tuples, one a finding. ``Log`` gathers what
several of them need. Values are known by (key, value), operations by their index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec

from checkers.columns.replica_file import TransactionPart
from workloads.operations import NO_INSTANCE, CleanerTimes, Event, EventType, Function, Poll, Record, Send

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE
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
    """The version order of every key, and who wrote and read what.

    ``proofs`` are the values that prove an uncertain operation, by default those that were read.
    """

    def __init__(self, events: list[Event], proofs: set[tuple[str, int]] | None = None) -> None:
        self.events = events
        self.done = [event for event in events if event.type != INVOKE]
        self.read_ok = {(k, r.value) for e in self.done if e.type == OK for k, r in sound(e)}
        self.proofs = self.read_ok if proofs is None else proofs
        self.sent = {
            kind: {(s.partition, s.value) for e in events if e.type == kind for s in sends_of(e)} for kind in EventType
        }
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
            return any((s.partition, s.value) in self.proofs for s in sends_of(event))
        return event.type == OK

    def places(self, key: str, value: int) -> list[int]:
        return [position for position, values in enumerate(self.order.get(key, [])) if value in values]

    def index(self, key: str, value: int | None) -> int | None:
        """The last place at which the value stands alone."""
        alone = (
            [position for position in self.places(key, value) if len(self.order[key][position]) == 1]
            if value is not None
            else []
        )
        return alone[-1] if alone else None

    def values(self) -> list[tuple[str, int]]:
        return sorted({(k, v) for k, places in self.order.items() for values in places for v in values})

    def skipped(self, key: str, low: int, high: int) -> tuple[int, ...]:
        return tuple(min(values) for values in self.order[key][low + 1 : high])

    def over(self, key: str, low: int, high: int) -> tuple[int, ...]:
        """The values between two places; none where a cleaner may remove them all."""
        skipped = self.skipped(key, low, high)
        return skipped if any((key, value) not in self.removable for value in skipped) else ()

    @cached_property
    def removable(self) -> set[tuple[str, int]]:
        """The values that a cleaner may remove, or their age."""
        return (
            self.expired | self.superseded | {name for name, send in keyed_sends(self.events).items() if send.tombstone}
        )

    @cached_property
    def expired(self) -> set[tuple[str, int]]:
        """The values that were written retention.ms, and a second for clocks, before their log was read last."""
        old = set()
        for key in self.order.keys() | {send.partition for event in self.events for send in sends_of(event)}:
            drains = [e for e in self.events if e.function == Function.DRAIN and e.partitions == (key,) and e.detail]
            kept = [msgspec.json.decode(drain.detail, type=CleanerTimes).retention_ms for drain in drains]
            if not [ms for ms in kept if ms is not None]:
                continue
            polls = [e for e in self.done if key in {k for k, _ in sound(e)}]
            last_us = max(event.time_us for event in (*drains, *polls))
            limit_us = last_us + 1_000_000 - 1_000 * [ms for ms in kept if ms is not None][-1]
            for event in self.events:
                old |= {(key, s.value) for s in sends_of(event) if s.partition == key and event.time_us < limit_us}
        return old

    @cached_property
    def superseded(self) -> set[tuple[str, int]]:
        """The values with a later record of their key; a tombstone whose place is not known may be later than any."""
        happened = {(s.partition, s.value) for e in self.done if self.committed(e) for s in sends_of(e)} | self.read_ok
        sends = keyed_sends(self.events)
        gone = set()
        for (key, value), send in sends.items():
            mine = self.last_offset(key, value)
            for (k, other), its in sends.items():
                unknown = its.tombstone and (k, other) not in self.sent[FAIL] | happened
                may_be = unknown or (k, other) in happened
                if (k, its.record_key) == (key, send.record_key) and other != value and may_be:
                    later = self.last_offset(k, other)
                    if mine is None or (its.tombstone if later is None else later > mine):
                        gone.add((key, value))
        return gone

    def last_offset(self, key: str, value: int) -> int | None:
        return max((offset for offset, values in self.log[key].items() if value in values), default=None)


def lost_write(events: list[Event], proofs: set[tuple[str, int]] | None = None) -> Findings:
    log = Log(events, proofs)
    findings = []
    for key, value in log.values():
        seen = [log.places(key, v)[0] for k, v in log.read_ok if k == key]
        writer = log.writer.get((key, value))
        if not seen or (key, value) in log.read_ok or writer is None or not log.committed(writer):
            continue
        places = log.places(key, value)
        if places[-1] <= max(seen) and (key, value) not in log.removable:
            findings.append((key, value, places[0], max(seen), writer.index))
    return sorted(findings)


def lost_after_drain(events: list[Event]) -> Findings:
    """Values lost by the stricter rule, whether or not the ordinary rule finds them, too."""
    findings = set()
    drains = drains_of(events)
    for key in {k for e in drains for k in e.partitions}:
        mine = [e for e in drains if key in e.partitions]
        readers = {e.process for e in mine}
        seen = {r.value for e in events if e.type == OK and e.process in readers for k, r in sound(e) if k == key}
        began = max(min(_touching(events, key, reader)) for reader in readers)
        end = max(e.offset for e in mine if e.offset is not None)
        for event in events:
            for send in sends_of(event):
                below = send.offset is not None and send.offset < end
                if event.type == OK and send.partition == key and (event.index < began or below):
                    findings |= {(key, send.value)} if send.value not in seen else set()
    return sorted(findings - Log(events).removable)


def unfounded_out_of_order(events: list[Event]) -> Findings:
    """Writes that ended with the error, on log partitions that were read to their end and lack nothing."""
    ended = {key for drain in drains_of(events) for key in drain.partitions}
    lacking = {key for key, *_ in (*lost_write(events), *lost_after_drain(events), *Log(events).removable)}
    findings = []
    for event in events:
        for send in sends_of(event) if (event.error or "").startswith("OutOfOrder") else ():
            before = [
                earlier
                for earlier in events[: event.index]
                if earlier.type == INFO and earlier.instance == event.instance != NO_INSTANCE
                if not (earlier.error or "").startswith("OutOfOrder")
                for other in sends_of(earlier)
                if other.partition == send.partition
            ]
            if send.partition in ended - lacking:
                findings.append((send.partition, send.value, event.index, len(before)))
    return sorted(findings)


def drains_of(events: list[Event]) -> list[Event]:
    return [e for e in events if e.function == Function.DRAIN and e.type == OK and e.offset is not None]


def heads(events: list[Event]) -> dict[tuple[str, int], dict[int, tuple[int, int]]]:
    """{(log partition, record key): {final reader: the last record of it that it read, (offset, value)}}."""
    sends = keyed_sends(events)
    last_read: dict[tuple[str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
    for drain in drains_of(events):
        for partition in drain.partitions:
            for event in events:
                for key, record in sound(event) if event.type == OK and event.process == drain.process else ():
                    if key == partition and (key, record.value) in sends:
                        mine = last_read[key, sends[key, record.value].record_key or 0]
                        if drain.process not in mine or mine[drain.process][0] <= record.offset:
                            mine[drain.process] = record.offset, record.value
    return last_read


def returned_key(events: list[Event]) -> Findings:
    sends, findings = keyed_sends(events), []
    for (key, number), seen in heads(events).items():
        tombstones = [
            (send.offset, event.index, send.value)
            for event in events
            for send in sends_of(event)
            if event.type == OK and send.offset is not None and send.partition == key
            and (key, send.value) in sends and sends[key, send.value].tombstone
            and sends[key, send.value].record_key == number
        ]  # fmt: skip
        if not tombstones:
            continue
        last = max(offset for offset, *_ in tombstones)
        index, value = [(index, value) for offset, index, value in tombstones if offset == last][-1]
        if any(offset is None or offset > last for offset in _written_at(events, key, number)):
            continue
        for reader in sorted(seen):
            offset, head = seen[reader]
            if offset < last and index < min(_touching(events, key, reader)):
                findings.append((key, number, head, offset, value, last))
                break
    return sorted(findings)


def _written_at(events: list[Event], key: str, number: int, *, tombstones: bool = False) -> list[int | None]:
    """The last place of each record of a key that may have been written; None where no place is known."""
    failed = {(s.partition, s.value) for e in events if e.type == FAIL for s in sends_of(e)}
    places: list[int | None] = []
    for (k, value), send in keyed_sends(events).items():
        if (k, send.record_key, send.tombstone) == (key, number, tombstones) and (k, value) not in failed:
            answered = [
                s.offset for e in events if e.type == OK for s in sends_of(e) if (s.partition, s.value) == (k, value)
            ]
            seen = [
                r.offset for e in events if e.type != INVOKE for name, r in sound(e) if (name, r.value) == (k, value)
            ]
            places.append(max((offset for offset in [*answered, *seen] if offset is not None), default=None))
    return places


def divergent_state(events: list[Event]) -> Findings:
    sends, findings = keyed_sends(events), []
    for (key, number), seen in heads(events).items():
        ends: dict[int, int] = defaultdict(int)
        for drain in drains_of(events):
            if key in drain.partitions:
                ends[drain.process] = max(ends[drain.process], drain.offset or 0)
        readers = sorted(ends)
        states = {}
        for reader in readers:
            value = seen[reader][1] if reader in seen else None
            states[reader] = None if value is None or sends[key, value].tombstone else value
        deleted_at = _written_at(events, key, number, tombstones=True)
        wrong = False
        for reader in readers:
            for other in readers:
                mine, theirs = (seen[r][0] if r in seen else -1 for r in (reader, other))
                comparable = mine < ends[other] and theirs < ends[reader] and states[reader] != states[other]
                behind = any(offset is None or offset >= ends[reader] for offset in deleted_at)
                later = ends[reader] < ends[other] and behind
                wrong |= ends[reader] <= ends[other] and comparable and not (other not in seen and later)
        if wrong:
            findings.append((key, number, tuple(sorted(states.items()))))
    return sorted(findings, key=repr)


def divergent_reads(events: list[Event]) -> Findings:
    sends, expired, findings = keyed_sends(events), Log(events).expired, []
    for key in sorted({key for drain in drains_of(events) for key in drain.partitions}):
        ends: dict[int, int] = defaultdict(int)
        for drain in drains_of(events):
            if key in drain.partitions:
                ends[drain.process] = max(ends[drain.process], drain.offset or 0)
        places: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for event in events:
            for name, record in sound(event) if event.type == OK and event.process in ends else ():
                if name == key and record.offset < ends[event.process] and (key, record.value) not in sends:
                    places[record.value][event.process].append(record.offset)
        for value, by_reader in places.items():
            last = max(offset for offsets in by_reader.values() for offset in offsets)
            others = {reader for reader, end in ends.items() if end > last} - by_reader.keys()
            if others and (key, value) not in expired:
                findings.append((key, value, tuple(sorted(by_reader)), tuple(sorted(others))))
    return sorted(findings)


def lost_tombstone(events: list[Event]) -> Findings:
    return _gone_early(events, tombstones=True)


def cleaned_early(events: list[Event]) -> Findings:
    return _gone_early(events, tombstones=False)


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


def _gone_early(events: list[Event], *, tombstones: bool) -> Findings:
    log, sends, began = Log(events), keyed_sends(events), _invocations(events)
    findings: dict[tuple[str, int], tuple[Any, ...]] = {}
    for drain in drains_of(events):
        if not drain.detail:
            continue
        (key,), times = drain.partitions, msgspec.json.decode(drain.detail, type=CleanerTimes)
        kept_ms = times.record_ms + (times.tombstone_ms if tombstones else 0)
        seen = {r.value for e in events if e.type == OK and e.process == drain.process for k, r in sound(e) if k == key}
        for event in events:
            if event.type != OK or event.index not in began:
                continue
            for send in sends_of(event):
                name = (send.partition, send.value)
                if name not in sends or send.offset is None or send.partition != key:
                    continue
                superseded = name in log.superseded
                due = (sends[name].tombstone and not superseded) if tombstones else superseded
                age_us = drain.time_us - events[began[event.index]].time_us
                young = age_us < kept_ms * 1000 - 1_000_000
                if due and young and send.offset < (drain.offset or 0) and send.value not in seen:
                    number = sends[name].record_key
                    findings.setdefault(name, (key, number, send.value, send.offset, event.index, drain.index))
    return sorted(findings.values())


def _touching(events: list[Event], key: str, process: int) -> Iterator[int]:
    """Indexes of the events in which a process did something with a key."""
    for event in events:
        touched = {s.partition for s in sends_of(event)} | keys_read(event) | set(event.partitions)
        if event.process == process and key in touched:
            yield event.index


def unseen(events: list[Event]) -> Findings:
    log = Log(events)
    return _by_key(log.sent[OK] - log.read_ok - log.removable)


def expired_write(events: list[Event]) -> Findings:
    log = Log(events)
    return _by_key((log.sent[OK] - log.read_ok) & log.expired)


def _by_key(values: set[tuple[str, int]]) -> Findings:
    missing = sorted(values)
    keys = sorted({key for key, _ in missing})
    return [(key, tuple(sorted(v for k, v in missing if k == key))) for key in keys]


def duplicate(events: list[Event]) -> Findings:
    log = Log(events)
    findings = []
    for key, value in log.values():
        offsets = tuple(sorted(o for o, values in log.log[key].items() if value in values))
        if len(offsets) > 1:
            findings.append((key, value, len(offsets), offsets))
    return sorted(findings)


def inconsistent_offsets(events: list[Event]) -> Findings:
    log = Log(events)
    return sorted(
        (key, offset, sorted(offsets).index(offset), tuple(sorted(values)))
        for key, offsets in log.log.items()
        for offset, values in offsets.items()
        if len(values) > 1
    )


def phantom_read(events: list[Event]) -> Findings:
    tried = {(s.partition, s.value) for e in events for s in sends_of(e)}
    read = {(key, record.value) for e in events if e.type != INVOKE for key, record in sound(e)}
    return sorted(read - tried)


def corrupt_read(events: list[Event]) -> Findings:
    return sorted(
        {
            (key, record.offset, str(record.defect))
            for event in events
            if event.type != INVOKE
            for key, record in reads_of(event)
            if record.defect
        }
    )


def g1a(events: list[Event]) -> Findings:
    log = Log(events)
    return sorted(
        {(k, r.value, e.index) for e in log.done if e.type == OK for k, r in sound(e) if (k, r.value) in log.sent[FAIL]}
    )


def precommitted_read(events: list[Event]) -> Findings:
    """For each operation and key, the first value that it read and had sent itself."""
    first_values: dict[tuple[str, int], int] = {}
    for event in events:
        own = {(s.partition, s.value) for s in sends_of(event)}
        for key, record in sound(event) if event.type != INVOKE else ():
            if (key, record.value) in own:
                first_values.setdefault((key, event.index), record.value)
    return sorted((*where, value) for where, value in first_values.items())


def _inner(events: list[Event], pick: Callable[[Event], list[tuple[str, int | None]]]) -> Findings:
    log = Log(events)
    steps = []
    for event in log.done:
        for key in sorted({key for key, _ in pick(event)}):
            values = [value for k, value in pick(event) if k == key]
            for earlier, later in pairwise(values):
                low, high = log.index(key, earlier), log.index(key, later)
                if low is not None and high is not None:
                    steps.append((key, event.index, earlier, later, high - low, log.over(key, low, high)))
    return steps


def _read_values(event: Event) -> list[tuple[str, int | None]]:
    return [(key, None if record.defect else record.value) for key, record in reads_of(event)]


def _sent_values(event: Event) -> list[tuple[str, int | None]]:
    return [(send.partition, send.value) for send in sends_of(event)]


def int_poll_skip(events: list[Event]) -> Findings:
    return sorted(step for step in _inner(events, _read_values) if step[4] > 1 and step[5])


def int_nonmonotonic_poll(events: list[Event]) -> Findings:
    return sorted(step[:5] for step in _inner(events, _read_values) if step[4] < 1)


def int_send_skip(events: list[Event]) -> Findings:
    return sorted(step for step in _inner(events, _sent_values) if step[4] > 1 and step[5])


def int_nonmonotonic_send(events: list[Event]) -> Findings:
    return sorted(step[:5] for step in _inner(events, _sent_values) if step[4] < 1)


def _walk(
    events: list[Event],
    pick: Callable[[Event], list[tuple[str, int | None]]],
    touched: Callable[[Event], set[str]],
    compared: set[EventType],
    advancing: set[EventType],
) -> Findings:
    log = Log(events)
    steps = []
    for process in sorted({e.process for e in log.done}):
        positions: dict[str, tuple[int, int | None]] = {}
        for event in (e for e in log.done if e.process == process):
            if event.function in (Function.ASSIGN, Function.SUBSCRIBE) and event.type in (OK, INFO) and process >= 0:
                positions = {key: where for key, where in positions.items() if key in event.partitions}
            for key in sorted(touched(event)):
                values = [value for k, value in pick(event) if k == key]
                first, last = (values[0], values[-1]) if values else (None, None)
                if key in positions and event.type in compared:
                    low, high = log.index(key, positions[key][1]), log.index(key, first)
                    if low is not None and high is not None:
                        gap = log.over(key, low, high)
                        steps.append((key, positions[key][0], event.index, positions[key][1], first, high - low, gap))
                if event.type in advancing:
                    positions[key] = (event.index, last)
    return steps


def _polls(events: list[Event]) -> Findings:
    return _walk(events, _read_values, keys_read, {OK, FAIL, INFO}, {OK})


def _sends(events: list[Event]) -> Findings:
    return _walk(events, _sent_values, lambda e: {s.partition for s in sends_of(e)}, {OK, INFO}, {OK, INFO})


def poll_skip(events: list[Event]) -> Findings:
    return sorted((*s[:3], s[5], s[6]) for s in _polls(events) if s[5] > 1 and s[6])


def nonmonotonic_poll(events: list[Event]) -> Findings:
    return sorted(s[:6] for s in _polls(events) if s[5] < 1)


def nonmonotonic_send(events: list[Event]) -> Findings:
    return sorted(s[:6] for s in _sends(events) if s[5] < 1)


def reordered(events: list[Event]) -> Findings:
    """Each acknowledged write that stands before an earlier one of its instance, with the furthest of those."""
    log, began = Log(events), _invocations(events)
    lost = {finding[:2] for finding in lost_write(events)} | set(lost_after_drain(events))
    counted = [(s.partition, s.value) for e in log.done for s in sends_of(e)]
    asked = []
    for event in log.done:
        for position, send in enumerate(sends_of(event)):
            name = send.partition, send.value
            places = log.places(*name)
            alone = all(len(log.order[send.partition][rank]) == 1 for rank in places)
            sure = name in log.read_ok - lost and counted.count(name) == 1 and alone
            if event.type == OK and event.instance >= 0 and event.index in began and sure:
                asked.append((event.instance, send.partition, began[event.index], position, event.index, send.value))
    findings = []
    for instance, key, invoked, position, index, value in asked:
        before = [write for write in asked if write[:2] == (instance, key) and write[2:4] < (invoked, position)]
        overtaken = [(log.places(key, v)[0], v, i) for *_, i, v in before]
        furthest, earlier, other = max(overtaken, default=(-1, -1, -1))
        if log.places(key, value)[-1] < furthest:
            findings.append((key, other, index, earlier, value, log.places(key, value)[-1] - furthest))
    return sorted(findings)


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


def delivery(events: list[Event]) -> tuple[int, int]:
    """The numbers of acknowledged values that are lost by either rule, and that are on the log several times."""
    log = Log(events)
    lost = {finding[:2] for finding in lost_write(events)} | set(lost_after_drain(events))
    duplicated = {finding[:2] for finding in duplicate(events)}
    return len(lost & log.sent[OK]), len(duplicated & log.sent[OK])
