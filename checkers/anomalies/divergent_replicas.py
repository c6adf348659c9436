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

Records are the same if key, payload, and the leader epoch under which one was appended are. A follower with another
epoch than its leader's kept what it had to truncate (rule 17), and may lose records at the next change of leader.

Findings, one for each offset: key, offset, replicas ({node: value}), epochs ({node: leader epoch}, where they differ).
O(n log n) in the records of all replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding
from checkers.anomalies.view import CopiesView
from checkers.columns.ids import Numbers
from checkers.words import held_record

Replica = TypeVar("Replica")
Finds = TypeVar("Finds", bound=Finding)


class DivergentReplicas(Finding, kw_only=True):
    """An offset, and what each of its ``replicas`` holds there; ``epochs`` where their leader epochs differ."""

    offset: int
    replicas: dict[int, int]
    epochs: dict[int, int] = msgspec.field(default_factory=dict)

    @override
    def words(self) -> str:
        under = {node: f" under leader epoch {epoch}" for node, epoch in self.epochs.items()}
        held = [
            f"broker {node} holds {held_record(value)}{under.get(node, '')}"
            for node, value in sorted(self.replicas.items())
        ]
        at_the_end = f"At offset {self.offset} of {self.key}, when the run had ended, {', '.join(held)}."
        return f"{at_the_end} All of them were in sync, and the log was read beyond that."

    @override
    def view(self) -> CopiesView:
        return CopiesView(offset=self.offset)


ANOMALY: Final = Anomaly.documented(
    "divergent-replicas",
    __doc__,
    DivergentReplicas,
    title="In-sync replicas hold different records at one offset",
    rule="Every in-sync replica has the same records below the high watermark (rules 4, 7).",
)


@dataclass(frozen=True, kw_only=True)
class ReplicaLog:
    """The records of one log partition on one replica, in three columns.

    ``offsets`` are ascending; two ``digests`` are equal exactly if the records are; everything below
    ``high_watermark`` is committed as far as the replica knows.
    """

    node: int
    offsets: Numbers
    digests: Numbers
    leader_epochs: Numbers
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
    offsets, digests, epochs = (
        np.concatenate([getattr(replica, name) for replica in replicas])
        for name in ("offsets", "digests", "leader_epochs")
    )
    nodes = np.repeat([replica.node for replica in replicas], [len(replica.offsets) for replica in replicas])
    below = offsets < committed
    order = np.flatnonzero(below)[np.argsort(offsets[below], kind="stable")]
    offsets, digests, epochs, nodes = (column[order] for column in (offsets, digests, epochs, nodes))
    records = np.unique(np.stack([offsets, digests, epochs]), axis=1)[0]
    differing = np.unique(records[1:][records[1:] == records[:-1]])
    begins, ends = np.searchsorted(offsets, differing), np.searchsorted(offsets, differing, side="right")
    return [
        _at_offset(key, offset, *(column[begin:end].tolist() for column in (nodes, digests, epochs)))
        for offset, begin, end in zip(differing.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]


def _at_offset(
    key: str, offset: int, nodes: Sequence[int], digests: Sequence[int], epochs: Sequence[int]
) -> DivergentReplicas:
    held = dict(zip(nodes, epochs, strict=True)) if len(set(epochs)) > 1 else {}
    return DivergentReplicas(key=key, offset=offset, replicas=dict(zip(nodes, digests, strict=True)), epochs=held)


def _alike(replicas: Sequence[ReplicaLog]) -> bool:
    """Tell whether the logs are the same, record for record. Nearly all are, and this is far quicker to see."""
    first, *others = replicas
    return all(
        np.array_equal(getattr(first, name), getattr(other, name))
        for other in others
        for name in ("offsets", "digests", "leader_epochs")
    )
