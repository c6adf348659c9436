"""Histories as JSON lines, one operation a line: the exchange format of docs/guides/history-format.md.

Three lines::

    {"type": "invoke", "process": 1, "f": "send", "value": [["send", "t-0", 40]], "time": 870}
    {"type": "ok", "process": 1, "f": "send", "value": [["send", "t-0", [8, 40]]], "time": 880}
    {"type": "ok", "process": 3, "f": "poll", "value": [["poll", {"t-0": [[8, 40]], "t-1": []}]], "time": 900}

A send of a workload about keys ends with its key: ``["send", "t-0", 41, {"key": 7, "tombstone": true}]``. An offset
of a group is ``["reached", "t-0", 9]``, null where it has committed nothing, or ``["reached", "t-0", [5, 9]]`` from
offset 5 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Final, cast

import msgspec

from workloads import operations
from workloads.history.origin import LARGEST, Origin, ValueCodes, key_name
from workloads.history.reader import read_events
from workloads.history.rows import Rows
from workloads.history.schema import ISOLATIONS, NAMELESS
from workloads.quoting import QUOTED_MAX
from workloads.settings import IsolationLevel

_PROCESSES: Final = {"nemesis": operations.NEMESIS, "harness": operations.HARNESS}
_NAMES: Final = {number: name for name, number in _PROCESSES.items()}
_MICRO: Final = tuple(
    operations.Function(name)
    for name in ("send", "poll", "txn", "commit", "committed", "process", "stable", "offsets", "delete-group")
)
_LISTS: Final = tuple(map(operations.Function, ("assign", "subscribe", "drain", "rebalance")))
#: Errors that a line which is not an operation raises when it is decoded and read; OSError is about the file.
_NONSENSE: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
#: Marks of the harness itself; every other event of a process that is not a client is a fault.
_MARKS: Final = tuple(map(operations.Function, ("phase", "recovery", "invariant", "refused")))
_NO_OPERATION: Final = "not an operation, which is an object with type, f and value"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_TYPES: Final = frozenset(operations.EventType)
_FUNCTIONS: Final = frozenset(operations.Function)
_DEFECTS: Final = frozenset(operations.PayloadDefect)

_Whole = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_Offset = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_Client = Annotated[int, msgspec.Meta(ge=0, lt=NAMELESS)]
_Key = Annotated[str, msgspec.Meta(min_length=1)]
_RecordKey = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A record without a defect, with the fields of :class:`operations.Record`."""

    offset: _Offset
    value: _Offset
    defect: ClassVar[operations.PayloadDefect] = operations.PayloadDefect.NONE


class _Poll(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="poll"):
    records: dict[_Key, tuple[_Record, ...]] = {}

    def plain(self) -> operations.Poll:
        return operations.Poll(cast("dict[str, tuple[operations.Record, ...]]", self.records))


class _Keyed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The key of a record that was sent, and whether the record deletes it."""

    key: _RecordKey
    tombstone: bool = False


class _Placed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A value that was sent, and its offset if known. (A tuple's type in this place makes msgspec 0.22 crash.)"""

    offset: _Offset | None
    value: _Offset


class _Send(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="send", gc=False):
    key: _Key | int
    value: _Offset | _Placed
    record: _Keyed | None = None

    def plain(self) -> operations.Send:
        key, value = self.key, self.value
        if not isinstance(key, str):
            key = key_name(key)
        number, offset = (value.value, value.offset) if isinstance(value, _Placed) else (value, None)
        if self.record is None:
            return operations.Send(key, number, offset)
        return operations.Send(key, number, offset, self.record.key, self.record.tombstone)


class _Usual(msgspec.Struct, rename={"rebalance_log": "rebalance-log"}, gc=False):
    """A line as nearly all are: of a client, with numbers for values. It is decoded many times as fast as any line."""

    type: operations.EventType
    f: operations.Function
    process: _Client
    value: list[_Send | _Poll]
    time: _Whole = -1
    index: _Whole | None = None
    instance: _Client = operations.NO_INSTANCE
    offset: _Offset | None = None
    node: _Whole | None = None
    isolation: IsolationLevel | None = None
    error: str | None = None
    detail: str | None = None
    rebalance_log: None = None


_USUAL: Final = msgspec.json.Decoder(_Usual)


def export_jsonl(directory: Path, sink: IO[bytes]) -> int:
    """Write a stored history as JSON lines; the number of operations is returned.

    Raises:
        files.HistoryError: the history cannot be read.
    """
    origin = Origin.load(directory)
    sink.write(msgspec.json.encode({"options": origin.options}) + b"\n")
    count = 0
    for event in read_events(directory):
        sink.write(msgspec.json.encode(line_of(event, origin)) + b"\n")
        count += 1
    return count


class Decoder:
    """Turns lines into rows, in their order.

    Attributes:
        rows: the rows so far.
        lines: the number of lines so far.
        values: codes of values that are not numbers.
        indexes: by event, the index that its line gives, or None.
        options: the file's options.
    """

    def __init__(self, rows: Rows, values: ValueCodes) -> None:
        self.rows, self.values = rows, values
        self.lines = 0
        self.indexes: list[int | None] = []
        self.options: dict[str, Any] = {}

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
            if usual.f in _MICRO:
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
                raise ValueError(_NO_OPERATION)
            if first and "options" in entry and "type" not in entry:
                self.options = _options(entry["options"])
                return
            self.indexes.append(_whole_or_none("index", entry.get("index")))
            _add(self.rows, self.values, entry)
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
        return f"the operation has no {_quoted(error.args[0])}; write an object with type, f and value"
    if isinstance(error, RecursionError):
        return "nested too deeply to be an operation"
    if isinstance(error, msgspec.DecodeError):
        return f"not valid JSON ({error}); write one object a line"
    return str(error) if isinstance(error, ValueError) else _NO_OPERATION


def _add(rows: Rows, values: ValueCodes, entry: Mapping[str, Any]) -> None:
    event_type, function, process = entry["type"], entry["f"], _process(entry.get("process"), rows.events)
    if event_type not in _TYPES:
        raise ValueError(f"type is {_quoted(event_type)}; it must be one of {', '.join(operations.EventType)}")
    value = entry.get("value")
    if function in _MICRO + _LISTS and not isinstance(value, list | None):
        raise ValueError(f"value is {_quoted(value)}; it must be a list")
    detail = entry.get("detail")
    if process < 0 and function not in _MARKS:
        detail = detail if function == operations.Function.FAULT and detail else {"f": function, "value": value}
        function = operations.Function.FAULT
    elif function not in _FUNCTIONS:
        rows.skip()
        return
    event = operations.Event(
        time_us=_whole("time", entry.get("time", -1)),
        process=process,
        instance=_instance(entry.get("instance")),
        type=operations.EventType(event_type),
        function=operations.Function(function),
        micro=tuple(_micro(m, values) for m in value or ()) if function in _MICRO else (),
        partitions=tuple(map(key_name, value or ())) if function in _LISTS else (),
        offset=_offset(entry.get("offset")),
        node=_whole_or_none("node", entry.get("node")),
        isolation=_level(entry.get("isolation")),
        error=_as_text(entry.get("error")),
        detail=_as_text(detail),
    )
    rows.add(event)
    if event.type != operations.EventType.INVOKE and (mentioned := _rebalanced(entry.get("rebalance-log"))):
        rows.mark_rebalanced(mentioned)


def _options(options: object) -> dict[str, Any]:
    if not isinstance(options, dict) or not isinstance(options.get("ww_deps", True), bool):
        raise ValueError('options must be an object, and "ww_deps" in it true or false')
    return options


def _whole(name: str, number: object) -> int:
    if type(number) is int and -LARGEST <= number <= LARGEST:
        return number
    raise ValueError(f"{name} is {_quoted(number)}; it must be a whole number between -2^62 and 2^62")


def _whole_or_none(name: str, number: object) -> int | None:
    return None if number is None else _whole(name, number)


def _process(process: object, position: int) -> int:
    if process is None:
        return NAMELESS + position
    if isinstance(process, str):
        return _PROCESSES.get(process, operations.NEMESIS)
    if type(process) is int and 0 <= process < NAMELESS:
        return process
    raise ValueError(f"process is {_quoted(process)}; it must be a whole number, null or a name")


def _instance(instance: object) -> int:
    if instance is None:
        return operations.NO_INSTANCE
    if type(instance) is int and 0 <= instance < NAMELESS:
        return instance
    raise ValueError(f"instance is {_quoted(instance)}; it must be null or a whole number from 0")


def _level(level: object) -> IsolationLevel | None:
    for isolation in (None, *ISOLATIONS):
        if level == isolation:
            return isolation
    raise ValueError(f"isolation is {_quoted(level)}; it must be null or {' or '.join(ISOLATIONS)}")


def _as_text(text: Any) -> str | None:
    return text if text is None or isinstance(text, str) else msgspec.json.encode(text).decode()


def _quoted(value: object) -> str:
    """The value as in the line, cut to the length of a message."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}..."


def _micro(operation: Any, values: ValueCodes) -> operations.MicroOperation:
    match operation:
        case ["send", key, sent, *of_key] if len(of_key) <= 1:
            offset, value = sent if isinstance(sent, list) and len(sent) == 2 else (None, sent)
            record = msgspec.convert(of_key[0], _Keyed) if of_key else None
            of_record = (record.key, record.tombstone) if record else ()
            return operations.Send(key_name(key), values.code(value), _offset(offset), *of_record)
        case ["reached", key, [since, offset]]:
            return operations.Reached(key_name(key), _reached(offset), _offset(since))
        case ["reached", key, offset]:
            return operations.Reached(key_name(key), _reached(offset))
        case ["poll"] | ["poll", None]:
            return operations.Poll()
        case ["poll", dict() as polled]:
            return operations.Poll(
                {key_name(k): tuple(_record(r, values) for r in records) for k, records in polled.items()}
            )
    raise ValueError(
        f'{_quoted(operation)} is neither ["send", key, value] nor ["poll", {{key: [[offset, value], ...]}}] '
        'nor ["reached", key, offset]'
    )


def _record(record: Any, values: ValueCodes) -> operations.Record:
    match record:
        case [offset, value]:
            code, defect = values.code(value), operations.PayloadDefect.NONE
        case [offset, value, str(defect)] if defect in _DEFECTS:
            code, defect = -1 if value == -1 else values.code(value), operations.PayloadDefect(defect)
        case _:
            raise ValueError(f"the record {_quoted(record)} is not [offset, value], or [offset, -1, defect]")
    if (placed := _offset(offset)) is None:
        raise ValueError(f"the record {_quoted(record)} was read without an offset; write [offset, value]")
    return operations.Record(placed, code, defect)


def _offset(offset: Any) -> int | None:
    if offset is None or (type(offset) is int and 0 <= offset <= 2**62):
        return offset
    raise ValueError(f"offset is {_quoted(offset)}; it must be null or a whole number from 0 to 2^62")


def _reached(offset: Any) -> int:
    reached = _offset(offset)
    return operations.NOTHING if reached is None else reached


def _rebalanced(log: Any) -> list[str]:
    """The keys that an operation's rebalance log mentions, as [[what, [key, ...]], ...] or objects with "keys"."""
    names: list[str] = []
    for entry in log or ():
        match entry:
            case {"keys": [*keys]} | [*_, [*keys]]:
                names += [key_name(key) for key in keys if key_name(key) not in names]
            case dict() if "keys" not in entry:
                pass
            case _:
                raise ValueError(
                    f'rebalance-log has {_quoted(entry)}; write [what, [key, ...]] or {{"keys": [key, ...]}}'
                )
    return names


def line_of(event: operations.Event, origin: Origin) -> dict[str, Any]:
    """An event as an object of the exchange format; ``origin`` knows its foreign values and index."""
    line: dict[str, Any] = {
        "index": origin.index(event.index),
        "time": event.time_us,
        "process": _named(event.process),
        "type": event.type,
        "f": event.function,
        "value": _value(event, origin),
    }
    instance = None if event.instance == operations.NO_INSTANCE else event.instance
    extras = {
        "instance": instance,
        "offset": event.offset,
        "node": event.node,
        "isolation": event.isolation,
        "error": event.error,
        "detail": event.detail,
    }
    return line | {name: extra for name, extra in extras.items() if extra is not None}


def _named(process: int) -> int | str | None:
    return None if process >= NAMELESS else _NAMES.get(process, process)


def _value(event: operations.Event, origin: Origin) -> list[Any] | None:
    if event.micro:
        return [_exported(operation, origin) for operation in event.micro]
    return list(event.partitions) if event.partitions or event.function in _LISTS else None


def _exported(operation: operations.MicroOperation, origin: Origin) -> list[Any]:
    if isinstance(operation, operations.Reached):
        offset = None if operation.offset == operations.NOTHING else operation.offset
        return ["reached", operation.partition, offset if operation.since is None else [operation.since, offset]]
    if isinstance(operation, operations.Send):
        value = origin.value(operation.value)
        sent = value if operation.offset is None else [operation.offset, value]
        record = () if operation.record_key is None else (_Keyed(operation.record_key, operation.tombstone),)
        return ["send", operation.partition, sent, *record]
    if not operation.records:
        return ["poll"]
    return ["poll", {key: [list(_shown(r, origin)) for r in records] for key, records in operation.records.items()}]


def _shown(record: operations.Record, origin: Origin) -> Iterator[Any]:
    yield record.offset
    yield origin.value(record.value) if record.value != -1 else -1
    if record.defect or record.value == -1:  # A bare -1 would be a foreign value of that name.
        yield record.defect
