"""Adds the findings of the replicas' own logs of a run to the verdict on its history.

They show replicas that differ (:mod:`checkers.anomalies.divergent_replicas`), in a compacted log those that give
different tables (:mod:`checkers.anomalies.divergent_tables`), and, for each lost write, whether a copy
is left on some disk: ``fate`` of a ``lost-write`` is

* ``hidden``: there are copies (``copies``, a list of node and offset), none where readers look;
* ``in the log``: the leader has it below the end, and the final readers missed it;
* ``destroyed``: no disk has it;
* ``unknown``: no disk that could be read has it.

Findings about a value of a transaction say that it is ``unended`` where the next marker behind the record, of the same
producer, has an epoch above the next: with version 2 of transactions each end has the next epoch of its producer, so
that marker is of a later transaction. With version 1 all ends of a producer have the same, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.anomalies.anomaly import Finding
from checkers.anomalies.divergent_replicas import ANOMALY as REPLICAS
from checkers.anomalies.divergent_replicas import ReplicaLog, divergent_replicas
from checkers.anomalies.divergent_tables import ANOMALY as TABLES
from checkers.anomalies.divergent_tables import ReplicaRecords, divergent_tables
from checkers.anomalies.lost_write import ANOMALY as LOST_WRITE
from checkers.anomalies.lost_write import IN_THE_LOG, Copy, LostWrite, mark_of
from checkers.anomalies.transactions import NO_MARKER, TornTransaction, TransactionRead, Unended
from checkers.columns.ids import Numbers
from checkers.columns.replica_file import Ends, PartitionEnd, TransactionPart
from checkers.columns.replica_lines import replicas_beside
from checkers.errors import CheckError
from checkers.histories.stores import Place
from checkers.verdicts.moments import Marks, marked, unmarked
from checkers.verdicts.verdict import Verdict


def with_replicas(verdict: Verdict, history: Place | None, *, shown: int | None) -> Verdict:
    """The verdict on the history in the file ``history``, with the findings of its run's replicas' logs, if any.

    Logs that exist and cannot be read make a verdict "unknown" that would have been true.
    """
    if history is None:
        return verdict
    replicas = None
    try:
        replicas = replicas_beside(history.parent)
    except (CheckError, OSError) as error:
        if verdict.valid is True:
            verdict.valid, verdict.reason = "unknown", str(error)
    examine(verdict, replicas, shown=shown)
    return verdict


def examine(verdict: Verdict, replicas: tuple[Ends, pa.Table] | None, *, shown: int | None) -> None:
    """Add the findings of replicas' logs, as :func:`read_replicas` gives them, to ``verdict``, and marks to its own.

    Without such logs nothing has a mark.
    """
    if replicas is None:
        _mark(verdict, unmarked, unmarked)
        return
    ends, table = replicas
    columns = _Columns(table)
    logs = {key: columns.replicas(key, end) for key, end in ends.partitions.items()}
    verdict.replicas_compared = sum(len(replicas) > 1 for replicas in logs.values())
    add_to(verdict, divergent_replicas(logs), shown=shown)
    tables = {
        key: columns.records(key, end, without=ends.damage.get(key, {}))
        for key, end in ends.partitions.items()
        if end.compacted
    }
    add_to(verdict, divergent_tables(tables), shown=shown, name=TABLES.name)
    _add_fates(verdict.findings(LostWrite), ends, columns)
    _add_ends([*verdict.findings(TornTransaction), *verdict.findings(TransactionRead)], columns)
    _mark(verdict, partial(_fates, ends=ends, columns=columns), partial(_ended, columns=columns))


class _Columns:
    """The rows of the file as numbers; log partitions by their place in ``names``."""

    def __init__(self, table: pa.Table) -> None:
        rows = table.unify_dictionaries()
        chunks = rows.column("partition").chunks
        self.names: list[str] = chunks[0].dictionary.to_pylist() if chunks else []
        codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
        self._key = np.concatenate([np.zeros(0, np.int32), *codes])
        self._node, self._offset, self._epoch, self._value = (
            rows.column(name).to_numpy() for name in ("node", "offset", "leader_epoch", "value")
        )
        self._producer_epoch = rows.column("producer_epoch").to_numpy()
        self._facts = {
            field: rows.column(column).to_numpy().astype(np.int64, copy=False)
            for field, column in (
                ("record_keys", "record_key"),
                ("tombstones", "tombstone"),
                ("producer_ids", "producer_id"),
                ("parts", "part"),
            )
        }

    def replicas(self, key: str, end: PartitionEnd) -> list[ReplicaLog]:
        """The logs of ``key`` that are comparable, see the module's text."""
        return [
            ReplicaLog(
                node=node,
                offsets=self._offset[rows],
                digests=self._value[rows],
                leader_epochs=self._epoch[rows],
                high_watermark=end.end_offset or 0,
            )
            for node, rows in self._comparable(key, end)
        ]

    def records(self, key: str, end: PartitionEnd, *, without: Container[int]) -> list[ReplicaRecords]:
        """The records below the end in the same logs, except those of nodes in ``without``."""
        return [
            ReplicaRecords(
                node=node,
                values=self._value[below],
                **{name: facts[below] for name, facts in self._facts.items()},
            )
            for node, rows in self._comparable(key, end)
            if node not in without
            for below in [rows[self._offset[rows] < (end.end_offset or 0)]]
        ]

    def _comparable(self, key: str, end: PartitionEnd) -> Iterator[tuple[int, Numbers]]:
        """Each replica that was in sync and ran, with its rows, where the end of the log is known."""
        if end.end_offset is None or key not in self.names:
            return
        mine = self._key == self.names.index(key)
        for node in sorted(set(end.isr) & set(end.running)):
            rows = np.flatnonzero(mine & (self._node == node))
            if len(rows):
                yield node, rows

    def copies(self, key: str, values: Iterable[int]) -> dict[int, list[Copy]]:
        """Every copy of each of ``values`` of ``key`` that some disk has."""
        if key not in self.names:
            return {}
        rows = np.flatnonzero((self._key == self.names.index(key)) & np.isin(self._value, list(values)))
        copies: dict[int, list[Copy]] = {}
        for value, node, offset in zip(
            self._value[rows].tolist(), self._node[rows].tolist(), self._offset[rows].tolist(), strict=True
        ):
            copies.setdefault(value, []).append(Copy(node, offset))
        return copies

    def unended(self, key: str, values: Iterable[int]) -> dict[int, Unended]:
        """The ``values`` whose transaction never ended in ``key``, with the proof: see the module's text."""
        if key not in self.names:
            return {}
        producer, part = self._facts["producer_ids"], self._facts["parts"]
        rows = np.flatnonzero((self._key == self.names.index(key)) & (part != TransactionPart.RECORD))
        rows = rows[np.lexsort((self._offset[rows], producer[rows], self._node[rows]))]
        ends = np.isin(part[rows], (TransactionPart.ABORT, TransactionPart.COMMIT))
        markers = rows[ends]
        sent = np.flatnonzero(~ends & np.isin(self._value[rows], list(values)))
        behind = np.searchsorted(np.flatnonzero(ends), sent)
        sent, behind = sent[behind < len(markers)], behind[behind < len(markers)]
        record, marker = rows[sent], markers[behind]
        same = (self._node[record] == self._node[marker]) & (producer[record] == producer[marker])
        later = same & (self._producer_epoch[marker] > self._producer_epoch[record] + 1)
        return {
            int(self._value[row]): Unended(
                node=int(self._node[row]),
                offset=int(self._offset[row]),
                producer_epoch=int(self._producer_epoch[row]),
                next_epoch=int(self._producer_epoch[end]),
                next_commits=int(part[end]) == TransactionPart.COMMIT,
            )
            for row, end in zip(record[later], marker[later], strict=True)
        }


def _add_ends(findings: Sequence[TornTransaction | TransactionRead], columns: _Columns) -> None:
    """Give each finding the proof that its transaction never ended; each log is sorted once, however many it has."""
    values: dict[str, list[int]] = {}
    for finding in findings:
        values.setdefault(str(finding.key), []).append(finding.value)
    unended = {key: columns.unended(key, of_key) for key, of_key in values.items()}
    for finding in findings:
        finding.unended = unended[str(finding.key)].get(finding.value)


def _mark(verdict: Verdict, fates: Marks, ended: Marks) -> None:
    """Put the marks of all findings in the place of their values: fates of lost writes, ends of transactions."""
    verdict.moments = {
        name: marked(moments, fates if name == LOST_WRITE.name else ended) for name, moments in verdict.moments.items()
    }


def _ended(key: str, values: Sequence[int], *, columns: _Columns) -> Iterator[str]:
    unended = columns.unended(key, values)
    yield from (NO_MARKER if value in unended else "" for value in values)


def _fates(key: str, values: Sequence[int], *, ends: Ends, columns: _Columns) -> Iterator[str]:
    copies = columns.copies(key, values)
    yield from (mark_of(_fate(copies.get(value, []), key, ends)) for value in values)


def _add_fates(findings: Sequence[LostWrite], ends: Ends, columns: _Columns) -> None:
    """Give each finding of a lost write its ``fate`` and its ``copies``."""
    lost: dict[str, set[int]] = {}
    for finding in findings:
        lost.setdefault(str(finding.key), set()).add(finding.value)
    copies = {key: columns.copies(key, values) for key, values in lost.items()}
    for finding in findings:
        key = str(finding.key)
        finding.copies = copies[key].get(finding.value, [])
        finding.fate = _fate(finding.copies, key, ends)


def _fate(copies: Sequence[Copy], key: str, ends: Ends) -> str:
    if not copies:
        looked_everywhere = key in ends.held and not ends.unreadable and not ends.damage.get(key)
        return "destroyed" if looked_everywhere else "unknown"
    end = ends.partitions.get(key)
    if end is None or end.end_offset is None:
        return "hidden"
    reached = end.end_offset
    return IN_THE_LOG if any(copy.node == end.leader and copy.offset < reached for copy in copies) else "hidden"


def add_to(verdict: Verdict, findings: Sequence[Finding], *, shown: int | None, name: str = REPLICAS.name) -> None:
    """Put findings of the anomaly ``name`` into a verdict, which is then no longer valid."""
    if findings:
        verdict.anomalies[name] = list(findings[:shown])
        verdict.counts[name] = len(findings)
        verdict.valid, verdict.reason = False, None
