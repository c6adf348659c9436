"""From events to rows of integers, cheaply, and from those to Arrow tables and back.

A row is :data:`WIDTH` numbers of 64 bits, one for each column of :data:`schema.SCHEMA`; texts (log partitions, errors,
details) are replaced by codes into lists that only grow. Making rows is the work that is done once per event while a
run goes on, so it does nothing that can wait. Nothing here touches a file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.history.pairing import OpenOperations, says_nothing_new
from workloads.history.schema import DEFECT_CODE, FUNCTION_CODE, NONE, SCHEMA, TEXT_COLUMNS, TYPE_CODE, Kind
from workloads.operations import Event, EventType, MicroOperation, Send

#: The rows of a history by column; columns of texts hold codes into :data:`Names`.
Columns = dict[str, npt.NDArray[Any]]
#: The texts behind the codes of each column of texts.
Names = Mapping[str, Sequence[str]]

WIDTH: Final = len(SCHEMA.names)
_ROW: Final = struct.Struct(f"={WIDTH}q")
_INDEX: Final = SCHEMA.get_field_index("index")
#: Where the columns that a row has before its position, and after its defect, end and begin.
_WHO_END: Final = SCHEMA.get_field_index("position")
_TAIL_BEGIN: Final = SCHEMA.get_field_index("node")

_EVENT, _SEND, _READ, _EMPTY, _BARE, _LISTED = (
    int(k) for k in (Kind.EVENT, Kind.SEND, Kind.READ, Kind.EMPTY, Kind.BARE, Kind.LISTED)
)


class Texts:
    """A list of different texts, each known by its place; None is -1."""

    def __init__(self, *texts: str) -> None:
        self.names: list[str] = list(texts)
        self._codes = {text: code for code, text in enumerate(texts)}

    def code(self, text: str | None) -> int:
        """The place of ``text``, which is added if it is new."""
        if text is None:
            return NONE
        known = self._codes.get(text)
        if known is None:
            known = self._codes[text] = len(self.names)
            self.names.append(text)
        return known


class Rows:
    """Rows in the making.

    An invocation has no row until it is known that its completion will not repeat it, or until rows are taken.
    """

    def __init__(self, open_operations: OpenOperations | None = None) -> None:
        self._keys = Texts("")
        self._errors = Texts()
        self._details = Texts()
        self._numbers = bytearray()
        self._open = OpenOperations() if open_operations is None else open_operations
        #: The invocations of open operations before this index have their rows.
        self._taken = 0
        self.events = 0

    def add(self, event: Event) -> None:
        """Add one event; it gets the next index.

        Raises:
            struct.error: a number does not fit into 64 bits.
        """
        index = self.events
        self.events = index + 1
        if event.process < 0:
            self._put(index, event)
        elif event.type is EventType.INVOKE:
            if (given_up := self._open.begin(index, event)) is not None:
                self._put_open(*given_up)
        elif (found := self._open.end(index, event)) is None:
            self._put(index, event)
        else:
            invoke_index, invocation = found
            folded = says_nothing_new(invocation, event)
            if not folded:
                self._put_open(invoke_index, invocation)
            self._put(index, event, (invoke_index, invocation.time_us, NONE, int(folded)))

    def _put(self, index: int, event: Event, invoked: tuple[int, int, int, int] = (NONE, NONE, NONE, 0)) -> None:
        """Make the rows of one event; ``invoked`` are the columns about its invocation."""
        micro = event.micro
        kind = TYPE_CODE[event.type], FUNCTION_CODE[event.function]
        who = (index, event.time_us, event.process, event.instance, *kind)
        tail = (
            NONE if event.node is None else event.node,
            *invoked,
            self._errors.code(event.error),
            self._details.code(event.detail),
        )
        if len(micro) == 1 and not event.partitions and isinstance(only := micro[0], Send):
            at = NONE if only.offset is None else only.offset
            self._numbers += _ROW.pack(self._keys.code(only.partition), *who, 0, _SEND, at, only.value, 0, *tail)
        elif micro:
            self._add_micro(who, micro, tail)
        else:
            end = NONE if event.offset is None else event.offset
            for place, name in enumerate(event.partitions):
                self._numbers += _ROW.pack(self._keys.code(name), *who, place, _LISTED, end, 0, 0, *tail)
            if not event.partitions:
                self._numbers += _ROW.pack(0, *who, 0, _EVENT, end, 0, 0, *tail)

    def _put_open(self, index: int, invocation: Event) -> None:
        """Make the rows of an invocation, unless they were taken before."""
        if index >= self._taken:
            self._put(index, invocation)

    def _add_micro(self, who: tuple[int, ...], micro: Sequence[MicroOperation], tail: tuple[int, ...]) -> None:
        put, pack, code = self._numbers.extend, _ROW.pack, self._keys.code
        for place, operation in enumerate(micro):
            if isinstance(operation, Send):
                at = NONE if operation.offset is None else operation.offset
                put(pack(code(operation.partition), *who, place, _SEND, at, operation.value, 0, *tail))
            elif not operation.records:
                put(pack(0, *who, place, _BARE, NONE, 0, 0, *tail))
            else:
                for name, records in operation.records.items():
                    key = code(name)
                    for record in records:
                        defect = DEFECT_CODE[record.defect]
                        put(pack(key, *who, place, _READ, record.offset, record.value, defect, *tail))
                    if not records:
                        put(pack(key, *who, place, _EMPTY, NONE, 0, 0, *tail))

    def skip(self) -> None:
        """Let one index pass without an event."""
        self.events += 1

    def mark_rebalanced(self, names: Sequence[str]) -> None:
        """State of the completion added last that a group rebalance touched these log partitions inside it."""
        last = _ROW.unpack_from(self._numbers, len(self._numbers) - _ROW.size)
        who, tail = last[1:_WHO_END], last[_TAIL_BEGIN:]
        for name in names:
            self._numbers += _ROW.pack(self._keys.code(name), *who, 0, Kind.REBALANCED, NONE, 0, 0, *tail)

    @property
    def names(self) -> Names:
        """The texts behind the codes; the lists are the living ones."""
        return {"key": self._keys.names, "error": self._errors.names, "detail": self._details.names}

    def take(self) -> Columns:
        """The rows so far by index, which are then forgotten. Codes of texts stay valid."""
        for index, invocation in self._open:
            self._put_open(index, invocation)
        self._taken = self.events
        taken, self._numbers = self._numbers, bytearray()
        matrix = np.frombuffer(taken, dtype=np.int64).reshape(-1, WIDTH)
        matrix = matrix[np.argsort(matrix[:, _INDEX], kind="stable")]
        return {name: matrix[:, place] for place, name in enumerate(SCHEMA.names)}


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
    known = used >= 0
    texts = pa.array([names[code] for code in used[known]], pa.string())
    if known.all():
        return pa.DictionaryArray.from_arrays(pa.array(places), texts)
    null = places < int((~known).sum())
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
