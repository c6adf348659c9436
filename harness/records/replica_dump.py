"""The records that each replica of a run's topic held at the end: as a world reads them, and ``replicas.parquet``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from checkers import (
    OF_TRANSACTIONS_AND_KEYS,
    REPLICAS_FILE,
    REPLICAS_META,
    REPLICAS_SCHEMA,
    Ends,
    PartitionEnd,
    TransactionPart,
)
from harness.records.files import files_of

#: Records that are held in memory before they are written: 50 bytes each, and what Python adds.
ROWS_MAX: Final = 131_072


Numbers = npt.NDArray[np.integer[Any]]


class Facts(NamedTuple):
    """The keys of records and their part in transactions, by record, as in ``replicas.parquet``."""

    record_keys: Numbers
    tombstones: Numbers
    producer_ids: Numbers
    producer_epochs: Numbers
    parts: Numbers


class Stretch(NamedTuple):
    """Records of one replica that follow each other, of equal length; values as in ``replicas.parquet``.

    Without ``facts`` the records have no keys and are in no transaction.
    """

    offsets: Numbers
    leader_epochs: Numbers
    values: Numbers
    facts: Facts | None = None

    def of_records(self) -> Stretch:
        """The same without the markers of transactions."""
        if self.facts is None:
            return self
        kept = np.flatnonzero(np.isin(self.facts.parts, (TransactionPart.ABORT, TransactionPart.COMMIT), invert=True))
        facts = Facts(*(fact[kept] for fact in self.facts))
        return Stretch(self.offsets[kept], self.leader_epochs[kept], self.values[kept], facts)


class DumpedLog(NamedTuple):
    """One replica of one log partition. ``damage``, complete once ``stretches`` were read, says what was unreadable."""

    partition: str
    node: int
    stretches: Iterable[Stretch]
    damage: list[str]


class ReplicaLogs(NamedTuple):
    """The logs of the run's topic on the brokers' disks; ``unreadable`` says why a broker's disk could not be read.

    A log that does not exist is not among ``logs``.
    """

    logs: Sequence[DumpedLog]
    unreadable: Mapping[int, str]


def write_replicas(directory: Path, ends: Mapping[str, PartitionEnd], dump: ReplicaLogs | None) -> None:
    """Write the file in the run ``directory``; no file where a world has no disks to read (``dump`` is None).

    Raises:
        ResultsError: it cannot be written.
    """
    if dump is None:
        return
    with files_of(directory):
        temporary = directory / f".{REPLICAS_FILE}"
        _write(temporary, ends, dump)
        temporary.replace(directory / REPLICAS_FILE)


def replicas_in_memory(ends: Mapping[str, PartitionEnd], dump: ReplicaLogs) -> tuple[Ends, pa.Table]:
    """Return the content of the file as :func:`checkers.read_replicas` reads it."""
    batches: list[pa.RecordBatch] = []
    return _write_rows(batches.append, ends, dump), pa.Table.from_batches(batches, REPLICAS_SCHEMA)


def _write(path: Path, ends: Mapping[str, PartitionEnd], dump: ReplicaLogs) -> None:
    few = ["partition", *OF_TRANSACTIONS_AND_KEYS]
    with pq.ParquetWriter(path, REPLICAS_SCHEMA, use_dictionary=few, write_statistics=False) as writer:
        ends_of_logs = _write_rows(writer.write_batch, ends, dump)
        writer.add_key_value_metadata({REPLICAS_META: msgspec.json.encode(ends_of_logs)})


def _write_rows(write: Callable[[pa.RecordBatch], None], ends: Mapping[str, PartitionEnd], dump: ReplicaLogs) -> Ends:
    """Hand all records to ``write``, and return the facts about whole logs."""
    names = sorted({log.partition for log in dump.logs})
    held: dict[str, list[int]] = {}
    rows = _Rows(write, names)
    for log in dump.logs:
        held.setdefault(log.partition, []).append(log.node)
        for stretch in log.stretches:
            rows.add(names.index(log.partition), log.node, stretch)
    rows.write()
    damage: dict[str, dict[int, str]] = {}
    for log in dump.logs:
        if log.damage:
            damage.setdefault(log.partition, {})[log.node] = "; ".join(log.damage)
    return Ends(partitions=dict(ends), held=held, damage=damage, unreadable=dict(dump.unreadable))


class _Rows:
    """Rows on their way into the file."""

    def __init__(self, write: Callable[[pa.RecordBatch], None], names: list[str]) -> None:
        self._hand_over, self._names = write, pa.array(names, pa.string())
        self._begin()

    def _begin(self) -> None:
        self._places: list[tuple[int, int, int]] = []
        self._stretches: list[Stretch] = []
        self._count = 0

    def add(self, partition: int, node: int, stretch: Stretch) -> None:
        """Add one stretch of a replica's records; ``partition`` is the index of its name."""
        self._places.append((partition, node, len(stretch.offsets)))
        self._stretches.append(stretch)
        self._count += len(stretch.offsets)
        if self._count >= ROWS_MAX:
            self.write()

    def write(self) -> None:
        """Hand over the collected rows."""
        keys, nodes, counts = zip(*self._places, strict=True) if self._places else ((), (), ())
        codes = pa.array(np.repeat(np.array(keys, np.int32), counts))
        columns = [
            pa.DictionaryArray.from_arrays(codes, self._names),
            pa.array(np.repeat(np.array(nodes, np.int32), counts)),
            *(_joined([getattr(stretch, name) for stretch in self._stretches], kind) for name, kind in _NUMBERS),
            *(_facts(self._stretches, *fact) for fact in zip(Facts._fields, OF_TRANSACTIONS_AND_KEYS, strict=True)),
        ]
        self._hand_over(pa.record_batch(columns, schema=REPLICAS_SCHEMA))
        self._begin()


_NUMBERS: Final = (("offsets", np.int64), ("leader_epochs", np.int32), ("values", np.int64))


def _facts(stretches: Sequence[Stretch], name: str, column: str) -> pa.Array:
    """One fact of all records, with the usual one where a stretch has none."""
    kind = REPLICAS_SCHEMA.field(column).type.to_pandas_dtype()
    usual = OF_TRANSACTIONS_AND_KEYS[column]
    return _joined(
        [
            np.full(len(stretch.offsets), usual, kind) if stretch.facts is None else getattr(stretch.facts, name)
            for stretch in stretches
        ],
        kind,
    )


def _joined(pieces: Sequence[Numbers], kind: type[np.integer[Any]]) -> pa.Array:
    return pa.array(np.concatenate([np.zeros(0, kind), *pieces]).astype(kind, copy=False))
