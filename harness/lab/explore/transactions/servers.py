"""The brokers of a scope of transactions: the coordinator with its log, and the leader of each log partition.

The log partition of a leader has one replica, so what is appended is committed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from typing_extensions import override

from harness.broker.core.broker import Broker
from harness.broker.core.effects import Deliver
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import Message, RecordBatch
from harness.broker.core.transaction_coordinator import LOG, TransactionRecord, TransactionState
from harness.broker.core.types import NodeId, TopicPartition
from harness.lab.explore.coordinator_node import TOPIC, CoordinatorNode, Servers, sent_by, settle, started
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.normal_form import (
    NOW_US,
    config_of,
    let_transactions_expire,
    settle_coordinator,
    waiting_clients,
)
from harness.lab.explore.transactions.producers import TIMEOUT_MS


class PartitionCopy(NamedTuple):
    """A log partition as rules see it.

    ``readable`` are the records that a reader of committed records gets, ``aborted`` those that it passes over;
    ``open`` are the ids of producers with a transaction in it. ``batches`` are all, in order, markers negative.
    """

    readable: tuple[int, ...]
    aborted: tuple[int, ...]
    open: tuple[int, ...]
    stable_end: int
    batches: tuple[int, ...]


#: Markers among batches.
COMMIT_MARKER: Final = -1
ABORT_MARKER: Final = -2


class LeaderNode:
    """The leader of one log partition: its process, and its log."""

    number: NodeId
    log: MemoryLog
    process: Broker

    def __init__(self, number: int, servers: Servers) -> None:
        self.number = NodeId(number)
        self.log = MemoryLog()
        self.process = started(self.number, servers.config, self.log, servers.image(0))
        settle(self.process)

    def take(self, sender: int, message: Message) -> list[Deliver]:
        """A producer or the coordinator has something appended; the answer."""
        sent = sent_by(self.process, self.number, self.process.on_message(NOW_US, NodeId(sender), message))
        settle(self.process)
        return sent

    def part(self) -> PartitionCopy:
        """It as rules see it."""
        replica = self.process.replicas[TopicPartition(TOPIC, self.number)]
        transactions, end = self.log.producers.transactions, replica.stable_end()
        written = [batch for batch in self.log.batches if batch.marker is None]
        stable = [batch for batch in written if batch.next_offset <= end]
        return PartitionCopy(
            tuple(batch.records for batch in stable if not transactions.is_aborted(batch)),
            tuple(batch.records for batch in stable if transactions.is_aborted(batch)),
            tuple(sorted(transactions.open)),
            end,
            tuple(map(_shown, self.log.batches)),
        )


def _shown(batch: RecordBatch) -> int:
    if batch.marker is None:
        return int(batch.records)
    return COMMIT_MARKER if batch.marker.commit else ABORT_MARKER


class CoordinatorCopy(NamedTuple):
    """The coordinator as rules see it: its leader epoch, and the last record of its log and of the follower's.

    ``committed`` is the first of them; ``clients`` wait for their answer until a record is.
    """

    leader_epoch: int
    record: TransactionRecord | None
    copied: TransactionRecord | None
    committed: bool
    clients: tuple[int, ...]

    def has_open(self, partition: int) -> bool:
        """It knows that a transaction is open in this partition, and will end it."""
        record = self.record
        going_on = (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
        return record is not None and record.state in going_on and TopicPartition(TOPIC, partition) in record.partitions


class TransactionCoordinatorNode(CoordinatorNode):
    """The coordinator of transactions."""

    @override
    def _settle_coordinator(self) -> dict[int, int]:
        return settle_coordinator(self.process)

    @override
    def _after_us(self, event: NodeEvent) -> int:
        """Nothing is overdue, a marker that was not answered is, or a transaction is open for too long."""
        if event.kind == "expire":
            let_transactions_expire(self.process)
            return (TIMEOUT_MS + 1) * 1000
        return config_of(self.process).replica_socket_timeout_ms * 1000 if event.kind == "look-late" else 0

    def part(self) -> CoordinatorCopy:
        """It as rules see it."""
        committed = self.process.replicas[LOG].high_watermark >= self.log.end_offset
        clients = waiting_clients(self.process)
        return CoordinatorCopy(self.leader_epoch, _last(self.log), _last(self.other), committed, clients)


def _last(log: MemoryLog) -> TransactionRecord | None:
    """The last record of the log; there is one transactional id."""
    if not log.batches:
        return None
    ((_, value),) = log.batches[-1].records
    return msgspec.msgpack.decode(value, type=TransactionRecord)
