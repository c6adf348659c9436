"""Rebuilds events from stored rows: for stories, export and small tools. Checking reads columns instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from workloads.history import files, schema
from workloads.history.clustering import Flags, fold
from workloads.history.rows import Columns, Names, from_tables
from workloads.operations import Effect, Event, EventType, MicroOperation, Poll, Reached, Record, Send
from workloads.settings import IsolationLevel

#: A function that marks the rows that its caller needs.
Needed = Callable[[Columns, Names], Flags]


def read_rows(directory: Path) -> tuple[Columns, Names]:
    """All rows of a history, sealed or live, without derived ones.

    Raises:
        files.HistoryError: there is no history, or it cannot be read.
    """
    clustered = directory / files.CLUSTERED
    paths = [clustered] if clustered.exists() else files.live_files(directory)
    if not paths:
        raise files.HistoryError(f"{directory} holds no history; name the directory of a run")
    columns, names = from_tables([schema.SCHEMA.empty_table(), *map(files.read_table, paths)])
    kept = fold(columns) & ~np.isin(columns["kind"], schema.DERIVED)
    return {name: column[kept] for name, column in columns.items()}, names


def read_events(directory: Path, needed: Needed | None = None) -> Iterator[Event]:
    """The events of a history in order, invocations included; with ``needed``, as far as the rows that it marks tell.

    An event costs a hundred times as much as its rows, so a caller that needs few of a long history says which.

    Raises:
        files.HistoryError: there is no history, or it cannot be read.
    """
    columns, names = read_rows(directory)
    if needed is not None:
        marked = needed(columns, names)
        columns = {name: column[marked] for name, column in columns.items()}
    order = np.lexsort((columns["position"], columns["index"]))
    rows = {name: column[order] for name, column in columns.items()}
    starts = np.flatnonzero(np.diff(rows["index"], prepend=-1))
    ends = np.append(starts[1:], len(order))[: len(starts)]
    folded = rows["folded"][starts] & (rows["type"][starts] != schema.INVOKE)
    whole = np.concatenate([rows["index"][starts], rows["invoke_index"][starts][folded]])
    first = np.concatenate([starts, starts[folded]])
    last = np.concatenate([ends, ends[folded]])
    invoked = np.repeat([False, True], [len(starts), int(folded.sum())])
    for number in np.argsort(whole, kind="stable").tolist():
        event = _event({name: column[first[number] : last[number]].tolist() for name, column in rows.items()}, names)
        yield invocation_of(event, rows, int(first[number])) if invoked[number] else event


def invocation_of(event: Event, rows: Columns, row: int) -> Event:
    """The invocation of a completion that was folded into it."""
    return Event(
        index=int(rows["invoke_index"][row]),
        time_us=int(rows["invoke_us"][row]),
        process=event.process,
        instance=event.instance,
        type=EventType.INVOKE,
        function=event.function,
        micro=tuple(map(_asked, event.micro)),
        partitions=event.partitions,
        isolation=event.isolation,
    )


def _asked(operation: MicroOperation) -> MicroOperation:
    """A micro-operation before its answer was known."""
    if isinstance(operation, Send):
        return msgspec.structs.replace(operation, offset=None)
    return operation if isinstance(operation, Reached | Effect) else Poll()


def _event(rows: dict[str, list[Any]], names: Names) -> Event:
    listed, rebalanced = (
        tuple(names["key"][key] for key, kind in zip(rows["key"], rows["kind"], strict=True) if kind == wanted)
        for wanted in (schema.Kind.LISTED, schema.Kind.REBALANCED)
    )
    offset = rows["offset"][0] if rows["kind"][0] in (schema.Kind.LISTED, schema.Kind.EVENT) else schema.NONE
    return Event(
        index=rows["index"][0],
        time_us=rows["time_us"][0],
        process=rows["process"][0],
        instance=rows["instance"][0],
        type=schema.TYPES[rows["type"][0]],
        function=schema.FUNCTIONS[rows["function"][0]],
        micro=_micro(rows, names),
        partitions=listed,
        offset=schema.or_none(offset),
        node=schema.or_none(rows["node"][0]),
        isolation=_level(rows["isolation"][0]),
        error=_text(rows["error"][0], names["error"]),
        detail=_text(rows["detail"][0], names["detail"]),
        rebalanced=rebalanced,
    )


def _micro(rows: dict[str, list[Any]], names: Names) -> tuple[MicroOperation, ...]:
    """The micro-operations behind one event's rows, which are in order of position."""
    polls: dict[int, dict[str, list[Record]]] = {}
    micro: dict[int, Send | Reached | Effect | None] = {}
    for row, kind in enumerate(rows["kind"]):
        position, key = rows["position"][row], names["key"][rows["key"][row]]
        if kind == schema.Kind.SEND:
            record_key, tombstone = schema.or_none(rows["record_key"][row]), bool(rows["tombstone"][row])
            micro[position] = Send(key, rows["value"][row], schema.or_none(rows["offset"][row]), record_key, tombstone)
        elif kind == schema.Kind.REACHED:
            micro[position] = Reached(key, rows["offset"][row], schema.or_none(rows["value"][row]))
        elif kind == schema.Kind.EFFECT:
            micro[position] = Effect(key, rows["value"][row], rows["offset"][row])
        elif kind in (schema.Kind.READ, schema.Kind.EMPTY, schema.Kind.BARE):
            micro[position] = None
            records = polls.setdefault(position, {})
            if kind == schema.Kind.READ:
                record = Record(rows["offset"][row], rows["value"][row], schema.DEFECTS[rows["defect"][row]])
                records.setdefault(key, []).append(record)
            elif kind == schema.Kind.EMPTY:
                records.setdefault(key, [])
    return tuple(
        operation
        if operation is not None
        else Poll({name: tuple(records) for name, records in polls[position].items()})
        for position, operation in micro.items()
    )


def _level(code: int) -> IsolationLevel | None:
    return None if code == schema.NONE else schema.ISOLATIONS[code]


def _text(code: int, texts: Any) -> str | None:
    return None if code == schema.NONE else texts[code]
