"""Plants one anomaly of each kind behind the end of a log, as a few operations of new clients.

They begin where all was written and read, in the first two of a block's log partitions, where the value at each offset
is the offset; what they acknowledge is read unless it is to be missed. Counts are those of a check in which overwrites
count as dependencies.
"""

from __future__ import annotations

from typing import Final

from bench.plant_parts import ONE, OTHER, READER, TWO, A, B, C, HistoryBuilder, Plant, read_of, send_of, written
from bench.plants_of_clients import OF_CLIENTS
from workloads import EventType, PayloadDefect, Poll, Record, Send


def _unseen(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (A, 0))))


def _duplicate(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (A, 0))))
    history.together((READER, read_of(history, (A, 0))))
    history.together((OTHER, read_of(history, (A, 1))))


def _inconsistent(history: HistoryBuilder) -> None:
    history.together((ONE, (Send(history.keys[0], A),)), kind=EventType.INFO)
    history.together((READER, read_of(history, (A, -1))), kind=EventType.FAIL)


def _phantom(history: HistoryBuilder) -> None:
    history.together((READER, read_of(history, (A, 0))))


def _corrupt(history: HistoryBuilder) -> None:
    history.together((READER, (Poll({history.keys[0]: (Record(history.end, -1, PayloadDefect.CHECKSUM),)}),)))


def _read_of_a_failure(history: HistoryBuilder) -> None:
    history.together((ONE, (Send(history.keys[0], A),)), kind=EventType.FAIL)
    history.together((READER, read_of(history, (A, 0))))


def _own_read(history: HistoryBuilder) -> None:
    history.together((ONE, (*send_of(history, (A, 0)), *read_of(history, (A, 0)))))


def _reordered(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (A, 1))), (ONE + 1, send_of(history, (B, 0))))
    history.together((READER, read_of(history, (B, 0), (A, 1))))


def _polls_back(history: HistoryBuilder) -> None:
    written(history, A, B)
    history.together((READER, read_of(history, (B, 1))))
    history.together((READER, read_of(history, (A, 0))))


def _polls_over(history: HistoryBuilder) -> None:
    written(history, A, B, C)
    history.together((READER, read_of(history, (A, 0))))
    history.together((READER, read_of(history, (C, 2))))


def _sends_back(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (B, 1))))
    history.together((ONE, send_of(history, (A, 0))))
    history.together((READER, read_of(history, (A, 0), (B, 1))))


def _polls_back_inside(history: HistoryBuilder) -> None:
    written(history, A, B)
    history.together((READER, read_of(history, (B, 1), (A, 0))))


def _polls_over_inside(history: HistoryBuilder) -> None:
    written(history, A, B, C)
    history.together((READER, read_of(history, (A, 0), (C, 2))))


def _sends_back_inside(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (B, 1), (A, 0))))
    history.together((READER, read_of(history, (A, 0), (B, 1))))


def _sends_over_inside(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (A, 0), (C, 2))), (TWO, send_of(history, (B, 1))))
    history.together((READER, read_of(history, (A, 0), (B, 1), (C, 2))))


def _overwrites_in_a_circle(history: HistoryBuilder) -> None:
    history.together(
        (ONE, (*send_of(history, (A, 0)), *send_of(history, (A, 1), key=1))),
        (TWO, (*send_of(history, (B, 1)), *send_of(history, (B, 0), key=1))),
    )
    history.together((READER, (*read_of(history, (A, 0), (B, 1)), *read_of(history, (B, 0), (A, 1), key=1))))


def _overwritten_before_it_began(history: HistoryBuilder) -> None:
    history.together((ONE, send_of(history, (B, 1))))
    history.together((TWO, send_of(history, (A, 0))))
    history.together((READER, read_of(history, (A, 0), (B, 1))))


def _reads_in_a_circle(history: HistoryBuilder) -> None:
    history.together(
        (ONE, (*send_of(history, (A, 0)), *read_of(history, (B, 0), key=1))),
        (TWO, (*send_of(history, (B, 0), key=1), *read_of(history, (A, 0)))),
    )


def _read_before_it_began(history: HistoryBuilder) -> None:
    history.together((READER, read_of(history, (A, 0))))
    history.together((ONE, send_of(history, (A, 0))))


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
    **OF_CLIENTS,
}
