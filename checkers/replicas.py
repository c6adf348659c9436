"""``divergent-replicas``: two replicas of a log partition hold different records at the same committed offset.

Example: replica 1 has ``a`` at offset 5, replica 2 has ``b``, and both say that everything below 6 is committed.
Clients may never notice, until the other replica leads.

It needs the replicas' own logs, which can be read in the simulated and the processes world, after the run has healed.
Only offsets below every compared replica's high watermark count: above it, logs may differ lawfully. A replica that
begins later (retention) or has a hole (compaction) says nothing of the offsets that it does not have.

Findings, one for each offset: key, offset, replicas ({node: digest}). O(n log n) in the records of all replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from checkers.kernels.ids import Numbers
from checkers.verdict import Verdict

NAME: Final = "divergent-replicas"


@dataclass(frozen=True, kw_only=True)
class ReplicaLog:
    """What one replica holds of one log partition.

    ``offsets`` are ascending; ``digests`` are a number for each record that is equal exactly if the records are (a
    value, or a checksum over epoch, key and payload); everything below ``high_watermark`` is committed as far as it
    knows.
    """

    node: int
    offsets: Numbers
    digests: Numbers
    high_watermark: int


def divergent_replicas(partitions: Mapping[str, Sequence[ReplicaLog]]) -> list[dict[str, Any]]:
    """Findings over all log partitions, in order of partition and offset."""
    return [finding for key in sorted(partitions) for finding in _divergent(key, partitions[key])]


def _divergent(key: str, replicas: Sequence[ReplicaLog]) -> list[dict[str, Any]]:
    if len(replicas) < 2:
        return []
    committed = min(replica.high_watermark for replica in replicas)
    offsets = np.concatenate([replica.offsets for replica in replicas])
    digests = np.concatenate([replica.digests for replica in replicas])
    nodes = np.repeat([replica.node for replica in replicas], [len(replica.offsets) for replica in replicas])
    below = offsets < committed
    offsets, digests, nodes = offsets[below], digests[below], nodes[below]
    pairs = np.unique(np.stack([offsets, digests]), axis=1)
    differing = np.unique(pairs[0][1:][pairs[0][1:] == pairs[0][:-1]])
    return [
        {
            "key": key,
            "offset": offset,
            "replicas": dict(zip(nodes[offsets == offset].tolist(), digests[offsets == offset].tolist(), strict=True)),
        }
        for offset in differing.tolist()
    ]


def add_to(verdict: Verdict, findings: Sequence[dict[str, Any]], *, shown: int | None) -> None:
    """Put the findings into a verdict: it is no longer valid if there are any."""
    if findings:
        verdict.anomalies[NAME] = list(findings[:shown])
        verdict.counts[NAME] = len(findings)
        verdict.valid, verdict.reason = False, None
