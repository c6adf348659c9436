"""Turns events into rows of integers, and those into Arrow tables and back.

A row is a number of 64 bits for each column of :data:`schema.SCHEMA`; texts (log partitions, errors, details) are
replaced by codes into lists that only grow. Nothing here touches a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.history.event_table import EventTable, Numbers, tabulate, texts_of_columns
from workloads.history.pairing import OpenOperations, pair
from workloads.history.schema import NONE, SCHEMA, TEXT_COLUMNS
from workloads.operations import Event, EventType, Function, MicroOperation

#: The rows of a history by column; columns of texts hold codes into :data:`Names`.
Columns = dict[str, npt.NDArray[Any]]
#: The texts behind the codes of each column of texts.
Names = Mapping[str, Sequence[str]]


class Rows:
    """Collects events and turns them into rows.

    Events are only kept until rows are taken: so an event costs next to nothing while a run goes on, and the work that
    can wait is done for many events at once. One thread may add while another takes.
    """

    def __init__(self, open_operations: OpenOperations | None = None, first: int = 0) -> None:
        self._texts = texts_of_columns()
        self._events: list[Event | None] = []
        self._open = OpenOperations() if open_operations is None else open_operations
        self._taken = first
        #: The operations that are open behind the first events that wait, if that was asked.
        self._now_open: OpenOperations | None = None
        self._looked_at = 0

    def add(self, event: Event) -> None:
        """Add one event; it gets the next index."""
        self._events.append(event)

    def skip(self) -> None:
        """Let one index pass without an event."""
        self._events.append(None)

    @property
    def waiting(self) -> Sequence[Event | None]:
        """The events that were added since rows were taken; None where one was skipped."""
        return self._events

    @property
    def events(self) -> int:
        """The index that the next event gets."""
        return self._taken + len(self._events)

    def asked(self, process: int, function: Function) -> list[tuple[MicroOperation, ...]]:
        """Give what each open operation of a process and a function asked."""
        if self._now_open is None:
            self._now_open, self._looked_at = OpenOperations(self._open), 0
        for index in range(self._looked_at, len(self._events)):
            if (event := self._events[index]) is not None:
                end = event.type is not EventType.INVOKE
                (self._now_open.end if end else self._now_open.begin)(self._taken + index, event)
        self._looked_at = len(self._events)
        self._open.look_before(process)
        return [event.micro for _, event in self._now_open.of(process) if event.function is function]

    @property
    def names(self) -> Names:
        """The texts behind the codes; the lists are the living ones."""
        return {name: texts.names for name, texts in self._texts.items()}

    def take(self) -> Columns:
        """The rows of the events so far (int64), which are then forgotten. Codes of texts stay valid.

        The rows of an invocation are left out if its completion repeats it and is here too.

        Raises:
            struct.error: a number does not fit into 64 bits.
        """
        before, taken, first = list(self._open), self._events[:], self._taken
        del self._events[: len(taken)]
        self._now_open = None
        self._taken += len(taken)
        events = before + [(index, event) for index, event in enumerate(taken, first) if event is not None]
        table = tabulate([event for _, event in events], self._texts)
        pairs = pair(events, len(before), table, self._open)
        return _columns(np.array([index for index, _ in events], dtype=np.int64), len(before), table, pairs)


class HistoryInMemory:
    """A history that is in no file, as a recorder (:class:`workloads.Recorder`): ``rows`` has all of it."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.record: Callable[[Event], None] = self.rows.add


def _columns(index: Numbers, carried: int, table: EventTable, pairs: tuple[Numbers, Numbers]) -> Columns:
    """The rows of all events but the first ``carried``, with the facts of invocations by ``pairs`` of places."""
    invocations, completions = pairs
    folded = table.repeated(invocations, completions)
    of_events: Columns = {**table.events, "index": index, "waited_us": np.full(len(index), NONE)}
    for name, values, unknown in (
        ("invoke_index", index[invocations], NONE),
        ("invoke_us", table.events["time_us"][invocations], NONE),
        ("folded", folded, 0),
    ):
        of_events[name] = np.full(len(index), unknown)
        of_events[name][completions] = values
    left = np.arange(len(index)) >= carried
    left[invocations[folded]] = False
    rows = np.flatnonzero(left[table.rows["event"]])
    event = table.rows["event"][rows]
    return {name: table.rows[name][rows] if name in table.rows else of_events[name][event] for name in SCHEMA.names}


def to_table(columns: Columns, names: Names) -> pa.Table:
    """Rows as an Arrow table of the history's schema; a code of -1 is null."""
    arrays = []
    for field in SCHEMA:
        numbers = columns[field.name]
        if field.name in TEXT_COLUMNS:
            arrays.append(_texts(numbers, names[field.name]))
        else:
            arrays.append(pa.array(numbers.astype(field.type.to_pandas_dtype(), copy=False)))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _texts(codes: npt.NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    used, places = np.unique(codes, return_inverse=True)
    places = places.astype(np.int32)
    is_text = used >= 0
    texts = pa.array([names[code] for code in used[is_text]], pa.string())
    if is_text.all():
        return pa.DictionaryArray.from_arrays(pa.array(places), texts)
    null = places < int((~is_text).sum())
    return pa.DictionaryArray.from_arrays(pa.array(np.where(null, 0, places - 1), pa.int32(), mask=null), texts)


def from_tables(tables: Sequence[pa.Table]) -> tuple[Columns, Names]:
    """Columns and texts of tables laid end to end, which may lack columns; the texts of all are merged."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    columns: Columns = {}
    names: dict[str, Sequence[str]] = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], SCHEMA.field(name).type)
        if name in TEXT_COLUMNS:
            columns[name] = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            names[name] = column.dictionary.to_pylist()
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return columns, names
