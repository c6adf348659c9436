"""Generated histories: mostly a real log seen through real clients, with lies mixed in.

Hypothesis draws a seed and a length. Everything else follows from the seed, step by step, so that a shorter history is
the begin of the longer one; that is all the shrinking that is needed, and a hundred times faster than drawing it all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from workloads.operations import Defect, Event, EventType, Function, MicroOperation, Poll, Record, Send

KEYS = ("x", "y")
PROCESSES = 3
#: Offsets near the end of what kernels promise to handle.
HUGE = 2**62 - 100
OUTCOMES = (EventType.OK, EventType.OK, EventType.OK, EventType.INFO, EventType.FAIL)


@dataclass
class Scene:
    """A log per key, and what each process has read of it."""

    random: random.Random
    base: dict[str, int]
    logs: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {key: [] for key in KEYS})
    read_to: dict[tuple[int, str], int] = field(default_factory=dict)
    next_value: int = 0
    events: list[Event] = field(default_factory=list)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def add(self, process: int, kind: EventType, function: Function, **rest: Any) -> None:
        index = len(self.events)
        self.events.append(
            Event(index=index, time_us=index * 10, process=process, type=kind, function=function, **rest)
        )

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
            found = sorted(self.logs[key])[start : start + self.random.randint(0, 4)]
            self.read_to[process, key] = start + len(found)
            records[key] = tuple(self._record(offset, value) for offset, value in found)
        return Poll(records)

    def _record(self, offset: int, value: int) -> Record:
        if self.chance(25):
            return Record(offset, 900 + self.random.randint(0, 1))
        if self.chance(25):
            return Record(offset, -1, Defect.CHECKSUM)
        return Record(offset, value)


@st.composite
def histories(draw: st.DrawFn, operations_max: int = 30) -> list[Event]:
    """Overlapping processes that send, poll, assign; infos, fails, holes, huge and double offsets, broken records."""
    chosen = random.Random(draw(st.integers(0, 2**32)))
    scene = Scene(chosen, {key: chosen.choice([0, 5, HUGE]) for key in KEYS})
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
    for number, key in enumerate(KEYS):
        if scene.chance(4):
            continue
        process = 10 + (number if scene.chance(2) else 0)
        found = sorted(scene.logs[key])
        records = tuple(scene._record(offset, value) for offset, value in found)
        scene.add(process, EventType.OK, Function.POLL, micro=(Poll({key: records}),))
        end = found[-1][0] + 1 if found else 0
        scene.add(process, EventType.OK, Function.DRAIN, partitions=(key,), offset=end)
