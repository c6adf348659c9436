"""Plants one anomaly of each kind behind the end of a log, as a few operations of new clients.

They begin where all was written and read, in the first two of a block's log partitions; what they acknowledge is read
unless it is to be missed. Counts are those of a check in which overwrites count as dependencies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from workloads import Defect, EventType, MicroOperation, Poll, Record, Send

#: Values that no other operation sends.
A, B, C = 10**6, 10**6 + 1, 10**6 + 2
#: Clients of the plants have ten processes each: 100 to 109 are one instance.
FIRST_PROCESS: Final = 100
ONE, TWO, READER, OTHER = 100, 110, 120, 130


class HistoryBuilder(Protocol):
    """A history that is being built, as plants see it."""

    #: Log partitions, and the offset at which each of them ends.
    keys: list[str]
    end: int

    def together(self, *operations: tuple[int, tuple[MicroOperation, ...]], kind: EventType = EventType.OK) -> None:
        """Operations (process, what it does) begun in this order, and all under way before the first one ends."""


class Plant(NamedTuple):
    """A function that plants an anomaly, and the counts of everything that a check must find then."""

    build: Callable[[HistoryBuilder], None]
    counts: dict[str, int]


def _send(history: HistoryBuilder, *placed: tuple[int, int], key: int = 0) -> tuple[MicroOperation, ...]:
    """Sends of (value, distance from the end)."""
    return tuple(Send(history.keys[key], value, history.end + distance) for value, distance in placed)


def _read(history: HistoryBuilder, *placed: tuple[int, int], key: int = 0) -> tuple[MicroOperation, ...]:
    """One poll of (value, distance from the end)."""
    return (Poll({history.keys[key]: tuple(Record(history.end + distance, value) for value, distance in placed)}),)


def _written(history: HistoryBuilder, *values: int) -> None:
    """Values one behind the other, each by a producer of its own, all read by one consumer."""
    placed = [(value, distance) for distance, value in enumerate(values)]
    for number, pair in enumerate(placed):
        history.together((OTHER + 10 * (number + 1), _send(history, pair)))
    history.together((OTHER, _read(history, *placed)))


def _unseen(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (A, 0))))


def _duplicate(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (A, 0))))
    history.together((READER, _read(history, (A, 0))))
    history.together((OTHER, _read(history, (A, 1))))


def _inconsistent(history: HistoryBuilder) -> None:
    history.together((ONE, (Send(history.keys[0], A),)), kind=EventType.INFO)
    history.together((READER, _read(history, (A, -1))), kind=EventType.FAIL)


def _phantom(history: HistoryBuilder) -> None:
    history.together((READER, _read(history, (A, 0))))


def _corrupt(history: HistoryBuilder) -> None:
    history.together((READER, (Poll({history.keys[0]: (Record(history.end, -1, Defect.CHECKSUM),)}),)))


def _read_of_a_failure(history: HistoryBuilder) -> None:
    history.together((ONE, (Send(history.keys[0], A),)), kind=EventType.FAIL)
    history.together((READER, _read(history, (A, 0))))


def _own_read(history: HistoryBuilder) -> None:
    history.together((ONE, (*_send(history, (A, 0)), *_read(history, (A, 0)))))


def _reordered(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (A, 1))), (ONE + 1, _send(history, (B, 0))))
    history.together((READER, _read(history, (B, 0), (A, 1))))


def _polls_back(history: HistoryBuilder) -> None:
    _written(history, A, B)
    history.together((READER, _read(history, (B, 1))))
    history.together((READER, _read(history, (A, 0))))


def _polls_over(history: HistoryBuilder) -> None:
    _written(history, A, B, C)
    history.together((READER, _read(history, (A, 0))))
    history.together((READER, _read(history, (C, 2))))


def _sends_back(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (B, 1))))
    history.together((ONE, _send(history, (A, 0))))
    history.together((READER, _read(history, (A, 0), (B, 1))))


def _polls_back_inside(history: HistoryBuilder) -> None:
    _written(history, A, B)
    history.together((READER, _read(history, (B, 1), (A, 0))))


def _polls_over_inside(history: HistoryBuilder) -> None:
    _written(history, A, B, C)
    history.together((READER, _read(history, (A, 0), (C, 2))))


def _sends_back_inside(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (B, 1), (A, 0))))
    history.together((READER, _read(history, (A, 0), (B, 1))))


def _sends_over_inside(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (A, 0), (C, 2))), (TWO, _send(history, (B, 1))))
    history.together((READER, _read(history, (A, 0), (B, 1), (C, 2))))


def _overwrites_in_a_circle(history: HistoryBuilder) -> None:
    history.together(
        (ONE, (*_send(history, (A, 0)), *_send(history, (A, 1), key=1))),
        (TWO, (*_send(history, (B, 1)), *_send(history, (B, 0), key=1))),
    )
    history.together((READER, (*_read(history, (A, 0), (B, 1)), *_read(history, (B, 0), (A, 1), key=1))))


def _overwritten_before_it_began(history: HistoryBuilder) -> None:
    history.together((ONE, _send(history, (B, 1))))
    history.together((TWO, _send(history, (A, 0))))
    history.together((READER, _read(history, (A, 0), (B, 1))))


def _reads_in_a_circle(history: HistoryBuilder) -> None:
    history.together(
        (ONE, (*_send(history, (A, 0)), *_read(history, (B, 0), key=1))),
        (TWO, (*_send(history, (B, 0), key=1), *_read(history, (A, 0)))),
    )


def _read_before_it_began(history: HistoryBuilder) -> None:
    history.together((READER, _read(history, (A, 0))))
    history.together((ONE, _send(history, (A, 0))))


def _nothing(_: HistoryBuilder) -> None:
    """Planted earlier, while the block was built."""


#: By anomaly. One that overtakes also shows in what looks at the same from another side.
PLANTS: Final[dict[str, Plant]] = {
    "lost-write": Plant(_nothing, {"lost-write": 1, "unseen": 1, "poll-skip": 1}),
    "unseen": Plant(_unseen, {"unseen": 1}),
    "duplicate": Plant(_duplicate, {"duplicate": 1}),
    "inconsistent-offsets": Plant(_inconsistent, {"inconsistent-offsets": 1}),
    "phantom-read": Plant(_phantom, {"phantom-read": 1}),
    "corrupt-read": Plant(_corrupt, {"corrupt-read": 1}),
    "G1a": Plant(_read_of_a_failure, {"G1a": 1}),
    "precommitted-read": Plant(_own_read, {"precommitted-read": 1}),
    "reordered": Plant(_reordered, {"reordered": 1}),
    "nonmonotonic-poll": Plant(_polls_back, {"nonmonotonic-poll": 1}),
    "poll-skip": Plant(_polls_over, {"poll-skip": 1}),
    "nonmonotonic-send": Plant(_sends_back, {"nonmonotonic-send": 1, "reordered": 1, "G0-realtime": 1}),
    "int-nonmonotonic-poll": Plant(_polls_back_inside, {"int-nonmonotonic-poll": 1}),
    "int-poll-skip": Plant(_polls_over_inside, {"int-poll-skip": 1}),
    "int-nonmonotonic-send": Plant(_sends_back_inside, {"int-nonmonotonic-send": 1, "reordered": 1}),
    "int-send-skip": Plant(_sends_over_inside, {"int-send-skip": 1, "G0": 1}),
    "G0": Plant(_overwrites_in_a_circle, {"G0": 1}),
    "G0-realtime": Plant(_overwritten_before_it_began, {"G0-realtime": 1}),
    "G1c": Plant(_reads_in_a_circle, {"G1c": 1}),
    "G1c-realtime": Plant(_read_before_it_began, {"G1c-realtime": 1}),
}
