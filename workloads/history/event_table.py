"""Events as numbers: an entry an event for its process and outcome, and a row for each thing it did to a log partition.

Three events and their rows::

    event 4  time 880  process 1  ok    send     row  t-0  SEND   offset 8  value 40
    event 5  time 900  process 3  ok    poll     row  t-0  READ   offset 8  value 40
                                                 row  t-1  EMPTY
    event 6  time 950  process 0  info  phase    row  ""   EVENT
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.history.schema import (
    DEFECT_CODE,
    FUNCTION_CODE,
    INVOKE,
    ISOLATION_CODE,
    NONE,
    TEXT_COLUMNS,
    TYPE_CODE,
    Kind,
)
from workloads.operations import Effect, Event, Poll, Reached, Send

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_EVENT, _SEND, _READ, _EMPTY, _BARE, _LISTED, _REBALANCED, _REACHED, _EFFECT = (
    int(k)
    for k in (
        Kind.EVENT, Kind.SEND, Kind.READ, Kind.EMPTY, Kind.BARE, Kind.LISTED, Kind.REBALANCED, Kind.REACHED,
        Kind.EFFECT,
    )
)  # fmt: skip
_OF_EVENT: Final = (
    "time_us", "process", "instance", "type", "function", "node", "isolation", "error", "detail", "offset",
)  # fmt: skip
_OF_ROW: Final = ("event", "key", "position", "kind", "offset", "value", "defect", "record_key", "tombstone")
_EVENT_NUMBERS: Final = struct.Struct(f"={len(_OF_EVENT)}q")
_ROW_NUMBERS: Final = struct.Struct(f"={len(_OF_ROW)}q")


class Texts:
    """A list of different texts, each known by its place; None is -1."""

    def __init__(self, *texts: str) -> None:
        self.names: list[str] = list(texts)
        self._codes = {text: code for code, text in enumerate(texts)}

    def code(self, text: str | None) -> int:
        """The place of ``text``, which is added if it is new."""
        if text is None:
            return NONE
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(text)
        return code


def texts_of_columns() -> dict[str, Texts]:
    """Empty lists of texts; that of keys begins with the empty key."""
    return {name: Texts("") if name == "key" else Texts() for name in TEXT_COLUMNS}


class EventTable(NamedTuple):
    """Events as numbers (int64); columns as in :data:`workloads.history.schema.SCHEMA`.

    Attributes:
        events: by event, its columns; ``offset`` is the event's own.
        rows: by row, the other columns, and its ``event``; the rows of an event are neighbours, in order.
        heads: the first row of each micro-operation, of each listed log partition, or of an event without either.
        starts: by event, the place in ``heads`` of its first head; one entry for each event, and one more for the end.
    """

    events: Mapping[str, Numbers]
    rows: Mapping[str, Numbers]
    heads: Numbers
    starts: Numbers

    @property
    def begins(self) -> Flags:
        """``bool[event]``: it is an invocation."""
        begins: Flags = self.events["type"] == INVOKE
        return begins

    @property
    def token(self) -> tuple[Numbers, Numbers]:
        """By event, two numbers that are the same in the invocation and the completion of one operation.

        They are the log partition and the value of its first send (values are unique), else its function and 0.
        """
        first = self.heads[self.starts[:-1]]
        sends = self.rows["kind"][first] == _SEND
        labels = np.where(sends, len(FUNCTION_CODE) + self.rows["key"][first], self.events["function"])
        return labels, sends * self.rows["value"][first]

    def repeated(self, invocations: Numbers, completions: Numbers) -> Flags:
        """``bool[pair of events]``: the whole invocation can be rebuilt from the completion."""
        events = self.events
        repeated: Flags = events["offset"][invocations] == NONE
        for name in ("node", "error", "detail"):
            repeated &= events[name][invocations] == NONE
        for name in ("instance", "function", "isolation"):
            repeated &= events[name][invocations] == events[name][completions]
        sizes = np.diff(self.starts)
        repeated &= sizes[invocations] == sizes[completions]
        pairs = np.flatnonzero(repeated)
        pair, asked, done = self._side_by_side(pairs, invocations[pairs], completions[pairs])
        rows = self.rows
        polls = np.isin(rows["kind"], (_READ, _EMPTY, _BARE))
        differs = (rows["offset"][asked] != NONE) | np.isin(rows["kind"][asked], (_READ, _EMPTY))
        differs |= polls[asked] != polls[done]
        for name in ("kind", "key", "value", "record_key", "tombstone"):
            differs |= ~polls[asked] & (rows[name][asked] != rows[name][done])
        repeated[pair[differs]] = False
        return repeated

    def _side_by_side(self, pairs: Numbers, first: Numbers, second: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The heads of two events of each pair, as rows side by side, and the pair of each; both have as many heads."""
        sizes = np.diff(self.starts)[first]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        of = [self.heads[np.repeat(self.starts[events], sizes) + within] for events in (first, second)]
        return np.repeat(pairs, sizes), *of


def tabulate(events: Sequence[Event], texts: Mapping[str, Texts]) -> EventTable:
    """Turn events into numbers.

    Args:
        events: the events.
        texts: the codes of the columns of texts; new texts are added.

    Raises:
        struct.error: a number does not fit into 64 bits.
    """
    of_events, of_rows = bytearray(), bytearray()
    put, pack = of_rows.extend, _ROW_NUMBERS.pack
    keys, errors, details = (texts[name].code for name in ("key", "error", "detail"))
    for number, event in enumerate(events):
        offset = NONE if event.offset is None else event.offset
        of_events += _EVENT_NUMBERS.pack(
            event.time_us,
            event.process,
            event.instance,
            TYPE_CODE[event.type],
            FUNCTION_CODE[event.function],
            NONE if event.node is None else event.node,
            NONE if event.isolation is None else ISOLATION_CODE[event.isolation],
            NONE if event.error is None else errors(event.error),
            NONE if event.detail is None else details(event.detail),
            offset,
        )
        if event.micro:
            for position, operation in enumerate(event.micro):
                if isinstance(operation, Send):
                    offset_sent = NONE if operation.offset is None else operation.offset
                    key = NONE if operation.record_key is None else operation.record_key
                    sent = (position, _SEND, offset_sent, operation.value, 0, key, operation.tombstone)
                    put(pack(number, keys(operation.partition), *sent))
                elif isinstance(operation, Reached):
                    since = NONE if operation.since is None else operation.since
                    reached = (position, _REACHED, operation.offset, since, 0, NONE, 0)
                    put(pack(number, keys(operation.partition), *reached))
                elif isinstance(operation, Effect):
                    made = (position, _EFFECT, operation.offset, operation.value, 0, NONE, 0)
                    put(pack(number, keys(operation.partition), *made))
                elif not operation.records:
                    put(pack(number, 0, position, _BARE, NONE, 0, 0, NONE, 0))
                else:
                    put(_polled(number, position, operation, keys))
        elif event.partitions:
            for position, name in enumerate(event.partitions):
                put(pack(number, keys(name), position, _LISTED, offset, 0, 0, NONE, 0))
        else:
            put(pack(number, 0, 0, _EVENT, offset, 0, 0, NONE, 0))
        for name in event.rebalanced:
            put(pack(number, keys(name), 0, _REBALANCED, NONE, 0, 0, NONE, 0))
    return _table(_columns(_OF_EVENT, of_events), _columns(_OF_ROW, of_rows))


def repeated(invocations: Sequence[Event], completions: Sequence[Event]) -> Flags:
    """Answer as :meth:`EventTable.repeated` for pairs of events that belong together."""
    pairs = np.arange(len(invocations))
    table = tabulate([*invocations, *completions], texts_of_columns())
    return table.repeated(pairs, pairs + len(pairs))


def _polled(event: int, position: int, poll: Poll, keys: Callable[[str], int]) -> bytearray:
    """The rows of the records that a poll brought."""
    pack, rows = _ROW_NUMBERS.pack, bytearray()
    for name, records in poll.records.items():
        key = keys(name)
        for record in records:
            defect = DEFECT_CODE[record.defect]
            rows += pack(event, key, position, _READ, record.offset, record.value, defect, NONE, 0)
        if not records:
            rows += pack(event, key, position, _EMPTY, NONE, 0, 0, NONE, 0)
    return rows


def _columns(names: Sequence[str], numbers: bytearray) -> dict[str, Numbers]:
    matrix = np.frombuffer(numbers, dtype=np.int64).reshape(-1, len(names))
    return {name: np.ascontiguousarray(matrix[:, column]) for column, name in enumerate(names)}


def _table(events: Mapping[str, Numbers], rows: Mapping[str, Numbers]) -> EventTable:
    event, position = rows["event"], rows["position"]
    first = (np.diff(event, prepend=-1) != 0) | (np.diff(position, prepend=0) != 0)
    heads = np.flatnonzero(first & (rows["kind"] != _REBALANCED))
    starts = np.searchsorted(event[heads], np.arange(len(events["process"]) + 1))
    return EventTable(events, rows, heads, starts)
