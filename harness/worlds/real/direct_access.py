"""Gives scripted stories single writes to brokers and a view of replicas in a real world.

A replica's log is read from its segment files, while the broker writes them; its role is the broker's own word, as far
as the broker gives one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from typing_extensions import override

from checkers import TransactionPart
from harness.records.replica_dump import Stretch
from harness.worlds.clients import (
    EMPTY,
    BatchSequence,
    RealDirectClient,
    group_state,
    told_group,
    told_stable_end,
    told_transaction,
)
from harness.worlds.contract import DirectWrite, Flushed, GroupWord, PlacedRecord, Replicas, ReplicaState
from harness.worlds.hosts import NodeState
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import Viewer
from harness.worlds.replica_logs import leader_epochs, log_directory, log_end, stretches, written_high_watermark
from workloads import SendOutcome

#: A coordinator that runs and is in reach answers in milliseconds.
ASK_S: Final = 1.5
#: The answer comes when the tombstones are committed.
DELETE_MS: Final = 5_000


class SelfReport(msgspec.Struct, frozen=True):
    """A running broker's word about one of its replicas; None in a field means no word. ``isr`` is that of a leader."""

    leading: bool = False
    leader_epoch: int | None = None
    high_watermark: int | None = None
    isr: tuple[int, ...] | None = None


#: Asks a running broker about its replica of a log partition.
Ask = Callable[[int, str], SelfReport]


class DirectRequests:
    """Sends single requests, each over a connection of its own (a :class:`harness.worlds.contract.DirectClient`)."""

    def __init__(self, client: RealDirectClient) -> None:
        self._client = client

    def produce(self, broker: int, write: DirectWrite, done: Callable[[SendOutcome], None]) -> None:
        """Send ``write`` to ``broker`` once, over a new connection."""
        self._client.produce(
            broker,
            write.partition,
            write.key,
            write.payload,
            acks=write.acks,
            timeout_ms=write.timeout_ms,
            sequence=BatchSequence(write.producer_id, write.producer_epoch, write.sequence),
            tombstone=write.tombstone,
            done=done,
        )

    def delete_group(self, broker: int, group: str, done: Callable[[SendOutcome], None]) -> None:
        """Ask ``broker`` to forget a group, over a new connection."""
        self._client.delete_group(broker, group, timeout_ms=DELETE_MS, done=done)


class ReplicasOnDisk(Replicas):
    """Shows the replicas of nodes whose disks this machine can read."""

    def __init__(self, nodes: Nodes, viewer: Viewer, ask: Ask) -> None:
        self._nodes = nodes
        self._viewer = viewer
        self._ask = ask

    @override
    def state(self, node: int, partition: str) -> ReplicaState:
        directory = log_directory(self._nodes.data(node), partition)
        running = bool(self._nodes.in_state(NodeState.RUNNING, (node,)))
        if directory is None:
            return ReplicaState(node=node, running=running, log_end=0)
        log = stored_log(directory, partition)
        word = self._ask(node, partition) if running else SelfReport()
        return ReplicaState(
            node=node,
            running=running,
            log_end=log.end,
            records=log.records,
            epochs=leader_epochs(directory),
            written_high_watermark=written_high_watermark(directory),
            last_stable_offset=log.stable_end,
            **msgspec.structs.asdict(word),
        )

    @override
    def group_is_empty(self, node: int) -> bool | None:
        state = group_state(self._nodes.host.address(node), self._viewer.group, ASK_S)
        return None if state is None else state == EMPTY

    @override
    def group(self, node: int) -> GroupWord:
        told = told_group(self._nodes.host.address(node), self._viewer.group, ASK_S)
        if told.assigned is None:
            return GroupWord(committed=told.committed)
        return GroupWord(committed=told.committed, members=len(told.assigned), assigned=sum(told.assigned))

    @override
    def transaction(self, node: int, transactional_id: str) -> str | None:
        return told_transaction(self._nodes.host.address(node), transactional_id, ASK_S)

    @override
    def stable_end(self, node: int, partition: str) -> int | None:
        return told_stable_end(self._nodes.host.address(node), partition, ASK_S)

    @override
    def fenced(self) -> frozenset[int]:
        brokers = self._viewer.image().brokers
        return frozenset(node for node in self._nodes.brokers if node not in brokers or brokers[node].fenced)

    def flush(self, node: int) -> Flushed:
        """Force every file of the broker to its disk."""
        files = [path for path in self._nodes.data(node).rglob("*") if path.is_file()]
        return {"flushed": sum(map(_forced, files))}


class StoredLog(NamedTuple):
    """The whole batches of a log: records of the good ones, their end, and the end before any open transaction."""

    records: tuple[PlacedRecord, ...]
    end: int
    stable_end: int


def stored_log(directory: Path, partition: str) -> StoredLog:
    """A log whose broker may be writing, or dropping a segment."""
    placed: list[PlacedRecord] = []
    end, begun = 0, dict[int, int]()
    damage: list[str] = []
    for stretch in stretches(directory, partition, damage):
        of_records = stretch.of_records()
        columns = (of_records.offsets, of_records.leader_epochs, of_records.values)
        placed += [PlacedRecord(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        end = max([end, *(stretch.offsets + 1).tolist()])
        _follow(begun, stretch)
    if damage:
        end = max(end, log_end(directory))
    return StoredLog(tuple(placed), end, min([end, *begun.values()]))


def _follow(begun: dict[int, int], stretch: Stretch) -> None:
    """Keep the first offset of each open transaction, by its producer."""
    if stretch.facts is None:
        return
    columns = (stretch.offsets, stretch.facts.producer_ids, stretch.facts.parts)
    for offset, producer, part in zip(*(column.tolist() for column in columns), strict=True):
        if part == TransactionPart.IN_TRANSACTION:
            begun.setdefault(producer, offset)
        elif part != TransactionPart.RECORD:
            begun.pop(producer, None)


def _forced(path: Path) -> bool:
    """Force a file to its disk; False if it was removed meanwhile."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        os.fsync(file)
    finally:
        os.close(file)
    return True
