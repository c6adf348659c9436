"""What the replicas of a run's topic held when it was over: as a world reads it, and as ``replicas.parquet``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from checkers import REPLICAS_FILE, REPLICAS_META, REPLICAS_SCHEMA, Ends, PartitionEnd
from harness.records.files import files_of

#: Records that are held in memory before they are written: 28 bytes each, and what Python adds.
ROWS_MAX: Final = 131_072


Numbers = npt.NDArray[np.integer[Any]]


class Stretch(NamedTuple):
    """Records of one replica that follow each other, as many of each; values as in ``replicas.parquet``."""

    offsets: Numbers
    leader_epochs: Numbers
    values: Numbers


class DumpedLog(NamedTuple):
    """One replica of one log partition. ``damage`` is complete once ``stretches`` were read: what was unreadable."""

    partition: str
    node: int
    stretches: Iterable[Stretch]
    damage: list[str]


class ReplicaLogs(NamedTuple):
    """What the brokers' disks hold of the run's topic; ``unreadable`` are brokers whose disk is out of reach, and why.

    A log that is not there at all is not among ``logs``.
    """

    logs: Sequence[DumpedLog]
    unreadable: Mapping[int, str]


def write_replicas(directory: Path, ends: Mapping[str, PartitionEnd], found: ReplicaLogs | None) -> None:
    """Write the file in the run ``directory``; none where a world has no disks to read (``found`` is None).

    Raises:
        ResultsError: it cannot be written.
    """
    if found is None:
        return
    with files_of(directory):
        temporary = directory / f".{REPLICAS_FILE}"
        _write(temporary, ends, found)
        temporary.replace(directory / REPLICAS_FILE)


def replicas_in_memory(ends: Mapping[str, PartitionEnd], found: ReplicaLogs) -> tuple[Ends, pa.Table]:
    """What the file would say, as :func:`checkers.read_replicas` gives it."""
    batches: list[pa.RecordBatch] = []
    return _write_rows(batches.append, ends, found), pa.Table.from_batches(batches, REPLICAS_SCHEMA)


def _write(path: Path, ends: Mapping[str, PartitionEnd], found: ReplicaLogs) -> None:
    with pq.ParquetWriter(path, REPLICAS_SCHEMA, use_dictionary=["partition"], write_statistics=False) as writer:
        known = _write_rows(writer.write_batch, ends, found)
        writer.add_key_value_metadata({REPLICAS_META: msgspec.json.encode(known)})


def _write_rows(write: Callable[[pa.RecordBatch], None], ends: Mapping[str, PartitionEnd], found: ReplicaLogs) -> Ends:
    """Hand all records to ``write``, and say what is known besides."""
    names = sorted({log.partition for log in found.logs})
    held: dict[str, list[int]] = {}
    rows = _Rows(write, names)
    for log in found.logs:
        held.setdefault(log.partition, []).append(log.node)
        for stretch in log.stretches:
            rows.add(names.index(log.partition), log.node, stretch)
    rows.write()
    damage: dict[str, dict[int, str]] = {}
    for log in found.logs:
        if log.damage:
            damage.setdefault(log.partition, {})[log.node] = "; ".join(log.damage)
    return Ends(partitions=dict(ends), held=held, damage=damage, unreadable=dict(found.unreadable))


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
        """One stretch of a replica's records; ``partition`` is the place of its name."""
        self._places.append((partition, node, len(stretch.offsets)))
        self._stretches.append(stretch)
        self._count += len(stretch.offsets)
        if self._count >= ROWS_MAX:
            self.write()

    def write(self) -> None:
        """Hand over what is here."""
        keys, nodes, counts = zip(*self._places, strict=True) if self._places else ((), (), ())
        codes = pa.array(np.repeat(np.array(keys, np.int32), counts))
        columns = [
            pa.DictionaryArray.from_arrays(codes, self._names),
            pa.array(np.repeat(np.array(nodes, np.int32), counts)),
            *(_joined([getattr(stretch, name) for stretch in self._stretches], kind) for name, kind in _NUMBERS),
        ]
        self._hand_over(pa.record_batch(columns, schema=REPLICAS_SCHEMA))
        self._begin()


_NUMBERS: Final = (("offsets", np.int64), ("leader_epochs", np.int32), ("values", np.int64))


def _joined(pieces: Sequence[Numbers], kind: type[np.integer[Any]]) -> pa.Array:
    return pa.array(np.concatenate([np.zeros(0, kind), *pieces]).astype(kind, copy=False))
