"""Writes stored histories as JSON lines, so that they are judged as the stored ones are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import msgspec

from workloads import operations
from workloads.history import files
from workloads.history.entries import LISTS, MICRO, PROCESSES, Keyed
from workloads.history.origin import ORIGIN_FILE, Origin
from workloads.history.reader import read_events
from workloads.history.schema import META_COMPLETE, NAMELESS

_NAMES: Final = {number: name for name, number in PROCESSES.items()}


def export_jsonl(
    directory: Path, sink: IO[bytes], more: Mapping[str, Any] = MappingProxyType({}), lines: Iterable[bytes] = ()
) -> int:
    """Write a stored history as JSON lines; the number of operations is returned.

    ``more`` are further options; ``lines`` come last, as they are.

    Raises:
        files.HistoryError: the history cannot be read.
    """
    origin = Origin.load(directory)
    sink.write(msgspec.json.encode({"options": _options(directory, origin) | dict(more)}) + b"\n")
    count = 0
    for event in read_events(directory):
        sink.write(msgspec.json.encode(line_of(event, origin)) + b"\n")
        count += 1
    for line in lines:
        sink.write(line + b"\n")
    return count


def _options(directory: Path, origin: Origin) -> dict[str, Any]:
    """The options of a history; those of our own say what their files say otherwise."""
    options = dict(origin.options)
    if not (directory / ORIGIN_FILE).exists():
        options["ww_deps"] = False
    clustered = directory / files.CLUSTERED
    if not clustered.exists() or files.open_file(clustered).schema_arrow.metadata.get(META_COMPLETE) == b"false":
        options["complete"] = False
    return options


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
        "rebalance-log": [{"keys": event.rebalanced}] if event.rebalanced else None,
    }
    return line | {name: extra for name, extra in extras.items() if extra is not None}


def _named(process: int) -> int | str | None:
    return None if process >= NAMELESS else _NAMES.get(process, process)


def _value(event: operations.Event, origin: Origin) -> list[Any] | None:
    if event.micro:
        return [_exported(operation, origin) for operation in event.micro]
    return list(event.partitions) if event.partitions or event.function in LISTS + MICRO else None


def _exported(operation: operations.MicroOperation, origin: Origin) -> list[Any]:
    if isinstance(operation, operations.Reached):
        offset = None if operation.offset == operations.NOTHING else operation.offset
        return ["reached", operation.partition, offset if operation.since is None else [operation.since, offset]]
    if isinstance(operation, operations.Effect):
        value = origin.value(operation.value) if operation.value != -1 else -1
        return ["effect", operation.partition, [operation.offset, value]]
    if isinstance(operation, operations.Send):
        value = origin.value(operation.value)
        sent = value if operation.offset is None else [operation.offset, value]
        record = () if operation.record_key is None else (Keyed(operation.record_key, operation.tombstone),)
        return ["send", operation.partition, sent, *record]
    if not operation.records:
        return ["poll"]
    return ["poll", {key: [list(_shown(r, origin)) for r in records] for key, records in operation.records.items()}]


def _shown(record: operations.Record, origin: Origin) -> Iterator[Any]:
    yield record.offset
    yield origin.value(record.value) if record.value != -1 else -1
    if record.defect or record.value == -1:  # A bare -1 would be a foreign value of that name.
        yield record.defect
