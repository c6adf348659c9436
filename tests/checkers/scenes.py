"""A small script for histories: what clients did, in order, ten microseconds apart."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tests.checkers.receipts import PLAIN
from workloads.operations import (
    HARNESS,
    NEMESIS,
    Event,
    EventType,
    Function,
    MicroOperation,
    PayloadDefect,
    Poll,
    Record,
    Send,
)

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE


class Scene:
    """Collects events; ``self.events`` is the history."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, process: int, kind: EventType, function: Function, **rest: Any) -> int:
        index = len(self.events)
        self.events.append(
            Event(index=index, time_us=10 * index, process=process, type=kind, function=function, **rest)
        )
        return index

    def operation(self, process: int, function: Function, *micro: MicroOperation, kind: EventType = OK) -> int:
        """An invocation and its completion; the completion's index."""
        asked = tuple(msgspec.structs.replace(m, offset=None) if isinstance(m, Send) else Poll() for m in micro)
        self.event(process, INVOKE, function, micro=asked)
        return self.event(process, kind, function, micro=micro)

    def send(self, value: int, offset: int | None, *, key: str = "t-0", process: int = 0, kind: EventType = OK) -> int:
        return self.operation(process, Function.SEND, Send(key, value, offset), kind=kind)

    def keyed(self, value: int, offset: int | None, record_key: int, *, tombstone: bool = False, **rest: Any) -> int:
        """A send of a record with a key."""
        return self.operation(
            rest.pop("process", 0), Function.SEND, Send("t-0", value, offset, record_key, tombstone), **rest
        )

    def pipelined(self, *asked: int, answered: dict[int, int | None], instance: int = 20, key: str = "t-0") -> None:
        """Values that one producer sends before any is answered, each by a process of its own, and their offsets."""
        who = {value: {"process": 20 + value, "function": Function.SEND, "instance": instance} for value in asked}
        for value in asked:
            self.event(kind=INVOKE, micro=(Send(key, value),), **who[value])
        for value, offset in answered.items():
            self.event(kind=OK, micro=(Send(key, value, offset),), **who[value])

    def poll(self, *records: tuple[int, int] | Record, key: str = "t-0", process: int = 1, kind: EventType = OK) -> int:
        """``records`` are (offset, value) pairs."""
        read = tuple(record if isinstance(record, Record) else Record(*record) for record in records)
        return self.operation(process, Function.POLL, Poll({key: read}), kind=kind)

    def corrupt(self, offset: int, defect: PayloadDefect, value: int = -1) -> Record:
        return Record(offset, value, defect)

    def assign(self, *keys: str, process: int = 1, kind: EventType = OK, function: Function = Function.ASSIGN) -> int:
        self.event(process, INVOKE, function, partitions=keys)
        return self.event(process, kind, function, partitions=keys)

    def drain(
        self, end: int | None, *, key: str = "t-0", process: int = 9, kind: EventType = OK, leader: int | None = None
    ) -> int:
        return self.event(process, kind, Function.DRAIN, partitions=(key,), offset=end, node=leader)

    def phase(self, name: str) -> int:
        return self.event(HARNESS, INFO, Function.PHASE, detail=json.dumps({"mark": name}))

    def fault(self, mark: str, sequence: int = 0, *, took_effect: bool = True, **facts: object) -> int:
        detail = PLAIN | {"mark": mark, "sequence": sequence, "took_effect": took_effect, **facts}
        return self.event(NEMESIS, INFO, Function.FAULT, detail=json.dumps(detail))
