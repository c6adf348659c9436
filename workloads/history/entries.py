"""Operations as plain objects, as JSON and other notations give them, and the events that they are.

:mod:`workloads.history.jsonl` decodes usual lines in a faster way; whatever it does not take comes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from workloads import operations
from workloads.history.left_out import LeftOut
from workloads.history.origin import LARGEST, ValueCodes, key_name
from workloads.history.rows import Rows
from workloads.history.schema import ISOLATIONS, NAMELESS
from workloads.operations import EventType, Function
from workloads.quoting import QUOTED_MAX
from workloads.settings import IsolationLevel

PROCESSES: Final = {"nemesis": operations.NEMESIS, "harness": operations.HARNESS}
#: Functions whose value is a list of micro-operations.
MICRO: Final = tuple(
    Function(name)
    for name in (
        "send", "poll", "txn", "commit", "committed", "process", "stable", "offsets", "delete-group", "reset", "seek",
        "log-start", "effect",
    )
)  # fmt: skip
#: Functions whose value is a list of log partitions.
LISTS: Final = tuple(map(Function, ("assign", "subscribe", "drain", "rebalance")))
#: Marks of the harness itself; every other event of a process that is not a client is a fault.
_MARKS: Final = tuple(map(Function, ("phase", "recovery", "invariant", "refused", "application")))
_OF_CLIENTS: Final = (Function.SEND, Function.POLL, Function.TXN)
#: The ends of an operation that happened, and of one that did not.
_CERTAIN: Final = (EventType.OK, EventType.FAIL)
NO_OPERATION: Final = "not an operation, which is an object with type, f and value"
_TYPES: Final = frozenset(EventType)
_FUNCTIONS: Final = frozenset(Function)
_DEFECTS: Final = frozenset(operations.PayloadDefect)
#: The fields of an operation. Others are named among what was left out.
FIELDS: Final = frozenset(
    {
        "index", "time", "process", "type", "f", "value", "instance", "offset", "node", "isolation", "error", "detail",
        "rebalance-log",
    }
)  # fmt: skip

Whole = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
RecordKey = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Keyed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The key of a record that was sent, and whether the record deletes it."""

    key: RecordKey
    tombstone: bool = False


def add_entry(rows: Rows, values: ValueCodes, entry: Mapping[str, Any], left_out: LeftOut) -> None:
    """Add the event that an operation is, or let its index pass if its function is not judged.

    Raises:
        ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError: it is not an operation.
    """
    event_type, named, process = entry["type"], entry["f"], process_of(entry.get("process"), rows.events)
    if event_type not in _TYPES:
        raise ValueError(f"type is {quoted(event_type)}; it must be one of {', '.join(EventType)}")
    value, detail = entry.get("value"), entry.get("detail")
    left_out.add_fields("an operation", entry.keys() - FIELDS)
    if isinstance(name := entry.get("process"), str) and name not in PROCESSES and named in _OF_CLIENTS:
        raise ValueError(f"process is {quoted(name)}; that of a client is a whole number or null")
    if process < 0 and named not in _MARKS and not (process == operations.HARNESS and named in _FUNCTIONS):
        detail = detail if named == Function.FAULT and detail else {"f": named, "value": value}
        named = Function.FAULT
    elif named not in _FUNCTIONS:
        left_out.add(f"operations with f {quoted(named)}, which ackproof does not judge")
        rows.skip()
        return
    function = Function(named)
    micro: tuple[operations.MicroOperation, ...] = ()
    partitions: tuple[str, ...] = ()
    if function in MICRO + LISTS:
        if not isinstance(value, list | None):
            raise ValueError(f"value is {quoted(value)}; it must be a list")
        # The question after a group's offsets lists log partitions, its answer what was reached of each.
        if function in LISTS or (function is Function.COMMITTED and all(isinstance(key, str) for key in value or ())):
            partitions = tuple(map(key_name, value or ()))
        else:
            micro = tuple(_micro(m, values) for m in value or ())
    if value is None and function in _OF_CLIENTS and event_type in _CERTAIN:
        micro = _asked(rows, process, function, left_out)
    left_out.look_at(function, text := _as_text(detail))
    rows.add(
        operations.Event(
            time_us=_whole("time", entry.get("time", -1)),
            process=process,
            instance=_instance(entry.get("instance")),
            type=EventType(event_type),
            function=function,
            micro=micro,
            partitions=partitions,
            offset=_offset(entry.get("offset")),
            node=whole_or_none("node", entry.get("node")),
            isolation=_level(entry.get("isolation")),
            error=_as_text(entry.get("error")),
            detail=text,
            rebalanced=() if event_type == EventType.INVOKE else _rebalanced(entry.get("rebalance-log")),
        )
    )


def _asked(rows: Rows, process: int, function: Function, left_out: LeftOut) -> tuple[operations.MicroOperation, ...]:
    """Give what an operation asked whose end does not repeat it; nothing where several begins may be its own.

    Then each may have happened or not.
    """
    asked = rows.asked(process, function)
    if len(asked) > 1:
        left_out.add("ends without a value of a process with several operations, which do not say what has ended")
    return asked[0] if len(asked) == 1 else ()


def _whole(name: str, number: object) -> int:
    if type(number) is int and -LARGEST <= number <= LARGEST:
        return number
    raise ValueError(f"{name} is {quoted(number)}; it must be a whole number between -2^62 and 2^62")


def whole_or_none(name: str, number: object) -> int | None:
    """The number of a field, which may be absent.

    Raises:
        ValueError: it is no whole number, or too large.
    """
    return None if number is None else _whole(name, number)


def process_of(process: object, position: int) -> int:
    """The number of a process: a client's own, one of the harness's for a name, one by the position for none.

    Raises:
        ValueError: it is neither a whole number nor a name nor absent.
    """
    if process is None:
        return NAMELESS + position
    if isinstance(process, str):
        return PROCESSES.get(process, operations.NEMESIS)
    if type(process) is int and 0 <= process < NAMELESS:
        return process
    raise ValueError(f"process is {quoted(process)}; it must be a whole number, null or a name")


def _instance(instance: object) -> int:
    if instance is None:
        return operations.NO_INSTANCE
    if type(instance) is int and 0 <= instance < NAMELESS:
        return instance
    raise ValueError(f"instance is {quoted(instance)}; it must be null or a whole number from 0")


def _level(level: object) -> IsolationLevel | None:
    for isolation in (None, *ISOLATIONS):
        if level == isolation:
            return isolation
    raise ValueError(f"isolation is {quoted(level)}; it must be null or {' or '.join(ISOLATIONS)}")


def _as_text(text: Any) -> str | None:
    return text if text is None or isinstance(text, str) else msgspec.json.encode(text).decode()


def quoted(value: object) -> str:
    """The value as in the line, cut to the length of a message."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}..."


def _micro(operation: Any, values: ValueCodes) -> operations.MicroOperation:
    match operation:
        case ["send", key, sent, *of_key] if len(of_key) <= 1:
            offset, value = sent if isinstance(sent, list) and len(sent) == 2 else (None, sent)
            record = msgspec.convert(of_key[0], Keyed) if of_key else None
            of_record = (record.key, record.tombstone) if record else ()
            return operations.Send(key_name(key), values.code(value), _offset(offset), *of_record)
        case ["reached", key, [since, offset]]:
            return operations.Reached(key_name(key), _reached(offset), _offset(since))
        case ["reached", key, offset]:
            return operations.Reached(key_name(key), _reached(offset))
        case ["effect", key, [offset, value]]:
            return operations.Effect(key_name(key), -1 if value == -1 else values.code(value), _reached(offset))
        case ["poll"] | ["poll", None]:
            return operations.Poll()
        case ["poll", dict() as polled]:
            return operations.Poll(
                {key_name(k): tuple(_record(r, values) for r in records or ()) for k, records in polled.items()}
            )
    raise ValueError(
        f'{quoted(operation)} is neither ["send", key, value] nor ["poll", {{key: [[offset, value], ...]}}] '
        'nor ["reached", key, offset]'
    )


def _record(record: Any, values: ValueCodes) -> operations.Record:
    match record:
        case [offset, value]:
            code, defect = values.code(value), operations.PayloadDefect.NONE
        case [offset, value, str(defect)] if defect in _DEFECTS:
            code, defect = -1 if value == -1 else values.code(value), operations.PayloadDefect(defect)
        case _:
            raise ValueError(f"the record {quoted(record)} is not [offset, value], or [offset, -1, defect]")
    if (placed := _offset(offset)) is None:
        raise ValueError(f"the record {quoted(record)} was read without an offset; write [offset, value]")
    return operations.Record(placed, code, defect)


def _offset(offset: Any) -> int | None:
    if offset is None or (type(offset) is int and 0 <= offset <= 2**62):
        return offset
    raise ValueError(f"offset is {quoted(offset)}; it must be null or a whole number from 0 to 2^62")


def _reached(offset: Any) -> int:
    reached = _offset(offset)
    return operations.NOTHING if reached is None else reached


def _rebalanced(log: Any) -> tuple[str, ...]:
    """The keys that an operation's rebalance log mentions, as [[what, [key, ...]], ...] or objects with "keys"."""
    names: dict[str, None] = {}
    for entry in log or ():
        match entry:
            case {"keys": [*keys]} | [*_, [*keys]]:
                names |= dict.fromkeys(map(key_name, keys))
            case dict() if "keys" not in entry:
                pass
            case _:
                raise ValueError(
                    f'rebalance-log has {quoted(entry)}; write [what, [key, ...]] or {{"keys": [key, ...]}}'
                )
    return tuple(names)
