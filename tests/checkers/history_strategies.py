"""Generated histories: mostly a real log seen through real clients, with lies mixed in.

Hypothesis draws a seed and a length. Everything else follows from the seed, step by step, so that a shorter history is
the begin of the longer one; that is all the shrinking that is needed, and a hundred times faster than drawing it all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st

from workloads.operations import (
    NO_INSTANCE,
    CleanerTimes,
    Event,
    EventType,
    Function,
    MicroOperation,
    PayloadDefect,
    Poll,
    Record,
    Send,
)

KEYS = ("x", "y")
PROCESSES = 3
#: Offsets near the end of what kernels promise to handle.
HUGE = 2**62 - 100
OUTCOMES = (EventType.OK, EventType.OK, EventType.OK, EventType.INFO, EventType.FAIL)
#: Times for which a cleaner keeps records.
KEPT_MS = (0, 0, 2_000, 5_000, 10_000, 2**63 - 1)
#: Instances of processes: not known, one for all, and one of two processes beside another.
INSTANCES = ({}, {0: 0, 1: 0, 2: 0}, {0: 0, 1: 1, 2: 1})


@dataclass
class Scene:
    """A log per key, and what each process has read of it."""

    random: random.Random
    base: dict[str, int]
    logs: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {key: [] for key in KEYS})
    read_to: dict[tuple[int, str], int] = field(default_factory=dict)
    next_value: int = 0
    instances: dict[int, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def add(self, process: int, kind: EventType, function: Function, **rest: Any) -> None:
        index = len(self.events)
        who = {"process": process, "instance": self.instances.get(process, NO_INSTANCE)}
        self.events.append(Event(index=index, time_us=index * 10, type=kind, function=function, **who, **rest))

    def send(self, kind: EventType) -> Send:
        key = self.random.choice(KEYS)
        log = self.logs[key]
        if log and self.chance(8):
            value = self.random.choice(log)[1]
        else:
            value, self.next_value = self.next_value, self.next_value + 1
        offset = self.base[key] + len(log) + self.random.choice([0, 0, 0, 0, 1, 3])
        if log and self.chance(10):
            offset = self.random.choice(log)[0]
        if (kind == EventType.OK or self.chance(2)) and not self.chance(8):
            log.append((offset, value))
        return Send(key, value, None if self.chance(4) else offset)

    def poll(self, process: int) -> Poll:
        records: dict[str, tuple[Record, ...]] = {}
        for key in KEYS:
            if self.chance(4):
                continue
            start = self.read_to.get((process, key), 0)
            if self.chance(6):
                start = self.random.randint(0, len(self.logs[key]))
            entries = sorted(self.logs[key])[start : start + self.random.randint(0, 4)]
            self.read_to[process, key] = start + len(entries)
            records[key] = tuple(self._record(offset, value) for offset, value in entries)
        return Poll(records)

    def _record(self, offset: int, value: int) -> Record:
        if self.chance(25):
            return Record(offset, 900 + self.random.randint(0, 1))
        if self.chance(25):
            return Record(offset, -1, PayloadDefect.CHECKSUM)
        return Record(offset, value)


@st.composite
def histories(draw: st.DrawFn, operations_max: int = 30) -> list[Event]:
    """Overlapping processes that send, poll, assign; infos, fails, holes, huge and double offsets, broken records."""
    seed = draw(st.integers(0, 2**32))
    chosen = random.Random(seed)
    scene = Scene(
        chosen, {key: chosen.choice([0, 5, HUGE]) for key in KEYS}, instances=INSTANCES[seed % len(INSTANCES)]
    )
    waiting: dict[int, tuple[EventType, Function, dict[str, Any]]] = {}
    for _ in range(draw(st.integers(0, operations_max))):
        process = chosen.randrange(PROCESSES)
        if process in waiting:
            _complete(scene, process, waiting)
            continue
        kind = chosen.choice(OUTCOMES)
        function = chosen.choice(FUNCTIONS[process % 2])
        rest = _asked(scene, process, kind, function)
        scene.add(process, EventType.INVOKE, function, **_invoked(rest))
        waiting[process] = (kind, function, rest)
        if not scene.chance(3):
            _complete(scene, process, waiting)
    for process in sorted(waiting):
        if not scene.chance(4):
            _complete(scene, process, waiting)
    if scene.chance(2):
        _drain(scene)
    return scene.events


@st.composite
def keyed_histories(draw: st.DrawFn) -> list[Event]:
    """The same, where values have one of two keys and some of them delete it; two readers read to the end.

    Some readers say how long the cleaner keeps records; half a second passes from event to event.
    """
    events = draw(histories())
    seed = draw(st.integers(0, 2**32))
    chosen = random.Random(seed)
    of = [(chosen.choice([0, 1, None]), chosen.randrange(3) == 0) for _ in range(100)]

    def keyed(micro: MicroOperation) -> MicroOperation:
        if not isinstance(micro, Send) or of[micro.value][0] is None:
            return micro
        number, tombstone = of[micro.value]
        return Send(micro.partition, micro.value, micro.offset, number, tombstone)

    return [_told(msgspec.structs.replace(e, micro=tuple(map(keyed, e.micro))), chosen) for e in events]


def _told(event: Event, chosen: random.Random) -> Event:
    """The same half a second after the event before, and with the times of the cleaner where a reader may say them."""
    detail = None
    if event.function == Function.DRAIN and chosen.randrange(4):
        times = CleanerTimes(
            record_ms=chosen.choice(KEPT_MS),
            tombstone_ms=chosen.choice(KEPT_MS),
            segment_ms=chosen.choice((None, 0, 1_000)),
            dirty_ratio=chosen.choice((None, 0.0, 0.1, 0.2)),
            retention_ms=chosen.choice((None, None, 0, 2_000, 5_000)),
        )
        detail = msgspec.json.encode(times).decode()
    return msgspec.structs.replace(event, time_us=event.index * 500_000, detail=detail)


@st.composite
def cleaned_histories(draw: st.DrawFn) -> list[Event]:
    """Writes of a few keys, and final readers between them and behind them that miss every second record."""
    chosen = random.Random(draw(st.integers(0, 2**32)))
    scene = Scene(chosen, dict.fromkeys(KEYS, 0))
    for value in range(draw(st.integers(0, 16))):
        key, kind = chosen.choice(KEYS), chosen.choice(OUTCOMES)
        offset = len(scene.logs[key])
        if kind == EventType.OK or scene.chance(2):
            scene.logs[key].append((offset, value))
        send = Send(key, value, None if scene.chance(6) else offset, chosen.randrange(3), scene.chance(2))
        scene.add(0, EventType.INVOKE, Function.SEND, micro=(msgspec.structs.replace(send, offset=None),))
        scene.add(0, kind, Function.SEND, micro=(send,))
        if scene.chance(3):
            _final_reader(scene, 10 + value)
    _final_reader(scene, 9)
    return [_told(event, chosen) for event in scene.events]


def _final_reader(scene: Scene, process: int) -> None:
    for key, log in scene.logs.items():
        read = tuple(Record(*record) for record in log if scene.chance(2))
        scene.add(process, EventType.OK, Function.POLL, micro=(Poll({key: read}),))
        end = len(log) - scene.random.choice([0, 0, 0, 1])
        scene.add(process, EventType.OK, Function.DRAIN, partitions=(key,), offset=max(end, 0))


#: Even processes mostly read, odd ones mostly write.
FUNCTIONS = (
    (*(Function.POLL,) * 8, Function.TXN, Function.ASSIGN, Function.SUBSCRIBE),
    (*(Function.SEND,) * 6, Function.TXN, Function.TXN, Function.ASSIGN),
)


def _asked(scene: Scene, process: int, kind: EventType, function: Function) -> dict[str, Any]:
    if function in (Function.ASSIGN, Function.SUBSCRIBE):
        return {"partitions": tuple(key for key in KEYS if not scene.chance(3))}
    micro: list[MicroOperation] = []
    for _ in range(scene.random.randint(1, 3)):
        sends = function == Function.SEND or (function == Function.TXN and scene.chance(2))
        micro.append(scene.send(kind) if sends else scene.poll(process))
    return {"micro": tuple(micro)}


def _invoked(rest: dict[str, Any]) -> dict[str, Any]:
    micro = tuple(Send(m.partition, m.value) if isinstance(m, Send) else Poll() for m in rest.get("micro", ()))
    return rest | {"micro": micro} if "micro" in rest else rest


def _complete(scene: Scene, process: int, waiting: dict[int, tuple[EventType, Function, dict[str, Any]]]) -> None:
    kind, function, rest = waiting.pop(process)
    scene.add(process, kind, function, **rest)


def _drain(scene: Scene) -> None:
    """A fresh process reads a key from its start and says how far it came, which may be a lie."""
    for number, key in enumerate((*KEYS, *KEYS) if scene.chance(2) else KEYS):
        if scene.chance(4):
            continue
        process = 10 + (number if scene.chance(2) else 0)
        entries = sorted(scene.logs[key])
        records = tuple(scene._record(offset, value) for offset, value in entries if not scene.chance(9))
        scene.add(process, EventType.OK, Function.POLL, micro=(Poll({key: records}),))
        end = entries[-1][0] + 1 if entries else 0
        scene.add(process, EventType.OK, Function.DRAIN, partitions=(key,), offset=end)


@st.composite
def pipelined_histories(draw: st.DrawFn, writes_max: int = 20) -> list[Event]:
    """Two instances with many sends in flight, each send a process of its own, on a log that mixes them up.

    Retries double and displace, answers come in any order or not at all, records are lost and read in part.
    """
    chosen = random.Random(draw(st.integers(0, 2**32)))
    writes = range(draw(st.integers(0, writes_max)))
    scene = Scene(chosen, dict.fromkeys(KEYS, 0), instances={value: value % 2 for value in writes})
    key = {value: chosen.choice(KEYS) for value in writes}
    due = {value: sorted(value + chosen.choice([0, 0, 1, 3, 9]) for _ in range(chosen.choice([0, 1, 1, 1, 2])))
           for value in writes}  # fmt: skip
    for _, value in sorted((when, value) for value, places in due.items() for when in places):
        scene.logs[key[value]].append((len(scene.logs[key[value]]), value))
    for value in writes:
        scene.add(value, EventType.INVOKE, Function.SEND, micro=(Send(key[value], value),))
    for value in chosen.sample(writes, len(writes)):
        offsets = [offset for offset, other in scene.logs[key[value]] if other == value]
        offset = chosen.choice([*offsets, *offsets, None])
        offset = chosen.randrange(25) if scene.chance(25) else offset
        scene.add(value, chosen.choice(OUTCOMES), Function.SEND, micro=(Send(key[value], value, offset),))
    for number, name in enumerate(KEYS):
        log = scene.logs[name]
        if scene.chance(3):
            log = [entry for entry in log if not scene.chance(5)]
        records = tuple(Record(*entry) for entry in log[: chosen.choice([len(log), len(log), len(log) // 2])])
        scene.add(30 + number, EventType.OK, Function.POLL, micro=(Poll({name: records}),))
        if scene.chance(2):
            scene.add(30 + number, EventType.OK, Function.DRAIN, partitions=(name,), offset=len(log))
    return scene.events
