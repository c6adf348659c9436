"""What scripted stories need of a real world: single writes, and replicas that can be looked at from outside.

What a replica's log holds is read from its segment files, while the broker writes them; what the broker takes itself
for is its own word, as far as it gives one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from harness.clients import BatchSequence, DirectClient
from harness.hosts import NodeState
from harness.worlds.contract import DirectWrite, PlacedRecord, ReplicaState
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import Viewer
from harness.worlds.replica_logs import log_directory, stretches
from nemesis.evidence import Evidence
from workloads import SendOutcome


class SelfReport(msgspec.Struct, frozen=True):
    """What a running broker says of one of its replicas; what it does not say is None. ``isr`` is that of a leader."""

    leading: bool = False
    leader_epoch: int | None = None
    high_watermark: int | None = None
    isr: tuple[int, ...] | None = None


#: The word of a running broker about its replica of a log partition.
Ask = Callable[[int, str], SelfReport]


class DirectWrites:
    """Implements :class:`harness.worlds.contract.DirectClient` over connections of their own."""

    def __init__(self, client: DirectClient) -> None:
        self._client = client

    def produce(self, broker: int, write: DirectWrite, done: Callable[[SendOutcome], None]) -> None:
        """See :meth:`harness.worlds.contract.DirectClient.produce`."""
        self._client.produce(
            broker,
            write.partition,
            write.key,
            write.payload,
            acks=write.acks,
            timeout_ms=write.timeout_ms,
            sequence=BatchSequence(write.producer_id, write.producer_epoch, write.sequence),
            done=done,
        )


class ReplicasOnDisk:
    """Implements :class:`harness.worlds.contract.Replicas` for nodes whose disks this machine can read."""

    def __init__(self, nodes: Nodes, viewer: Viewer, ask: Ask) -> None:
        self._nodes = nodes
        self._viewer = viewer
        self._ask = ask

    def state(self, node: int, partition: str) -> ReplicaState:
        """See :meth:`harness.worlds.contract.Replicas.state`."""
        directory = log_directory(self._nodes.data(node), partition)
        running = bool(self._nodes.in_state(NodeState.RUNNING, (node,)))
        if directory is None:
            return ReplicaState(node=node, running=running, log_end=0)
        records = _records(directory, partition)
        word = self._ask(node, partition) if running else SelfReport()
        return ReplicaState(
            node=node,
            running=running,
            log_end=records[-1].offset + 1 if records else 0,
            records=records,
            **msgspec.structs.asdict(word),
        )

    def fenced(self) -> frozenset[int]:
        """See :meth:`harness.worlds.contract.Replicas.fenced`."""
        known = self._viewer.image().brokers
        return frozenset(node for node in self._nodes.brokers if node not in known or known[node].fenced)

    def flush(self, node: int) -> Evidence:
        """See :meth:`harness.worlds.contract.Replicas.flush`. Evidence: ``flushed``, the number of files."""
        files = [path for path in self._nodes.data(node).rglob("*") if path.is_file()]
        return {"flushed": sum(map(_forced, files))}


def _records(directory: Path, partition: str) -> tuple[PlacedRecord, ...]:
    """The records of a log, as far as they are whole: its broker may be writing, or dropping a segment."""
    columns = (map(np.ndarray.tolist, stretch) for stretch in stretches(directory, partition, []))
    return tuple(PlacedRecord(*row) for stretch in columns for row in zip(*stretch, strict=True))


def _forced(path: Path) -> bool:
    """Force a file to its disk; False if it went away meanwhile."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        os.fsync(file)
    finally:
        os.close(file)
    return True
