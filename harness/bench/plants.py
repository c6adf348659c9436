"""Plants one anomaly of each kind behind the end of a log, as a few operations of new clients.

They begin where all was written and read, in the first two of a block's log partitions, where the value at each offset
is the offset; what they acknowledge is read unless it is to be missed. Counts are those of a check in which overwrites
count as dependencies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypedDict

import msgspec
from typing_extensions import Unpack

from workloads import (
    NOTHING,
    Defect,
    EventType,
    Function,
    GroupMember,
    MicroOperation,
    Poll,
    Reached,
    Record,
    Send,
    StableOffset,
    TransactionEnd,
)

#: Values that no other operation sends.
A, B, C = 10**6, 10**6 + 1, 10**6 + 2
#: Clients of the plants have ten processes each: 100 to 109 are one instance.
FIRST_PROCESS: Final = 100
ONE, TWO, READER, OTHER = 100, 110, 120, 130


#: A transaction that its producer does not end may be open for this time.
OPEN_MS: Final = 20_000
GROUP: Final = GroupMember(group="planted")


class EventRest(TypedDict, total=False):
    """The other fields of an event."""

    micro: tuple[MicroOperation, ...]
    partitions: tuple[str, ...]
    detail: msgspec.Struct
    offset: int


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


# --- transactions ---


def _begin(history: HistoryBuilder, *sends: Send) -> None:
    begun = tuple(msgspec.structs.replace(send, offset=None) for send in sends)
    history.event(ONE, EventType.INVOKE, Function.TXN, micro=begun)


def _end(history: HistoryBuilder, *sends: Send, kind: EventType = EventType.OK, **facts: Any) -> None:
    """End a transaction whose end was asked for just now."""
    asked: dict[str, Any] = {"asked": "abort" if kind is EventType.FAIL else "commit", "ending_us": history.time_us}
    named: dict[str, Any] = {"transactional_id": "planted", "number": 0, **asked, **facts}
    history.wait(1)
    detail = TransactionEnd(**named)
    history.event(ONE, kind, Function.TXN, micro=sends, detail=detail)


def _transaction(history: HistoryBuilder, *sends: Send, kind: EventType = EventType.OK, **facts: Any) -> None:
    _begin(history, *sends)
    _end(history, *sends, kind=kind, **facts)


def _first(history: HistoryBuilder) -> Send:
    return Send(history.keys[0], A, history.end)


def _aborted_read(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), kind=EventType.FAIL)
    history.together((READER, _read(history, (A, 0))))


def _early_read(history: HistoryBuilder) -> None:
    _begin(history, _first(history))
    history.together((READER, _read(history, (A, 0))))
    _end(history, _first(history))


def _torn(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), Send(history.keys[1], B, history.end))
    history.together((OTHER, _send(history, (C, 1), key=1)))
    history.together((READER, (*_read(history, (A, 0)), *_read(history, (C, 1), key=1))))


def _failed_send(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), Send(history.keys[1], B), failed={str(B): "MessageTimedOut"})
    history.together((READER, _read(history, (A, 0))))


def _zombie(history: HistoryBuilder) -> None:
    _transaction(history, _first(history), superseded_us=history.time_us)
    history.together((READER, _read(history, (A, 0))))


def _hanging(history: HistoryBuilder) -> None:
    _transaction(history, _first(history))
    history.together((READER, _read(history, (A, 0))))
    history.wait(OPEN_MS * 1000)
    detail = StableOffset(high_watermark=history.end + 1, open_ms=OPEN_MS)
    reached = Reached(history.keys[0], history.end)
    history.event(READER, EventType.OK, Function.STABLE, micro=(reached,), detail=detail)


# --- groups ---


def _all_of(history: HistoryBuilder, *placed: tuple[int, int]) -> tuple[MicroOperation, ...]:
    """One poll of the whole log partition, and of (value, distance from the end)."""
    return _read(history, *((offset, offset - history.end) for offset in range(history.end)), *placed)


def _of_group(
    history: HistoryBuilder,
    member: int,
    function: Function,
    *,
    micro: tuple[MicroOperation, ...] = (),
    partitions: tuple[str, ...] = (),
) -> None:
    history.event(member, EventType.OK, function, micro=micro, partitions=partitions, detail=GROUP)


def _asked_and_told(history: HistoryBuilder, member: int, function: Function, offset: int) -> None:
    """A member asks the group for something with an offset, and the group answers."""
    for kind in (EventType.INVOKE, EventType.OK):
        history.event(member + 1, kind, function, micro=(Reached(history.keys[0], offset),), detail=GROUP)


def _join(history: HistoryBuilder, member: int) -> None:
    """A member is assigned the log partition, and processes it from its begin to its end."""
    _of_group(history, member, Function.REBALANCE, partitions=(history.keys[0],))
    history.together((member, _all_of(history)))
    _of_group(history, member, Function.PROCESS, micro=(Reached(history.keys[0], history.end, 0),))


def _skipped(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _written(history, A, B)
    history.together((TWO, _read(history, (B, 1))))
    _of_group(history, TWO, Function.PROCESS, micro=(Reached(history.keys[0], history.end + 2, history.end + 1),))
    _asked_and_told(history, TWO, Function.COMMIT, history.end + 2)


def _went_back(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _asked_and_told(history, ONE, Function.COMMIT, history.end)
    _asked_and_told(history, TWO, Function.COMMITTED, history.end - 1)


def _returned_group(history: HistoryBuilder) -> None:
    _join(history, ONE)
    _asked_and_told(history, ONE, Function.COMMIT, history.end)
    _asked_and_told(history, TWO, Function.DELETE_GROUP, NOTHING)
    _asked_and_told(history, TWO, Function.COMMITTED, history.end)


def _two_owners(history: HistoryBuilder) -> None:
    for member in (ONE, TWO):
        _join(history, member)
    for member in (TWO, ONE):
        _asked_and_told(history, member, Function.COMMIT, history.end)


# --- compacted logs ---


def _keyed(history: HistoryBuilder, *tombstones: bool) -> None:
    """Records of one key, one behind the other."""
    for distance, tombstone in enumerate(tombstones):
        send = Send(history.keys[0], A + distance, history.end + distance, record_key=7, tombstone=tombstone)
        history.together((ONE, (send,)))


def _final_read(history: HistoryBuilder, reader: int, placed: tuple[int, int]) -> None:
    """A reader reads the log partition to its end, two records behind what was there; one of these it sees."""
    history.together((reader, _all_of(history, placed)))
    end = history.end + 2
    history.event(reader, EventType.OK, Function.DRAIN, partitions=(history.keys[0],), offset=end)


def _returned(history: HistoryBuilder) -> None:
    _keyed(history, False, True)
    _final_read(history, READER, (A, 0))


def _different_states(history: HistoryBuilder) -> None:
    _keyed(history, False, False)
    _final_read(history, READER, (A, 0))
    _final_read(history, OTHER, (B, 1))


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
    "aborted-read": Plant(_aborted_read, {"aborted-read": 1}),
    "early-read": Plant(_early_read, {"early-read": 1}),
    "torn-transaction": Plant(_torn, {"torn-transaction": 1, "lost-write": 1, "unseen": 1}),
    "failed-send-committed": Plant(_failed_send, {"failed-send-committed": 1}),
    "zombie": Plant(_zombie, {"zombie": 1}),
    "hanging-transaction": Plant(_hanging, {"hanging-transaction": 1}),
    "group-skip": Plant(_skipped, {"group-skip": 1}),
    "group-went-back": Plant(_went_back, {"group-went-back": 1}),
    "returned-group": Plant(_returned_group, {"returned-group": 1}),
    "two-owners": Plant(_two_owners, {"two-owners": 1}),
    "returned-key": Plant(_returned, {"returned-key": 1}),
    "divergent-state": Plant(_different_states, {"divergent-state": 1}),
}
