"""Histories as JSON lines, one operation a line: the exchange format of docs/guides/history-format.md.

Three lines::

    {"type": "invoke", "process": 1, "f": "send", "value": [["send", "t-0", 40]], "time": 870}
    {"type": "ok", "process": 1, "f": "send", "value": [["send", "t-0", [8, 40]]], "time": 880}
    {"type": "ok", "process": 3, "f": "poll", "value": [["poll", {"t-0": [[8, 40]], "t-1": []}]], "time": 900}

A send of a workload about keys ends with its key: ``["send", "t-0", 41, {"key": 7, "tombstone": true}]``. An offset
of a group is ``["reached", "t-0", 9]``, null where it has committed nothing, or ``["reached", "t-0", [5, 9]]`` from
offset 5 on. An output of an application, at offset 3, that was made of an input of ``t-0`` is
``["effect", "t-0", [3, 40]]``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Final, cast

import msgspec

from workloads import operations
from workloads.history.entries import MICRO, NO_OPERATION, Keyed, Whole, add_entry, quoted, whole_or_none
from workloads.history.left_out import LeftOut
from workloads.history.origin import LARGEST, ValueCodes, key_name
from workloads.history.rows import Rows
from workloads.history.schema import NAMELESS
from workloads.settings import IsolationLevel

#: Errors that a line which is not an operation raises when it is decoded and read; OSError is about the file.
_NONSENSE: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
#: Functions of lines about replicas' own logs.
_OF_REPLICAS: Final = ("replica", "replicas")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_Offset = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_Client = Annotated[int, msgspec.Meta(ge=0, lt=NAMELESS)]
_Key = Annotated[str, msgspec.Meta(min_length=1)]


class _Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A record without a defect, with the fields of :class:`operations.Record`."""

    offset: _Offset
    value: _Offset
    defect: ClassVar[operations.PayloadDefect] = operations.PayloadDefect.NONE


class _Poll(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="poll"):
    records: dict[_Key, tuple[_Record, ...]] = {}

    def plain(self) -> operations.Poll:
        return operations.Poll(cast("dict[str, tuple[operations.Record, ...]]", self.records))


class _Placed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A value that was sent, and its offset if known. (A tuple's type in this place makes msgspec 0.22 crash.)"""

    offset: _Offset | None
    value: _Offset


class _Send(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="send", gc=False):
    key: _Key | int
    value: _Offset | _Placed
    record: Keyed | None = None

    def plain(self) -> operations.Send:
        key, value = self.key, self.value
        if not isinstance(key, str):
            key = key_name(key)
        number, offset = (value.value, value.offset) if isinstance(value, _Placed) else (value, None)
        if self.record is None:
            return operations.Send(key, number, offset)
        return operations.Send(key, number, offset, self.record.key, self.record.tombstone)


class _Usual(msgspec.Struct, rename={"rebalance_log": "rebalance-log"}, forbid_unknown_fields=True, gc=False):
    """A line as nearly all are: of a client, with numbers for values. It is decoded many times as fast as any line."""

    type: operations.EventType
    f: operations.Function
    process: _Client
    value: list[_Send | _Poll]
    time: Whole = -1
    index: Whole | None = None
    instance: _Client = operations.NO_INSTANCE
    offset: _Offset | None = None
    node: Whole | None = None
    isolation: IsolationLevel | None = None
    error: str | None = None
    detail: str | None = None
    rebalance_log: None = None


_USUAL: Final = msgspec.json.Decoder(_Usual)


class Decoder:
    """Turns lines into rows, in their order.

    Attributes:
        rows: the rows so far.
        lines: the number of lines so far.
        values: codes of values that are not numbers.
        indexes: by event, the index that its line gives, or None.
        options: the file's options.
        left_out: what the lines have and is not judged.
        replicas: lines about replicas' own logs, which are no operations.
    """

    def __init__(self, rows: Rows, values: ValueCodes) -> None:
        self.rows, self.values = rows, values
        self.lines = 0
        self.indexes: list[int | None] = []
        self.options: dict[str, Any] = {}
        self.left_out = LeftOut()
        self.replicas: list[bytes] = []

    def add(self, lines: Iterable[bytes], *, first: bool) -> None:
        """Decode lines; the ``first`` of a file may hold options and begin with a byte order mark.

        Raises:
            ValueError: the last of ``self.lines`` is not an operation; the text says why.
        """
        decode, index_of, add = _USUAL.decode, self.indexes.append, self.rows.add
        for line in lines:
            self.lines += 1
            try:
                usual = decode(line)
            except (msgspec.MsgspecError, RecursionError):  # wrong or unusual: its fields are read one by one
                self._add_unusual(line, first=first and self.lines == 1)
                continue
            if usual.f in MICRO:
                if usual.detail is not None:
                    self.left_out.line = self.lines
                    self.left_out.look_at(usual.f, usual.detail)
                index_of(usual.index)
                add(_event(usual))
            else:
                self._add_unusual(line, first=False)

    def _add_unusual(self, line: bytes, *, first: bool) -> None:
        if not line.strip():
            return
        try:
            entry = msgspec.json.decode(line.removeprefix(_BYTE_ORDER_MARK) if first else line)
            if not isinstance(entry, dict):
                raise ValueError(NO_OPERATION)
            if first and "options" in entry and "type" not in entry:
                self.options = _options(entry["options"])
                return
            if entry.get("process") == "harness" and entry.get("f") in _OF_REPLICAS:
                self.replicas.append(line)
                return
            self.indexes.append(whole_or_none("index", entry.get("index")))
            self.left_out.line = self.lines
            add_entry(self.rows, self.values, entry, self.left_out)
        except _NONSENSE as error:
            raise ValueError(_reason(error)) from error


def _event(line: _Usual) -> operations.Event:
    value = line.value
    return operations.Event(
        time_us=line.time,
        process=line.process,
        instance=line.instance,
        type=line.type,
        function=line.f,
        micro=(value[0].plain(),) if len(value) == 1 else tuple([m.plain() for m in value]),
        offset=line.offset,
        node=line.node,
        isolation=line.isolation,
        error=line.error,
        detail=line.detail,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"the operation has no {quoted(error.args[0])}; write an object with type, f and value"
    if isinstance(error, RecursionError):
        return "nested too deeply to be an operation"
    if isinstance(error, msgspec.DecodeError):
        return f"not valid JSON ({error}); write one object a line"
    return str(error) if isinstance(error, ValueError) else NO_OPERATION


def _options(options: object) -> dict[str, Any]:
    for name in ("ww_deps", "complete"):
        if not isinstance(options, dict) or not isinstance(options.get(name, True), bool):
            raise ValueError(f'options must be an object, and "{name}" in it true or false')
    return cast("dict[str, Any]", options)
