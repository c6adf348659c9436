"""The anomalies of transactions once more, in plain Python over events: slow, and written without the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tests.checkers.brute_force import (
    Findings,
    Log,
    drains_of,
    keys_read,
    lost_after_drain,
    lost_write,
    sends_of,
    sound,
)
from workloads.operations import Event, EventType, Function, MicroOperation, Poll, Reached, StableOffset, TransactionEnd


class Write(NamedTuple):
    """A value of a transaction of our own that has ended."""

    key: str
    value: int
    event: Event
    facts: TransactionEnd


def writes(events: list[Event]) -> Iterator[Write]:
    for event in events:
        if event.function == Function.TXN and event.type != EventType.INVOKE and event.detail:
            facts = msgspec.json.decode(event.detail, type=TransactionEnd)
            for send in sends_of(event):
                yield Write(send.partition, send.value, event, facts)


def reads(events: list[Event], key: str, value: int) -> list[Event]:
    return [e for e in events if e.type == EventType.OK for k, r in sound(e) if (k, r.value) == (key, value)]


def of_committed(events: list[Event]) -> list[Event]:
    """All events but those of known readers of uncommitted records."""
    return [event for event in events if event.isolation != "read_uncommitted"]


class Levels:
    """The level of each log partition's first reader, and of each reader."""

    def __init__(self, events: list[Event]) -> None:
        self.first: dict[str, str] = {}
        self._of_process: dict[tuple[str, int], str] = {}
        for event in events:
            if event.isolation is not None and event.type != EventType.INVOKE:
                for key in (*event.partitions, *keys_read(event)):
                    self.first.setdefault(key, event.isolation)
                    self._of_process.setdefault((key, event.process), event.isolation)

    def of(self, event: Event, key: str) -> str:
        """The level that a reader tells, at once or elsewhere; one that tells none reads committed records."""
        return event.isolation or self._of_process.get((key, event.process), "read_committed")

    def is_first(self, event: Event, key: str) -> bool:
        silent = event.isolation is None and key not in keys_read(event)
        return key not in self.first or silent or self.of(event, key) == self.first[key]


def held_to_commits(events: list[Event]) -> list[Event]:
    """Reads that must not see what is aborted or open, and all of the level of the log partition's first reader."""
    levels = Levels(events)
    return _only(events, lambda event, key: levels.of(event, key) == "read_committed" or levels.is_first(event, key))


def of_level(events: list[Event], *, first: bool) -> list[Event]:
    """The same events, of whose readers only those count that have the level of the first one of the log partition."""
    levels = Levels(events)
    return _only(events, lambda event, key: levels.is_first(event, key) == first)


def _only(events: list[Event], counts: Callable[[Event, str], bool]) -> list[Event]:
    """The events with that part of them that counts."""

    def part(event: Event, operation: MicroOperation) -> MicroOperation:
        if not isinstance(operation, Poll):
            return operation
        return Poll({key: records for key, records in operation.records.items() if counts(event, key)})

    return [
        msgspec.structs.replace(
            event,
            micro=tuple(part(event, operation) for operation in event.micro),
            partitions=tuple(key for key in event.partitions if counts(event, key)),
        )
        for event in events
    ]


def lost(events: list[Event]) -> set[tuple[str, int]]:
    """Values that readers of the first level passed over, or that final readers of either level had to see."""
    first, other = of_level(events, first=True), of_level(events, first=False)
    passed = lost_write(first, Log(of_committed(events)).read_ok)
    failed = {
        (write.key, write.value)
        for write in writes(events)
        if write.event.type == EventType.OK and str(write.value) in write.facts.failed
    }
    return {finding[:2] for finding in passed}.union(lost_after_drain(first), lost_after_drain(other)) - failed


def aborted_read(events: list[Event]) -> Findings:
    return sorted(
        {
            (write.key, write.value, reader.index)
            for write in writes(events)
            if write.event.type == EventType.FAIL and write.value not in write.facts.late
            for reader in reads(held_to_commits(events), write.key, write.value)
        }
    )


def early_read(events: list[Event]) -> Findings:
    findings = set()
    for write in writes(events):
        failed = write.event.type == EventType.OK and str(write.value) in write.facts.failed
        if write.event.type == EventType.FAIL or failed:
            continue
        asked_us = write.facts.ending_us if write.facts.asked == "commit" else None
        for reader in reads(held_to_commits(events), write.key, write.value):
            if asked_us is None or reader.time_us < asked_us:
                early_us = None if asked_us is None else asked_us - reader.time_us
                findings.add((write.key, write.value, reader.index, early_us))
    return sorted(findings)


def uncertain_and_gone(events: list[Event]) -> set[tuple[str, int]]:
    """Values of transactions of unknown end that have a place, and that final readers of a level passed unseen."""
    gone = set()
    for level in (of_level(events, first=True), of_level(events, first=False)):
        for drain in drains_of(level):
            for key in drain.partitions:
                readers = {e.process for e in drains_of(level) if key in e.partitions}
                seen = {
                    r.value
                    for e in level
                    if e.type == EventType.OK and e.process in readers
                    for k, r in sound(e)
                    if k == key
                }
                for write in writes(events):
                    uncertain = (
                        write.event.type == EventType.INFO and write.facts.asked == "commit" and write.key == key
                    )
                    places = [s.offset for s in sends_of(write.event) if (s.partition, s.value) == (key, write.value)]
                    if (
                        uncertain
                        and write.value not in seen
                        and places[0] is not None
                        and places[0] < (drain.offset or 0)
                    ):
                        gone.add((key, write.value))
    return gone - Log(events).removable


def torn_transaction(events: list[Event]) -> Findings:
    log, gone = Log(of_committed(events)), lost(events) | uncertain_and_gone(events)
    return sorted(
        (write.key, write.value, write.event.index)
        for write in writes(events)
        if (write.key, write.value) in gone
        and any(
            (send.partition, send.value) in log.read_ok
            for send in sends_of(write.event)
            if (send.partition, send.value) != (write.key, write.value)
        )
    )


def failed_send_committed(events: list[Event]) -> Findings:
    return sorted(
        (write.key, write.value, write.facts.failed[str(write.value)], write.event.index)
        for write in writes(events)
        if write.event.type == EventType.OK
        and not write.facts.failed.get(str(write.value), "NeverSent").startswith("NeverSent")
    )


def zombie(events: list[Event]) -> Findings:
    log = Log(events)
    findings = set()
    for write in writes(events):
        facts = write.facts
        if facts.superseded_us is None or facts.ending_us is None:
            continue
        failed = str(write.value) in facts.failed
        in_charge = facts.ending_us < facts.superseded_us
        committed = write.event.type == EventType.OK and not failed and not in_charge
        if committed or (write.value in facts.late and (write.key, write.value) in log.read_ok):
            findings.add((write.key, write.value, write.event.index, facts.ending_us - facts.superseded_us))
    return sorted(findings)


def hanging_transaction(events: list[Event]) -> Findings:
    findings = []
    for event in events:
        if event.function != Function.STABLE or not event.detail:
            continue
        facts = msgspec.json.decode(event.detail, type=StableOffset)
        (end,) = (micro for micro in event.micro if isinstance(micro, Reached))
        signs = [
            e.time_us
            for e in events
            if e.function == Function.TXN and any(send.partition == end.partition for send in sends_of(e))
        ]
        waited_us = event.time_us - max(signs, default=0)
        if end.offset < facts.high_watermark and waited_us >= facts.open_ms * 1000:
            findings.append((end.partition, end.offset, facts.high_watermark, waited_us))
    return sorted(findings)


#: By anomaly.
TWINS: dict[str, Callable[[list[Event]], Findings]] = {
    "aborted-read": aborted_read,
    "early-read": early_read,
    "torn-transaction": torn_transaction,
    "failed-send-committed": failed_send_committed,
    "zombie": zombie,
    "hanging-transaction": hanging_transaction,
}
