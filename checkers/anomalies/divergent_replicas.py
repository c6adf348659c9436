"""``divergent-replicas``: two replicas of a log partition hold different records at the same committed offset.

Example: the leader, replica 1, has ``a`` at offset 5, its in-sync replica 2 has ``b``, and readers learned that the
log reaches to 6. Clients may never notice, until replica 2 leads.

It needs the replicas' own logs (:mod:`checkers.columns.replica_file`), read when the run has healed and its
processes have ended; a history without them is judged without. What is compared, and why nothing else is:

* Log partitions that were healthy when the final readers asked their leader for the end, and were read to it. That end
  is the high watermark, so every in-sync replica has, or has had to have, the same records below it (rules 4, 7).
* Replicas that were in the controller's in-sync set when the run was over, and whose process ran. One outside may lag
  behind, or hold a tail that it will truncate when it returns (rule 17); one that does not run cannot truncate.
* Offsets below that end. Above it logs may differ: a new leader's followers truncate with their next fetch.
* Offsets that both replicas have. One that begins later (retention), ends earlier (a disk that was wiped and is being
  filled), or has a hole (compaction, a batch that is damaged on the disk) says nothing of the offsets it lacks.

Records are the same if key and payload are; the leader epoch under which one was appended is not compared.

Findings, one for each offset: key, offset, replicas ({node: value}). O(n log n) in the records of all replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from checkers.anomalies.anomaly import Anomaly, Finding
from checkers.columns.ids import Numbers

Replica = TypeVar("Replica")
Finds = TypeVar("Finds", bound=Finding)


class DivergentReplicas(Finding, kw_only=True):
    """An offset, and what each of its ``replicas`` holds there."""

    offset: int
    replicas: dict[int, int]


ANOMALY: Final = Anomaly.documented("divergent-replicas", __doc__, DivergentReplicas)


@dataclass(frozen=True, kw_only=True)
class ReplicaLog:
    """The records of one log partition on one replica; ``offsets`` and ``digests`` are int64, one entry a record.

    ``offsets`` are ascending; two ``digests`` are equal exactly if the records are; everything below
    ``high_watermark`` is committed as far as the replica knows.
    """

    node: int
    offsets: Numbers
    digests: Numbers
    high_watermark: int


def divergent_replicas(partitions: Mapping[str, Sequence[ReplicaLog]]) -> list[DivergentReplicas]:
    """Findings over all log partitions, in order of partition and offset."""
    return of_several(partitions, _divergent)


def of_several(
    partitions: Mapping[str, Sequence[Replica]], compare: Callable[[str, Sequence[Replica]], list[Finds]]
) -> list[Finds]:
    """Compare the replicas of each log partition that has several, in order of partition."""
    compared = [key for key in sorted(partitions) if len(partitions[key]) > 1]
    return [finding for key in compared for finding in compare(key, partitions[key])]


def _divergent(key: str, replicas: Sequence[ReplicaLog]) -> list[DivergentReplicas]:
    if _alike(replicas):
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
        DivergentReplicas(
            key=key,
            offset=offset,
            replicas=dict(zip(nodes[begin:end].tolist(), digests[begin:end].tolist(), strict=True)),
        )
        for offset, begin, end in zip(differing.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]


def _alike(replicas: Sequence[ReplicaLog]) -> bool:
    """Tell whether the logs are the same, record for record. Nearly all are, and this is far quicker to see."""
    first, *others = replicas
    return all(
        np.array_equal(first.offsets, other.offsets) and np.array_equal(first.digests, other.digests)
        for other in others
    )
