"""The brokers of a scope of transactions: the coordinator with its log, and the leader of each log partition.

The log partition of a leader has one replica, so what is appended is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from typing_extensions import override

from harness.broker.core.broker import Broker
from harness.broker.core.coordinated import (
    decisions_in,
    markers_in,
    records_under_way,
    transactions_in,
    transactions_loaded,
)
from harness.broker.core.effects import Deliver
from harness.broker.core.invariants import Broken, producers_grow
from harness.broker.core.log import MemoryLog
from harness.broker.core.logged import LoggedTransactions
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

    def take(self, sender: int, message: Message) -> tuple[list[Deliver], Broken | None]:
        """A producer or the coordinator has something appended; the answer, and an invariant that is broken."""
        sent = sent_by(self.process, self.number, self.process.on_message(NOW_US, NodeId(sender), message))
        settle(self.process)
        logged, broken = LoggedTransactions(), None
        for batch in self.log.batches:
            epochs = logged.read(batch)
            if epochs is not None:
                broken = broken or producers_grow(self.number, batch.producer_id, *epochs, batch.base_offset)
        return sent, broken or transactions_in(self.number, self.log, logged)

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

    @override
    def _under_way(self) -> dict[str, TransactionRecord | None] | None:
        coordinator = self.process.transaction_coordinator
        return None if coordinator.ready() is None else records_under_way(coordinator)

    @override
    def _broken(self, before: Any, message: Message | None, sent: Sequence[Deliver]) -> Iterator[Broken | None]:
        coordinator = self.process.transaction_coordinator
        if coordinator.ready() is not None:
            if before is None:
                yield from transactions_loaded(coordinator)
            yield from decisions_in(coordinator.transactions(), before or {}, message)
            yield from markers_in(coordinator, sent)

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
