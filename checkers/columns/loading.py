"""Loads stored rows into the arrays that kernels look at: any number of histories, or parts of one, laid end to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.group_rows import GroupColumns, groups_of
from checkers.columns.ids import Flags, Numbers, starts_of
from checkers.columns.isolation_levels import set_levels_apart
from checkers.columns.log import Log
from checkers.columns.log_rows import pack_operation
from checkers.columns.phases import Mark, RunMarks
from checkers.columns.transactions import TransactionRows, decoded, transactions_of
from checkers.histories.stores import open_history, place_of
from workloads import CleanerTimes, Function, refusal
from workloads.garbage_collection import without_collecting
from workloads.history import (
    FAIL,
    FUNCTION_CODE,
    MARKS,
    META_COMPLETE,
    META_EVENTS,
    META_JOINED,
    META_SUBJECTS,
    NONE,
    Columns,
    HistoryError,
    Subjects,
    completed,
)

#: The columns of :class:`Log`, which are those of the rows that kernels need.
COLUMNS: Final = (
    "index",
    "time_us",
    "process",
    "instance",
    "type",
    "function",
    "position",
    "kind",
    "offset",
    "value",
    "defect",
    "node",
    "invoke_index",
    "invoke_us",
    "waited_us",
)
#: The columns of keys and of transactions, read only where a history has some; elsewhere each row has this instead.
_OF_KEYS: Final = {"record_key": NONE, "tombstone": 0}
_OF_TRANSACTIONS: Final = {"isolation": NONE}
_OF_SUBJECTS: Final = _OF_KEYS | _OF_TRANSACTIONS
NO_SUBJECTS: Final = Subjects()
#: The text column; kernels need only what it says of in-sync replicas.
_ERROR: Final = "error"
_DRAIN: Final = FUNCTION_CODE[Function.DRAIN]
_OF_MOMENTS: Final = ("time_us", "function", "index", "process")
# Kernels' arrays take up again what columns gave back. From an allocator of its own, Arrow's columns cost more memory,
# and time of the kernel for each page of it.
pa.set_memory_pool(pa.system_memory_pool())


class Unit(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of work: row groups of one history's file. ``groups`` is None for the whole file.

    ``path`` may be the URI of a file in a store; ``history`` is the place of the history among those that are checked;
    ``bytes`` is about how much is read; ``ww_deps`` says whether overwrites count as dependencies.
    """

    history: int
    path: str
    groups: tuple[int, ...] | None = None
    bytes: int = 0
    ww_deps: bool = True


@dataclass(frozen=True)
class RowBatch:
    """Rows of several histories.

    Attributes:
        histories: the callers' numbers of the histories, ascending; all lists and arrays below have this order.
        log: the rows of all.
        phases, events: by history, the phases of its run, and the number of its events.
        joined: ``bool[history]``: its operations join log partitions (transactions).
        ww_deps: ``bool[history]``: overwrites count as dependencies in it.
        whole: ``bool[history]``: all of it is here.
    """

    histories: list[int]
    log: Log
    phases: list[RunMarks]
    events: list[int]
    joined: Flags
    ww_deps: Flags
    whole: Flags


@dataclass(frozen=True)
class HistoryPart:
    """Rows of one history; the column ``partition`` (int64, by row) is an index into ``names``, its log partitions.

    ``groups`` is None where no row is about a consumer group, ``transactions`` None where it has none of our own.
    ``cleaner_times`` are by row of a final reader's statement.
    """

    columns: Columns
    names: list[str]
    phases: RunMarks
    complete: bool
    events: int
    joined: bool
    groups: GroupColumns | None = None
    transactions: TransactionRows | None = None
    cleaner_times: Mapping[int, CleanerTimes] = field(default_factory=dict)


@without_collecting()  # Rows and their details have no cycles.
def load_units(units: Sequence[Unit], proofs: Mapping[int, Numbers] | None = None) -> RowBatch:
    """Read units of histories. Units of one history must follow each other.

    ``proofs`` are event indexes, by history, of uncertain operations that are known to have happened.

    Raises:
        workloads.history.HistoryError: a file is no history of a layout that this version knows, or cannot be read.
    """
    batch = assemble(units, [_read(unit, _read_part) for unit in units])
    proven = [
        pack_operation(np.full(1, local), proofs[history])
        for local, history in enumerate(batch.histories)
        if proofs and history in proofs
    ]
    batch.log.proven = np.concatenate([batch.log.proven, *proven])
    return batch


def load_each(units: Iterable[tuple[Any, ...]], proofs: Mapping[int, Numbers] | None = None) -> Iterator[RowBatch]:
    """Load units that came as plain data, one by one. One that cannot be read is passed over: its judgement tells."""
    for unit in units:
        try:
            batch = load_units([Unit(*unit)], proofs)
        except HistoryError:
            continue
        yield batch


def load_bare(units: Iterable[tuple[Any, ...]]) -> Iterator[RowBatch]:
    """Load units one by one as :func:`load_each` does, without what details tell of their rows."""
    for unit in (Unit(*unit) for unit in units):
        try:
            part = _read(unit, _read_bare)
        except HistoryError:
            continue
        yield assemble([unit], [part])


def assemble(units: Sequence[Unit], parts: Sequence[HistoryPart]) -> RowBatch:
    """Lay parts end to end; ``units`` say to which histories they belong."""
    owners = [unit.history for unit in units]
    histories = sorted(set(owners))
    if owners != sorted(owners):
        raise ValueError("units of one history must follow each other")
    local = np.searchsorted(histories, owners)
    lengths = [len(part.columns["index"]) for part in parts]
    special = [name for name in _OF_SUBJECTS if any(name in part.columns for part in parts)]
    columns = {
        name: _end_to_end([part.columns[name] for part in parts]) for name in (*COLUMNS, "refusal", "partition")
    } | {
        name: _end_to_end(
            [
                part.columns.get(name, np.full(rows, _OF_SUBJECTS[name]))
                for part, rows in zip(parts, lengths, strict=True)
            ]
        )
        for name in special
    }
    sizes = [len(part.names) for part in parts]
    shift = np.cumsum([0, *sizes[:-1]])
    if len(parts) > 1:
        columns["partition"] = columns["partition"] + np.repeat(shift, lengths)
    first = np.searchsorted(owners, histories).tolist()
    groups = _groups(parts, lengths)
    log = Log(
        **columns,
        partition_history=np.repeat(local, sizes),
        partition_key=[name for part in parts for name in part.names],
        complete=np.array([parts[number].complete for number in first], dtype=bool),
        retirements=[parts[number].phases.retirements for number in first],
        applications=[parts[number].phases.application for number in first],
        group=None if groups is None else groups.group,
        group_names=[] if groups is None else [*groups.group_names],
        group_retention_ms=[] if groups is None else [*groups.retention_ms],
        static=groups.static if groups is not None and groups.static_names else None,
        static_names=[] if groups is None else [*groups.static_names],
        generation=groups.generation if groups is not None and (groups.generation != NONE).any() else None,
        transactions=TransactionRows.joined(
            [(length, part.transactions) for length, part in zip(lengths, parts, strict=True)]
        ),
        cleaner_times={
            begin + row: times
            for begin, part in zip(np.cumsum([0, *lengths[:-1]]).tolist(), parts, strict=True)
            for row, times in part.cleaner_times.items()
        },
    )
    return RowBatch(
        histories,
        log,
        [parts[number].phases for number in first],
        [parts[number].events for number in first],
        joined=np.array([parts[number].joined for number in first], dtype=bool),
        ww_deps=np.array([units[number].ww_deps for number in first], dtype=bool),
        whole=np.array([units[number].groups is None for number in first], dtype=bool),
    )


def _end_to_end(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """All of them as one array; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _groups(parts: Sequence[HistoryPart], lengths: Sequence[int]) -> GroupColumns | None:
    """The groups of all rows, each part's numbered after those before; None where no row is about one."""
    if len(parts) == 1 or all(part.groups is None for part in parts):
        return parts[0].groups
    group_names: list[str] = []
    retention_ms: list[int] = []
    static_names: list[tuple[str, str]] = []
    columns: tuple[list[Numbers], list[Numbers], list[Numbers]] = [], [], []
    for part, length in zip(parts, lengths, strict=True):
        none = np.full(length, NONE, dtype=np.int64)
        mine = part.groups or GroupColumns(none, (), none, (), none, ())
        columns[0].append(np.where(mine.group >= 0, mine.group + len(group_names), NONE))
        columns[1].append(np.where(mine.static >= 0, mine.static + len(static_names), NONE))
        columns[2].append(mine.generation)
        group_names += mine.group_names
        retention_ms += mine.retention_ms
        static_names += mine.static_names
    group, static, generation = map(np.concatenate, columns)
    return GroupColumns(group, group_names, static, static_names, generation, retention_ms)


def _read(unit: Unit, read: Callable[[Unit], HistoryPart]) -> HistoryPart:
    try:
        return read(unit)
    except HistoryError:
        raise
    except (OSError, pa.ArrowException, LookupError, ValueError) as error:  # damaged pages
        raise HistoryError(f"{unit.path} cannot be read ({error}); restore the file") from error


def _facts(file: pq.ParquetFile) -> tuple[dict[str, Any], list[str]]:
    """Read what the file says of its history, and name the columns to be read of it beside the details."""
    metadata = file.schema_arrow.metadata
    subjects = Subjects(*(metadata.get(name) == b"true" for name in META_SUBJECTS))
    facts = {
        "complete": metadata.get(META_COMPLETE) != b"false",
        "events": int(metadata.get(META_EVENTS, b"0")),
        "joined": metadata.get(META_JOINED) == b"true",
        "subjects": subjects,
    }
    stored = frozenset(file.schema_arrow.names)
    return facts, ["key", _ERROR, *COLUMNS, *(name for name in _special(subjects) if name in stored)]


def _read_bare(unit: Unit) -> HistoryPart:
    with open_history(place_of(unit.path)) as file:
        facts, wanted = _facts(file)
        groups = range(file.num_row_groups) if unit.groups is None else unit.groups
        table = file.read_row_groups(list(groups), columns=wanted, use_threads=False)
        return _bare_part(table, phases=file.schema_arrow.empty_table(), **facts)


def _read_part(unit: Unit) -> HistoryPart:
    with open_history(place_of(unit.path)) as file:
        facts, wanted = _facts(file)
        if unit.groups is None:
            return part_of(file.read(columns=["detail", *wanted], use_threads=False), **facts)
        with_details = ["detail"] if 0 in unit.groups or any(facts["subjects"]) else []
        table = file.read_row_groups(list(unit.groups), columns=[*with_details, *wanted], use_threads=False)
        return part_of(table, phases=None if 0 in unit.groups else _marks(file), **facts)


def _special(subjects: Subjects) -> list[str]:
    """The columns that only histories of these subjects have."""
    return [*(_OF_KEYS if subjects.keys else ()), *(_OF_TRANSACTIONS if subjects.transactions else ())]


def _marks(file: pq.ParquetFile) -> pa.Table:
    """The rows of a large history among which those of its phases are: its first ones, which have no log partition."""
    statistics = file.metadata.row_group(0).column(file.schema.names.index("key")).statistics
    if statistics is not None and statistics.has_min_max and statistics.min != "":
        return file.schema_arrow.empty_table()
    return file.read_row_group(0, columns=["key", "detail", *_OF_MOMENTS])


def part_of(
    table: pa.Table,
    *,
    complete: bool,
    events: int,
    joined: bool,
    subjects: Subjects = NO_SUBJECTS,
    phases: pa.Table | None = None,
) -> HistoryPart:
    """Read clustered rows of one history; its phases are in ``phases`` or else among the rows.

    A send that failed in a transaction that was committed is no acknowledged write.
    """
    part = _bare_part(
        table,
        complete=complete,
        events=events,
        joined=joined,
        subjects=subjects,
        phases=table if phases is None else phases,
    )
    if not any(subjects):
        return part
    columns, names, kept = part.columns, part.names, _slice(_partitions(table)[0])
    codes, details = _details(table)
    groups = groups_of(columns, codes[kept], details) if subjects.groups else None
    transactions = transactions_of(columns, names, codes[kept], details) if subjects.transactions else None
    if transactions is not None and transactions.failed:
        columns["type"] = columns["type"].copy()
        columns["type"][[*transactions.failed]] = FAIL
    cleaner_times = _cleaner_times(columns, codes[kept], details) if subjects.ages or subjects.keys else {}
    return replace(part, groups=groups, transactions=transactions, cleaner_times=cleaner_times)


def _bare_part(
    table: pa.Table, *, complete: bool, events: int, joined: bool, subjects: Subjects, phases: pa.Table
) -> HistoryPart:
    """The same without what details tell of rows."""
    partition, names = _partitions(table)
    kept = _slice(partition)
    wanted = (*COLUMNS, *_special(subjects))
    filled = completed(table, wanted)
    columns: Columns = {name: _numpy(filled, name)[kept] for name in wanted}
    columns |= {"refusal": _refusals(filled)[kept], "partition": partition[kept]}
    if subjects.transactions:
        set_levels_apart(columns)
    return HistoryPart(columns, names, _phases(phases), complete, events, joined)


def _cleaner_times(columns: Columns, codes: Numbers, details: Sequence[str]) -> dict[int, CleanerTimes]:
    """The times that final readers' statements tell, by row: also of one that says that the end was not reached."""
    drains = np.flatnonzero((columns["function"] == _DRAIN) & (codes >= 0))
    told = {row: decoded(details[codes[row]], CleanerTimes) for row in drains.tolist()}
    return {row: times for row, times in told.items() if times is not None}


def _partitions(table: pa.Table) -> tuple[Numbers, list[str]]:
    """The log partition of each row as an index (int64, -1 for rows of none), and the names of log partitions."""
    names: list[str] = []
    partitions: list[Numbers] = []
    for chunk in table.column("key").chunks:
        codes = chunk.indices.to_numpy(zero_copy_only=False)
        begins = starts_of(codes)
        texts = chunk.dictionary.to_pylist()
        lengths = np.diff(np.append(begins, len(codes)))
        keys = [texts[code] for code in codes[begins].tolist()]
        numbers = np.array([-1 if not key else 0 for key in keys], dtype=np.int64)
        real = numbers >= 0
        numbers[real] = len(names) + np.arange(int(real.sum()))
        names += [key for key in keys if key]
        partitions.append(np.repeat(numbers, lengths))
    return np.concatenate(partitions) if partitions else np.zeros(0, np.int64), names


def _details(table: pa.Table) -> tuple[Numbers, list[str]]:
    """The details of rows as places in a list (int64, -1 for none), and the list."""
    codes: list[Numbers] = []
    details: list[str] = []
    for chunk in table.column("detail").chunks:
        places = chunk.indices.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int64)
        codes.append(np.where(places == NONE, NONE, places + len(details)))
        details += chunk.dictionary.to_pylist()
    return np.concatenate(codes) if codes else np.zeros(0, np.int64), details


def _refusals(table: pa.Table) -> npt.NDArray[np.int8]:
    """Read from each row's error the refusal that it names (int8, :class:`workloads.Refusal`)."""
    refusals = np.zeros(table.num_rows, dtype=np.int8)
    begin = 0
    for chunk in table.column(_ERROR).chunks:
        refusal_of = np.array([refusal(text) for text in chunk.dictionary.to_pylist()], dtype=np.int8)
        if refusal_of.any():
            codes = chunk.indices.fill_null(0).to_numpy(zero_copy_only=False)
            refusals[begin : begin + len(chunk)] = refusal_of[codes] * chunk.is_valid().to_numpy(zero_copy_only=False)
        begin += len(chunk)
    return refusals


def _slice(partition: Numbers) -> slice | npt.NDArray[np.bool_]:
    """The rows of log partitions; they are neighbours in a clustered file."""
    real = np.flatnonzero(partition >= 0)
    if not len(real):
        return slice(0, 0)
    if real[-1] - real[0] + 1 == len(real):
        return slice(int(real[0]), int(real[-1]) + 1)
    return partition >= 0


def _numpy(table: pa.Table, name: str) -> npt.NDArray[Any]:
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    return column.to_numpy()  # type: ignore[no-any-return]


def _phases(table: pa.Table) -> RunMarks:
    functions = _numpy(table, "function")
    rows = np.flatnonzero(np.isin(functions, MARKS))
    if not len(rows):
        return RunMarks()
    few = table.select(["key", "detail", *_OF_MOMENTS]).take(pa.array(rows)).to_pylist()
    few.sort(key=lambda row: row["index"])
    marks = [row for row in few if row["key"] == ""]
    moments = (Mark(**{name: row[name] for name in _OF_MOMENTS}, detail=row["detail"] or "{}") for row in marks)
    return RunMarks(tuple(moments))
