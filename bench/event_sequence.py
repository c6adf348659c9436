"""The events of a synthetic history, in the making."""

from __future__ import annotations

import random
from typing import Final

import msgspec

from bench.plant_parts import FIRST_PROCESS
from workloads import Event, EventType, Function, MicroOperation, Poll, Send

#: Microseconds from one operation's begin to the next one's, and the bounds of its duration.
STEP_US: Final = 10
LATENCY_US: Final = (5, 75)


class EventSequence:
    """Events of consecutive blocks, in order of time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a measurement, seeded
        self.events: list[Event] = []
        self.time_us = 0

    def event(
        self,
        time_us: int,
        process: int,
        kind: EventType,
        function: Function,
        *,
        micro: tuple[MicroOperation, ...] = (),
        partitions: tuple[str, ...] = (),
        detail: msgspec.Struct | None = None,
        offset: int | None = None,
        error: str | None = None,
    ) -> None:
        """One event. The processes of clients of plants have instances, see :mod:`bench.plant_parts`."""
        instance = process if process < FIRST_PROCESS else process // 10 * 10
        self.events.append(
            Event(
                time_us=time_us,
                process=process,
                instance=instance,
                type=kind,
                function=function,
                micro=micro,
                partitions=partitions,
                offset=offset,
                error=error,
                detail=None if detail is None else msgspec.json.encode(detail).decode(),
            )
        )

    def operation(
        self,
        process: int,
        function: Function,
        micro: tuple[MicroOperation, ...] = (),
        partitions: tuple[str, ...] = (),
        *,
        kind: EventType = EventType.OK,
        latency_us: int | None = None,
    ) -> int:
        """One operation that begins now; the time at which it ends. How long it takes is drawn, unless it is given."""
        end = self.time_us + (self.chance.randint(*LATENCY_US) if latency_us is None else latency_us)
        self.event(self.time_us, process, EventType.INVOKE, function, micro=asked(micro), partitions=partitions)
        self.event(end, process, kind, function, micro=micro, partitions=partitions)
        self.time_us += STEP_US
        return end

    def quiet(self) -> None:
        """Let everything end."""
        self.time_us += LATENCY_US[1] + STEP_US


def asked(micro: tuple[MicroOperation, ...]) -> tuple[MicroOperation, ...]:
    """The same as an invocation says it, without the answers."""
    return tuple(
        Poll() if isinstance(m, Poll) else msgspec.structs.replace(m, offset=None) if isinstance(m, Send) else m
        for m in micro
    )
