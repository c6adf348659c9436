"""A broker of the core, alone in its cluster, with logs in files and the handlers of requests: no sockets, no time."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from batch_maker import records
from client_side import asked_in_a_loop

from harness.broker.core import messages as core
from harness.broker.core.broker import Broker
from harness.broker.core.coordinator import look_of
from harness.broker.core.effects import Deliver
from harness.broker.core.transaction_coordinator import LOG
from harness.broker.core.types import (
    CONTROLLER,
    OFFSETS_TOPIC,
    BrokerConfig,
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.broker.server.codec.wire import TopicIds, by_topic
from harness.broker.server.config import NodeConfig, spoken
from harness.broker.server.handlers.coordinators import OFFSETS_PARTITIONS, Coordinators
from harness.broker.server.handlers.data import DataRequests
from harness.broker.server.handlers.gateway import Gateway
from harness.broker.server.handlers.groups import GroupRequests
from harness.broker.server.handlers.metadata_and_topics import ClusterRequests
from harness.broker.server.handlers.reports import Reports
from harness.broker.server.handlers.transactions import TransactionRequests
from harness.broker.server.storage.batches import split
from harness.broker.server.storage.log import FileLog

T0 = TopicPartition("t", 0)
LED = PartitionState((0,), (0,), 0, 1, 1)
IMAGE = Image(
    5,
    {0: BrokerState(1, False, "h0", 1)},
    {
        "t": TopicState(TopicConfig(), (LED, LED), 2),
        LOG.topic: TopicState(TopicConfig(), (LED,), 3),
        OFFSETS_TOPIC: TopicState(TopicConfig(), (LED,) * OFFSETS_PARTITIONS, 4),
    },
)
CONFIG = NodeConfig(role="broker", node=0, port=1, directory="", control_socket="", trace="")
#: The number under which the handlers ask for themselves.
ITSELF = 1_000_001


class LoneBroker:
    """Takes requests in Kafka's protocol, and answers in it. Its logs are in ``directory``, which may have some."""

    def __init__(self, directory: Path, incarnation: int = 1) -> None:
        self._directory = directory
        self._own: deque[core.Message] = deque()
        self.logs: dict[TopicPartition, FileLog] = {}
        self.broker = Broker(0, spoken(BrokerConfig()), self._log, incarnation, "h0", 1)
        ids = TopicIds()
        ids.learn(IMAGE.topics)
        self._gateway = Gateway(self._deliver)
        self.data = DataRequests(self._gateway, self.logs, ids)
        image = lambda: self.broker.image  # noqa: E731
        cluster = ClusterRequests(CONFIG, self._gateway, image, ids)
        self.groups = GroupRequests(self._gateway, self.broker)
        coordinators = Coordinators(ITSELF, image, cluster, CONFIG.topics)
        self.transactions = TransactionRequests(self._gateway, image, coordinators)
        self.reports = Reports(image, self.broker.replicas, lambda: self.broker.transactional_ids)
        self._take(self.broker.start(0))
        self._deliver(CONTROLLER, core.RegisterBrokerResponse(ErrorCode.NONE, incarnation, 1))
        self._deliver(CONTROLLER, core.AllocateProducerIdsResponse(ErrorCode.NONE, 4_000, 1_000))
        self._deliver(CONTROLLER, core.MetadataUpdate(IMAGE))

    def _log(self, partition: TopicPartition) -> FileLog:
        made = self.logs[partition] = FileLog(self._directory / str(partition))
        return made

    def look(self) -> None:
        """Remind the coordinator of what is due."""
        self._take(self.broker.on_timer(0, look_of(LOG, LED.leader_epoch)))

    def _deliver(self, sender: int, message: core.Message) -> None:
        self._take(self.broker.on_message(0, sender, message))

    def _take(self, effects) -> None:
        self._perform(effects)
        while self._own:
            self._perform(self.broker.on_message(0, 0, self._own.popleft()))

    def _perform(self, effects) -> None:
        for effect in effects:
            if not isinstance(effect, Deliver) or effect.target == CONTROLLER:
                continue
            if effect.target == 0:
                self._own.append(effect.message)
            else:
                self._gateway.answered(effect.message)

    # --- a client ---

    def ask(self, handle, key, version=None, /, **values):
        """The answer of a handler that sets itself a limit of time."""
        return asked_in_a_loop(handle, key, version, **values).answer

    def init(self, name="one"):
        """The identity of a producer that takes charge of a transactional id."""
        answer = self.ask(self.transactions.init_producer_id, 22, transactional_id=name, transaction_timeout_ms=60_000)
        assert answer.error_code == ErrorCode.NONE
        return answer.producer_id, answer.producer_epoch

    def add(self, identity, *partitions, name="one"):
        producer_id, epoch = identity
        answer = self.ask(
            self.transactions.add_partitions,
            24,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[{"name": "t", "partitions": list(partitions)}],
        )
        return {
            part.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        }

    def put(self, identity, value, sequence, partition=0, name="one"):
        encoded = records(1, value, producer=(*identity, sequence), transactional=True)
        topics = by_topic(
            [(TopicPartition("t", partition), {"records": encoded})], partitions="partition_data", index="index"
        )
        answer = self.ask(self.data.produce, 0, transactional_id=name, acks=-1, timeout_ms=1_000, topic_data=topics)
        return answer.responses[0].partition_responses[0].error_code

    def end(self, identity, *, commit, name="one"):
        producer_id, epoch = identity
        values = {"transactional_id": name, "producer_id": producer_id, "producer_epoch": epoch, "committed": commit}
        return self.ask(self.transactions.end, 26, **values).error_code

    def add_offsets(self, identity, group, name="one"):
        values = {"transactional_id": name, "group_id": group}
        producer_id, epoch = identity
        return self.ask(
            self.transactions.add_offsets, 25, producer_id=producer_id, producer_epoch=epoch, **values
        ).error_code

    def commit_offset(self, identity, group, offset, name="one", **member):
        """Commit the offset of the first log partition with a transaction; ``member`` says for whom."""
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        producer_id, epoch = identity
        values = {"transactional_id": name, "group_id": group, "producer_id": producer_id, "producer_epoch": epoch}
        topics = [{"name": "t", "partitions": [part]}]
        return (
            self.ask(self.groups.txn_offset_commit, 28, topics=topics, **values, **member)
            .topics[0]
            .partitions[0]
            .error_code
        )

    def commit_plainly(self, group, offset):
        """Commit the offset of the first log partition; the error."""
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        values = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        topics = [{"name": "t", "partitions": [part]}]
        return self.ask(self.groups.offset_commit, 8, 9, topics=topics, **values).topics[0].partitions[0].error_code

    def delete(self, *groups):
        """Delete groups; the error of each."""
        answer = self.ask(self.groups.delete_groups, 42, groups_names=list(groups))
        return {row.group_id: row.error_code for row in answer.results}

    def listed(self):
        """The groups that it lists."""
        return [row.group_id for row in self.ask(self.groups.list_groups, 16).groups]

    def offset_of(self, group, *, stable=True):
        """The error and the offset that a group is told."""
        groups = [{"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}]
        answer = self.ask(self.groups.offset_fetch, 9, groups=groups, require_stable=stable)
        part = answer.groups[0].topics[0].partitions[0]
        return part.error_code, part.committed_offset

    def fetch(self, *, committed, offset=0, partition=0):
        """The partition's part of a fetch's answer."""
        part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1_000_000}
        asked = self.ask(
            self.data.fetch,
            1,
            12,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1_000_000,
            isolation_level=int(committed),
            topics=[{"topic": "t", "partitions": [part]}],
        )
        return asked.responses[0].partitions[0]

    def latest(self, *, committed):
        """The end that ListOffsets names."""
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        asked = self.ask(self.data.list_offsets, 2, replica_id=-1, isolation_level=int(committed), topics=topics)
        return asked.topics[0].partitions[0].offset


def batches_in(part):
    """The batches in a fetch's answer."""
    return list(split(part.records, verify=True))
