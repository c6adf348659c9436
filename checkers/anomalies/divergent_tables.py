"""``divergent-tables``: the logs of two in-sync replicas of a compacted log partition give different tables.

Example: the leader, replica 1, has deleted key 7, and its cleaner has removed record and tombstone. Replica 2, in sync,
missed the tombstone, and its last record of key 7 is ``a@3``. As long as replica 1 leads, readers see nothing of it.

A table is the last record of each key below the end of the log; a key without a record, and one whose last record is a
tombstone, are both deleted. Records of a transaction count once a marker of its producer follows that says "commit";
a replica that kept an aborted record and lost its marker shows it as committed by the producer's next marker, as a
broker does. What is compared, and why nothing else is:

* Log partitions and replicas as ``divergent-replicas`` has them: in sync, running, and read to an end that is known.
* Compacted log partitions: elsewhere retention takes the begin of one log before that of another.
* Logs that could be read as a whole: damage hides the last record of a key, or a marker.
* Records below the end; replicas that have cleaned more or less than others are in the same state.

Findings, one a key: key, record-key, replicas ({node: value}, null for a deleted key). O(n log n) in the records of all
replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding
from checkers.anomalies.divergent_replicas import of_several
from checkers.anomalies.view import CopiesView
from checkers.columns.ids import Flags, Numbers
from checkers.columns.replica_file import TransactionPart
from checkers.words import written
from workloads.history import NONE

#: The value of a key that is deleted; values of records are never this.
_DELETED: Final = -1


class DivergentTables(Finding, kw_only=True):
    """A key whose last record is not the same on all replicas."""

    record_key: int = msgspec.field(name="record-key")
    replicas: dict[int, Any]

    @override
    def words(self) -> str:
        held = [
            f"on broker {node} {'it is deleted' if value is None else f'it is {written(value)}'}"
            for node, value in sorted(self.replicas.items())
        ]
        return (
            f"When the run had ended, the last record of key {self.record_key} was not the same in the logs of "
            f"{self.key} on all in-sync replicas: {', '.join(held)}. Who leads decides what readers get."
        )

    @override
    def view(self) -> CopiesView:
        return CopiesView(record_key=self.record_key)


ANOMALY: Final = Anomaly.documented(
    "divergent-tables",
    __doc__,
    DivergentTables,
    title="The logs of in-sync replicas give different last records of a key",
    rule="Replicas of a compacted log may differ in their records, but not in the last one of a key.",
)


@dataclass(frozen=True, kw_only=True)
class ReplicaRecords:
    """The records and markers of one log partition on one replica, those below its end, offsets ascending.

    All are int64, by record, as in the file (:mod:`checkers.columns.replica_file`).
    """

    node: int
    values: Numbers
    record_keys: Numbers
    tombstones: Numbers
    producer_ids: Numbers
    parts: Numbers


def divergent_tables(partitions: Mapping[str, Sequence[ReplicaRecords]]) -> list[DivergentTables]:
    """Findings over all log partitions, in order of partition and key."""
    return of_several(partitions, _divergent)


def _divergent(key: str, replicas: Sequence[ReplicaRecords]) -> list[DivergentTables]:
    tables = [_table(replica) for replica in replicas]
    keys = np.unique(np.concatenate([record_keys for record_keys, _ in tables]))
    states = np.full((len(replicas), len(keys)), _DELETED, dtype=np.int64)
    for row, (record_keys, values) in zip(states, tables, strict=True):
        row[np.searchsorted(keys, record_keys)] = values
    odd = np.flatnonzero((states != states[0]).any(axis=0))
    return [
        DivergentTables(
            key=key,
            record_key=int(keys[number]),
            replicas={
                replica.node: None if state == _DELETED else state
                for replica, state in zip(replicas, states[:, number].tolist(), strict=True)
            },
        )
        for number in odd.tolist()
    ]


def _table(replica: ReplicaRecords) -> tuple[Numbers, Numbers]:
    """The keys that have a record, ascending, and the value of the last one of each."""
    rows = np.flatnonzero((replica.record_keys != NONE) & committed(replica))
    keys, last = np.unique(replica.record_keys[rows][::-1], return_index=True)
    rows = rows[::-1][last]
    return keys, np.where(replica.tombstones[rows] != 0, _DELETED, replica.values[rows])


def committed(replica: ReplicaRecords) -> Flags:
    """``bool[record]``: it is a record, of no transaction or of one whose next marker says "commit"."""
    counts: Flags = replica.parts == TransactionPart.RECORD
    markers = np.flatnonzero((replica.parts == TransactionPart.COMMIT) | (replica.parts == TransactionPart.ABORT))
    pending = np.flatnonzero(replica.parts == TransactionPart.IN_TRANSACTION)
    if not (len(markers) and len(pending)):
        return counts
    _, producer = np.unique(replica.producer_ids, return_inverse=True)
    span = len(producer)
    markers = markers[np.argsort(producer[markers], kind="stable")]
    places = np.searchsorted(producer[markers] * span + markers, producer[pending] * span + pending)
    following = markers[np.minimum(places, len(markers) - 1)]
    ended = (places < len(markers)) & (producer[following] == producer[pending])
    counts[pending] = ended & (replica.parts[following] == TransactionPart.COMMIT)
    return counts
