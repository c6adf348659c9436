"""Turns rows in the order of events into the clustered file, with a bounded part of them in memory.

A history comes in parts: the live files of a run, stretches of a file of JSON lines, or all of it at once. Consecutive
parts are taken together to stretches of at most ROWS_HELD rows. Of earlier stretches a stretch needs the few rows that
:func:`workloads.history.clustering.remembered` keeps. Of later ones it needs to know which of its invocations are
repeated there; that is looked up first. Several stretches go through a file each, sorted by *bucket* (log partitions
that together have at most ROWS_HELD rows), and the buckets are then read one after the other::

    stretch 0   events 0 to 9    t-0 t-1 t-2      bucket 1   t-0 t-1 of stretch 0, then of stretch 1
    stretch 1   events 10 to 19  t-0 t-2          bucket 2   t-2 of stretch 0, then of stretch 1

So no more is held than ROWS_HELD rows, or the largest part or log partition, which checking holds as well.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from workloads.history import files
from workloads.history.clustering import (
    NOTHING,
    Numbers,
    Subjects,
    completed,
    first_index,
    groups,
    is_rest,
    joined,
    ordered,
    remembered,
    spread,
    subjects,
    tails,
    together,
)
from workloads.history.event_table import texts_of_columns
from workloads.history.rows import Columns, Names, Rows, from_tables, to_table
from workloads.history.schema import (
    META_COMPLETE,
    META_EVENTS,
    META_JOINED,
    META_RUN,
    META_SPREAD,
    META_SUBJECTS,
    NAMELESS,
    NONE,
    SCHEMA,
    TEXT_COLUMNS,
)

#: Rows held at once, about 200 bytes each while they are worked on.
ROWS_HELD: Final = 1_000_000
_SURVEYED: Final = ("key", "index", "invoke_index", "folded")
_SPILLED: Final = pa.schema([(f.name, pa.int32() if f.name in TEXT_COLUMNS else f.type) for f in SCHEMA])
_EMPTY: Final[Columns] = {f.name: np.zeros(0, dtype=f.type.to_pandas_dtype()) for f in _SPILLED}


@dataclass(frozen=True)
class UnsealedPart:
    """A part of a history before it is sealed: rows of consecutive events, in their order, and corrections to them.

    The rows are in memory or in a file at ``path``.

    Attributes:
        rows: the number of rows.
        loaded: the rows and their texts, where they are in memory.
        first: added to all indexes in the rows.
        codes: by -2 - value, the number of a negative value in the whole history (int64); empty where the rows have
            such numbers already.
        invocations: (index, invocation's index, its time, folded) of completions whose invocation is in another part,
            by index; int64, the indexes those of the whole history.
    """

    rows: int
    loaded: tuple[Columns, Names] | None = None
    path: Path | None = None
    first: int = 0
    codes: Numbers = field(default_factory=lambda: NOTHING)
    invocations: Numbers = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int64))

    @classmethod
    def of_rows(cls, rows: Rows) -> UnsealedPart:
        """The part of rows in memory, which are taken."""
        columns = rows.take()
        return cls(len(columns["key"]), loaded=(columns, rows.names))

    @classmethod
    def of_file(cls, path: Path) -> UnsealedPart:
        """The part in a live file.

        Raises:
            files.HistoryError: it cannot be read.
        """
        return cls(files.open_file(path).metadata.num_rows, path=path)

    def read(self, names: Sequence[str] = SCHEMA.names) -> tuple[Columns, Names]:
        """Read some columns, and the texts behind their codes.

        Raises:
            files.HistoryError: the file cannot be read.
        """
        if self.loaded is not None:
            columns, texts = self.loaded
        else:
            assert self.path is not None  # noqa: S101 - one of the two is given
            columns, texts = from_tables([files.read_table(self.path, names)])
        return self._put_right({name: columns[name] for name in names}), texts

    def _put_right(self, rows: Columns) -> Columns:
        late = self.invocations
        for name in ("index", "invoke_index", "process"):
            if self.first and name in rows:
                least = NAMELESS if name == "process" else 0
                rows[name] = np.where(rows[name] >= least, rows[name] + self.first, rows[name])
        if len(self.codes) and "value" in rows:
            value = rows["value"]
            rows["value"] = np.where(value < NONE, self.codes[np.maximum(-2 - value, 0)], value)
        if len(late):
            entry = np.minimum(np.searchsorted(late[:, 0], rows["index"]), len(late) - 1)
            is_late = late[entry, 0] == rows["index"]
            for column, name in enumerate(("invoke_index", "invoke_us", "folded"), 1):
                if name in rows:
                    rows[name] = np.where(is_late, late[entry, column], rows[name]).astype(rows[name].dtype)
        return rows


class _Texts:
    """The texts of all parts, each known by one code in the whole history."""

    def __init__(self) -> None:
        self._texts = texts_of_columns()

    @property
    def names(self) -> Names:
        """The texts behind the codes."""
        return {name: texts.names for name, texts in self._texts.items()}

    def coded(self, rows: Columns, names: Names) -> Columns:
        """The rows with the codes of the whole history instead of places in ``names``."""
        coded = dict(rows)
        for name in rows.keys() & self._texts.keys():
            table = np.array([*map(self._texts[name].code, names[name]), NONE], dtype=np.int32)
            coded[name] = table[rows[name]]
        return coded


def seal(directory: Path, *, complete: bool, run: str | None = None) -> Path:
    """Cluster the live files of ``directory`` into ``clustered.parquet``.

    ``complete`` is False for a history whose writer was not closed; its live files stay, in case it is still at work.
    ``run`` names the history, by default with the name in its live files.

    Raises:
        files.HistoryError: the directory has no live file, or one cannot be read.
    """
    live = files.live_files(directory)
    if not live and run is None:
        raise files.HistoryError(f"{directory} holds no history; name the directory of a run")
    if run is None:
        run = files.open_file(live[0]).schema_arrow.metadata.get(META_RUN, b"").decode(errors="replace")
    path = write_clustered(
        directory, run, [UnsealedPart.of_file(file) for file in live], complete=complete, durable=True
    )
    if complete:
        for file in files.live_files(directory):
            file.unlink()
    return path


def write_clustered(
    directory: Path,
    run: str,
    parts: Sequence[UnsealedPart],
    *,
    complete: bool,
    durable: bool,
    rows_held: int = ROWS_HELD,
) -> Path:
    """Write ``clustered.parquet`` from the parts of a history, in their order.

    Raises:
        files.HistoryError: a part cannot be read.
        OSError: the directory cannot be written.
    """
    sealing = _Sealing(_stretches(parts, rows_held), rows_held)
    row_groups = sealing.groups(directory)
    first = next(row_groups)  # all rows were seen by then
    metadata = {
        META_RUN: run.encode(),
        META_COMPLETE: str(complete).lower().encode(),
        META_SPREAD: str(sealing.spread).lower().encode(),
        META_JOINED: str(sealing.joined).lower().encode(),
        **{name: str(has).lower().encode() for name, has in zip(META_SUBJECTS, sealing.subjects, strict=True)},
        META_EVENTS: str(sealing.events).encode(),
    }
    path = directory / files.CLUSTERED
    with files.writing(path, metadata, durable=durable) as writer:
        for rows in itertools.chain([first], row_groups):
            writer.write_table(to_table(rows, sealing.texts.names), row_group_size=max(1, len(rows["key"])))
    return path


def _stretches(parts: Sequence[UnsealedPart], rows_held: int) -> list[list[UnsealedPart]]:
    """Take consecutive parts together, ``rows_held`` rows at most; one stretch at least, maybe empty."""
    stretches: list[list[UnsealedPart]] = [[]]
    held = 0
    for part in parts:
        if stretches[-1] and held + part.rows > rows_held:
            stretches.append([])
            held = 0
        stretches[-1].append(part)
        held += part.rows
    return stretches


class _Sealing:
    """One history on its way to the clustered file."""

    def __init__(self, stretches: list[list[UnsealedPart]], rows_held: int) -> None:
        self.stretches, self.rows_held = stretches, rows_held
        self.texts = _Texts()
        self.events = 0
        self.spread = self.joined = False
        self.subjects = Subjects()

    def groups(self, directory: Path) -> Iterator[Columns]:
        """The row groups of the clustered file; several stretches go through files in ``directory``."""
        if len(self.stretches) == 1:
            rows = self._completed(_EMPTY, self.stretches[0], NOTHING)
            yield from groups(ordered(together(rows, tails(rows))))
            return
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".sealing-") as scratch:
            yield from self._through(Path(scratch))

    def _through(self, scratch: Path) -> Iterator[Columns]:
        bucket_of, answered = self._survey()
        rest = int(bucket_of.max()) + 1
        before, spilled = _EMPTY, [scratch / f"{number}.arrow" for number in range(len(self.stretches))]
        for file, stretch in zip(spilled, self.stretches, strict=True):
            rows = self._completed(before, stretch, answered)
            _spill(file, rows, np.where(is_rest(rows), rest, bucket_of[rows["key"]]), rest + 1)
            before = remembered(together(before, rows))
        last = tails(before)
        for bucket in range(rest):
            mine = {name: column[bucket_of[last["key"]] == bucket] for name, column in last.items()}
            rows = together(mine, *(_spilled(file, bucket) for file in spilled))
            if len(rows["key"]):
                yield from groups(ordered(rows))
        for file in spilled:
            yield from groups(ordered(_spilled(file, rest)))

    def _completed(self, before: Columns, stretch: list[UnsealedPart], answered: Numbers) -> Columns:
        coded = [self.texts.coded(*part.read()) for part in stretch]
        rows = together(*coded) if coded else _EMPTY
        self.events = max(self.events, int(rows["index"].max(initial=-1)) + 1)
        rows = completed(before, rows, answered)
        self.spread |= spread(rows)
        self.joined |= joined(rows)
        self.subjects |= subjects(rows)
        return rows

    def _survey(self) -> tuple[Numbers, Numbers]:
        """By key its bucket, and the invocations that a completion in a later stretch repeats."""
        counts: Counter[int] = Counter()
        answered = [NOTHING]
        for stretch in self.stretches:
            begin = None
            for part in stretch:
                rows = self.texts.coded(*part.read(_SURVEYED))
                times = np.bincount(rows["key"])
                keys = np.flatnonzero(times)
                counts.update(dict(zip(keys.tolist(), times[keys].tolist(), strict=True)))
                begin = first_index(rows) if begin is None else begin
                invoked = rows["invoke_index"][rows["folded"].astype(bool)]
                answered.append(invoked[invoked < begin])
        return self._buckets(counts), np.unique(np.concatenate(answered))

    def _buckets(self, counts: Counter[int]) -> Numbers:
        """By key, in order: 0 without a key, then log partitions that together have at most ``rows_held`` rows."""
        bucket_of = np.zeros(len(self.texts.names["key"]), dtype=np.int64)
        bucket, held = 1, 0
        for key in range(1, len(bucket_of)):
            if held and held + counts[key] > self.rows_held:
                bucket, held = bucket + 1, 0
            bucket_of[key] = bucket
            held += counts[key]
        return bucket_of


def _spill(path: Path, rows: Columns, bucket: Numbers, buckets: int) -> None:
    """Write rows to a file, a batch for each bucket."""
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
    arrays = [pa.array(rows[f.name][order].astype(f.type.to_pandas_dtype(), copy=False)) for f in _SPILLED]
    table = pa.RecordBatch.from_arrays(arrays, schema=_SPILLED)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _SPILLED) as writer:
        for begin, end in itertools.pairwise(edges):
            writer.write_batch(table.slice(begin, end - begin))


def _spilled(path: Path, bucket: int) -> Columns:
    with pa.memory_map(str(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(bucket)
        return {name: batch.column(name).to_numpy(zero_copy_only=False) for name in _SPILLED.names}
