"""The parts of plants: a history that is being built, clients that no other operation has, sends and polls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypedDict

import msgspec
from typing_extensions import Unpack

from workloads import EventType, Function, MicroOperation, Poll, Record, Send

#: Values that no other operation sends.
A, B, C = 10**6, 10**6 + 1, 10**6 + 2
#: Clients of the plants have ten processes each: 100 to 109 are one instance.
FIRST_PROCESS: Final = 100
ONE, TWO, READER, OTHER = 100, 110, 120, 130


class EventRest(TypedDict, total=False):
    """The other fields of an event."""

    micro: tuple[MicroOperation, ...]
    partitions: tuple[str, ...]
    detail: msgspec.Struct | None
    offset: int
    error: str


class HistoryBuilder(Protocol):
    """A history that is being built, as plants see it."""

    #: Log partitions, and the offset at which each of them ends.
    keys: list[str]
    end: int

    def together(self, *operations: tuple[int, tuple[MicroOperation, ...]], kind: EventType = EventType.OK) -> None:
        """Operations (process, what it does) begun in this order, and all under way before the first one ends."""

    @property
    def time_us(self) -> int:
        """The time of the next event."""

    def event(self, process: int, kind: EventType, function: Function, **rest: Unpack[EventRest]) -> None:
        """One event, after all before it."""

    def wait(self, wait_us: int) -> None:
        """Let nothing happen for a while."""


class Plant(NamedTuple):
    """A function that plants an anomaly, and the counts of everything that a check must find then."""

    build: Callable[[HistoryBuilder], None]
    counts: dict[str, int]


def send_of(history: HistoryBuilder, *placed: tuple[int, int], key: int = 0) -> tuple[MicroOperation, ...]:
    """Sends of (value, distance from the end)."""
    return tuple(Send(history.keys[key], value, history.end + distance) for value, distance in placed)


def read_of(history: HistoryBuilder, *placed: tuple[int, int], key: int = 0) -> tuple[MicroOperation, ...]:
    """One poll of (value, distance from the end)."""
    return (Poll({history.keys[key]: tuple(Record(history.end + distance, value) for value, distance in placed)}),)


def written(history: HistoryBuilder, *values: int) -> None:
    """Values one behind the other, each by a producer of its own, all read by one consumer."""
    placed = [(value, distance) for distance, value in enumerate(values)]
    for number, pair in enumerate(placed):
        history.together((OTHER + 10 * (number + 1), send_of(history, pair)))
    history.together((OTHER, read_of(history, *placed)))
