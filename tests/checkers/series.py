"""Two rules said once more, plainly: what was unseen at each moment, and each poll's real-time lag.

Plain Python over events, O(events x log partitions held). The checking itself uses kernels that keep only the ends and
the worst of these series; tests hold them against what is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from workloads.operations import Event, EventType, Function, Poll, Send

_MICRO = (Function.SEND, Function.POLL, Function.TXN)


class Unseen(NamedTuple):
    """After one ok operation: its time, and by log partition how many acknowledged values nobody had read yet."""

    time_us: int
    unseen: dict[str, int]


class Lag(NamedTuple):
    """One poll's lag behind one log partition that its process held; ``time_us`` is the poll's begin."""

    time_us: int
    process: int
    key: str
    lag_us: int


def unseen_series(events: Iterable[Event]) -> Iterator[Unseen]:
    """One point an ok send, poll or transaction. A partition appears with its first acknowledged value."""
    sent: dict[str, set[int]] = {}
    polled: dict[str, set[int]] = {}
    for event in events:
        if event.type != EventType.OK or event.function not in _MICRO:
            continue
        for operation in event.micro:
            if isinstance(operation, Send):
                sent.setdefault(operation.partition, set()).add(operation.value)
            else:
                for key, records in operation.records.items():
                    polled.setdefault(key, set()).update(record.value for record in records if not record.defect)
        yield Unseen(event.time_us, {key: len(values - polled.get(key, set())) for key, values in sent.items()})


def lag_series(events: Iterable[Event]) -> list[Lag]:
    """The lag of every ok poll behind every log partition that its process held; see :mod:`checkers.measures.lag`."""
    history = list(events)
    grown = _grown(history)
    held: dict[int, dict[str, int]] = {}
    begun: dict[int, int] = {}
    lags: list[Lag] = []
    for event in history:
        if event.type == EventType.INVOKE:
            begun[event.process] = event.time_us
        elif event.type == EventType.OK and event.function in (Function.ASSIGN, Function.SUBSCRIBE):
            before = held.get(event.process, {}) if event.function == Function.ASSIGN else {}
            listed = event.partitions if event.function == Function.ASSIGN else ()
            held[event.process] = {key: before.get(key, -1) for key in listed}
        elif event.type == EventType.INFO and event.function in (Function.ASSIGN, Function.SUBSCRIBE):
            mine = held.get(event.process, {})
            held[event.process] = {key: offset for key, offset in mine.items() if key in event.partitions}
        elif event.type == EventType.OK and event.function in (Function.POLL, Function.TXN):
            mine = held.setdefault(event.process, {})
            for key, offset in max_offsets(event).items():
                mine[key] = max(offset, mine.get(key, -1))
            if (begin := begun.get(event.process)) is not None:
                lags += [
                    Lag(begin, event.process, key, _lag(grown, key, offset, begin)) for key, offset in mine.items()
                ]
    return lags


def max_offsets(event: Event) -> dict[str, int]:
    """By log partition, the largest offset that an operation showed, sent or read."""
    largest: dict[str, int] = {}
    for operation in event.micro:
        if isinstance(operation, Poll):
            shown = [(key, record.offset) for key, records in operation.records.items() for record in records]
        else:
            shown = [] if operation.offset is None else [(operation.partition, operation.offset)]
        for key, offset in shown:
            largest[key] = max(offset, largest.get(key, offset))
    return largest


def _grown(events: Iterable[Event]) -> dict[str, list[tuple[int, int]]]:
    """By log partition, (offset, time) of each completion that showed a larger offset than all before."""
    grown: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event.type in (EventType.OK, EventType.INFO):
            for key, offset in max_offsets(event).items():
                steps = grown.setdefault(key, [])
                if not steps or offset > steps[-1][0]:
                    steps.append((offset, event.time_us))
    return grown


def _lag(grown: dict[str, list[tuple[int, int]]], key: str, offset: int, begin: int) -> int:
    later = (time_us for reached, time_us in grown.get(key, ()) if reached > offset)
    return max(0, begin - next(later, begin))
