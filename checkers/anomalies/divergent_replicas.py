"""``divergent-replicas``: two replicas of a log partition hold different records at the same committed offset.

Example: the leader, replica 1, has ``a`` at offset 5, its in-sync replica 2 has ``b``, and readers were told that the
log reaches to 6. Clients may never notice, until replica 2 leads.

It needs the replicas' own logs (:mod:`checkers.columns.replica_file`), read when the run has healed and its
processes have ended; a history without them is judged without. What is compared, and why nothing else is:

* Log partitions that were healthy when the final readers asked their leader for the end, and were read to it. That end
  is the high watermark, so every in-sync replica has, or has had to have, the same records below it (rules 4, 7).
* Replicas that stood in the controller's in-sync set when the run was over, and whose process ran. One outside may lag
  behind, or hold a tail that it will truncate when it returns (rule 17); one that does not run cannot truncate.
* Offsets below that end. Above it logs may differ: a new leader's followers truncate with their next fetch.
* Offsets that both replicas have. One that begins later (retention), ends earlier (a disk that was wiped and is being
  filled), or has a hole (compaction, a batch that is damaged on the disk) says nothing of the offsets it lacks.

Records are the same if key and payload are; the leader epoch under which one was appended is not compared.

Findings, one for each offset: key, offset, replicas ({node: value}). O(n log n) in the records of all replicas.

The same logs tell for each lost write whether a copy is left on some disk: ``fate`` of a ``lost-write`` is

* ``hidden``: there are copies (``copies``, a list of node and offset), none where readers look;
* ``in the log``: the leader has it below the end, and the final readers missed it;
* ``destroyed``: no disk has it;
* ``unknown``: no disk that could be read has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from checkers.columns import replica_file
from checkers.columns.ids import Numbers
from checkers.columns.replica_file import Ends, PartitionEnd
from checkers.errors import CheckError
from checkers.histories.discovery import HISTORY
from checkers.histories.stores import Place
from checkers.verdicts.verdict import Verdict

NAME: Final = "divergent-replicas"
LOST: Final = "lost-write"


@dataclass(frozen=True, kw_only=True)
class ReplicaLog:
    """What one replica holds of one log partition.

    ``offsets`` are ascending; ``digests`` are a number for each record that is equal exactly if the records are;
    everything below ``high_watermark`` is committed as far as it knows.
    """

    node: int
    offsets: Numbers
    digests: Numbers
    high_watermark: int


def examined(verdict: Verdict, history: Place | None, *, shown: int | None) -> Verdict:
    """The verdict on the history in the file ``history``, with what the replicas' logs of its run tell, if it has any.

    Logs that are there and cannot be read make a verdict "unknown" that would have been true.
    """
    if history is None or history.parent.name != HISTORY:
        return verdict
    try:
        found = replica_file.read(history.parent.parent / replica_file.NAME)
    except CheckError as error:
        if verdict.valid is True:
            verdict.valid, verdict.reason = "unknown", str(error)
        return verdict
    if found is not None:
        _examine(verdict, *found, shown=shown)
    return verdict


def _examine(verdict: Verdict, ends: Ends, table: pa.Table, *, shown: int | None) -> None:
    columns = _Columns(table)
    logs = {key: columns.replicas(key, end) for key, end in ends.partitions.items()}
    verdict.replicas_compared = sum(len(replicas) > 1 for replicas in logs.values())
    add_to(verdict, divergent_replicas(logs), shown=shown)
    tell_fates(verdict.anomalies.get(LOST, ()), ends, columns)


class _Columns:
    """The rows of the file as numbers; log partitions by their place in ``names``."""

    def __init__(self, table: pa.Table) -> None:
        rows = table.unify_dictionaries()
        chunks = rows.column("partition").chunks
        self.names: list[str] = chunks[0].dictionary.to_pylist() if chunks else []
        codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
        self._key = np.concatenate([np.zeros(0, np.int32), *codes])
        self._node, self._offset, self._value = (rows.column(name).to_numpy() for name in ("node", "offset", "value"))

    def replicas(self, key: str, end: PartitionEnd) -> list[ReplicaLog]:
        """The logs of ``key`` that are comparable, see the module's text."""
        if end.end_offset is None or key not in self.names:
            return []
        mine = self._key == self.names.index(key)
        logs = []
        for node in sorted(set(end.isr) & set(end.running)):
            rows = np.flatnonzero(mine & (self._node == node))
            if len(rows):
                offsets, digests = self._offset[rows], self._value[rows]
                logs.append(ReplicaLog(node=node, offsets=offsets, digests=digests, high_watermark=end.end_offset))
        return logs

    def copies(self, key: str, values: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """For each of ``values`` of ``key`` that some disk has, (node, offset) of every copy."""
        if key not in self.names:
            return {}
        rows = np.flatnonzero((self._key == self.names.index(key)) & np.isin(self._value, list(values)))
        found: dict[int, list[tuple[int, int]]] = {}
        for value, node, offset in zip(
            self._value[rows].tolist(), self._node[rows].tolist(), self._offset[rows].tolist(), strict=True
        ):
            found.setdefault(value, []).append((node, offset))
        return found


def tell_fates(findings: Sequence[dict[str, Any]], ends: Ends, columns: _Columns) -> None:
    """Give each finding of a lost write its ``fate`` and, where there are any, its ``copies``."""
    lost: dict[str, set[int]] = {}
    for finding in findings:
        lost.setdefault(finding["key"], set()).add(finding["value"])
    found = {key: columns.copies(key, values) for key, values in lost.items()}
    for finding in findings:
        key = finding["key"]
        copies = found[key].get(finding["value"], [])
        finding["fate"] = _fate(copies, key, ends)
        if copies:
            finding["copies"] = [{"node": node, "offset": offset} for node, offset in copies]


def _fate(copies: Sequence[tuple[int, int]], key: str, ends: Ends) -> str:
    if not copies:
        looked_everywhere = key in ends.held and not ends.unreadable and not ends.damage.get(key)
        return "destroyed" if looked_everywhere else "unknown"
    end = ends.partitions.get(key)
    if end is None or end.end_offset is None:
        return "hidden"
    reached = end.end_offset
    return "in the log" if any(node == end.leader and offset < reached for node, offset in copies) else "hidden"


def divergent_replicas(partitions: Mapping[str, Sequence[ReplicaLog]]) -> list[dict[str, Any]]:
    """Findings over all log partitions, in order of partition and offset."""
    return [finding for key in sorted(partitions) for finding in _divergent(key, partitions[key])]


def _divergent(key: str, replicas: Sequence[ReplicaLog]) -> list[dict[str, Any]]:
    if len(replicas) < 2 or _alike(replicas):
        return []
    committed = min(replica.high_watermark for replica in replicas)
    offsets = np.concatenate([replica.offsets for replica in replicas])
    digests = np.concatenate([replica.digests for replica in replicas])
    nodes = np.repeat([replica.node for replica in replicas], [len(replica.offsets) for replica in replicas])
    below = offsets < committed
    order = np.flatnonzero(below)[np.argsort(offsets[below], kind="stable")]
    offsets, digests, nodes = offsets[order], digests[order], nodes[order]
    pairs = np.unique(np.stack([offsets, digests]), axis=1)
    differing = np.unique(pairs[0][1:][pairs[0][1:] == pairs[0][:-1]])
    begins, ends = np.searchsorted(offsets, differing), np.searchsorted(offsets, differing, side="right")
    return [
        {
            "key": key,
            "offset": offset,
            "replicas": dict(zip(nodes[begin:end].tolist(), digests[begin:end].tolist(), strict=True)),
        }
        for offset, begin, end in zip(differing.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]


def _alike(replicas: Sequence[ReplicaLog]) -> bool:
    """Whether the logs are the same, record for record, which nearly all are: far quicker than to look for more."""
    first, *others = replicas
    return all(
        np.array_equal(first.offsets, other.offsets) and np.array_equal(first.digests, other.digests)
        for other in others
    )


def add_to(verdict: Verdict, findings: Sequence[dict[str, Any]], *, shown: int | None) -> None:
    """Put the findings into a verdict: it is no longer valid if there are any."""
    if findings:
        verdict.anomalies[NAME] = list(findings[:shown])
        verdict.counts[NAME] = len(findings)
        verdict.valid, verdict.reason = False, None
