"""A broker: the core, its logs, its connections and the requests of its clients, put together."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from harness.broker.core import messages as core
from harness.broker.core.broker import Broker
from harness.broker.core.types import CONTROLLER, NodeId, TopicPartition
from harness.broker.server.codec.follower import FollowerRequest, LeaderRequest
from harness.broker.server.codec.wire import ApiKey, TopicIds
from harness.broker.server.config import NodeConfig, spoken
from harness.broker.server.control_socket import describe_image
from harness.broker.server.handlers.coordinators import Coordinators
from harness.broker.server.handlers.data import DataRequests
from harness.broker.server.handlers.gateway import Call, Gateway
from harness.broker.server.handlers.groups import GroupRequests
from harness.broker.server.handlers.metadata_and_topics import ClusterRequests
from harness.broker.server.handlers.reports import Reports
from harness.broker.server.handlers.transactions import TransactionRequests
from harness.broker.server.links import NodeLinks
from harness.broker.server.peers import ControllerLink, LeaderLink
from harness.broker.server.runtime import Runtime, now_us
from harness.broker.server.sessions import RequestSession
from harness.broker.server.storage.checkpoints import CleanShutdown
from harness.broker.server.storage.log import FileLog
from harness.broker.server.trace import TraceFile

log = logging.getLogger(__name__)

#: Longest wait of a broker that is asked to stop until its leaderships have moved away.
LEAVE_LIMIT_S: Final = 3.0


class Logs:
    """The logs of one broker, by partition, each in a directory that also names the topic's identity.

    So a topic that was made again while this broker was down does not get the records of its predecessor.
    """

    def __init__(self, directory: Path, identity: Callable[[str], int]) -> None:
        self._directory = directory
        self._identity = identity
        self.opened: dict[TopicPartition, FileLog] = {}

    def make(self, partition: TopicPartition) -> FileLog:
        """Open the log of ``partition``, recovering it, and forget those of earlier topics of that name."""
        earlier = self.opened.pop(partition, None)
        if earlier is not None:
            earlier.close()
        name = f"{partition}@{self._identity(partition.topic)}"
        for stale in self._directory.glob(f"{partition}@*"):
            if stale.name != name:
                shutil.rmtree(stale)
        made = self.opened[partition] = FileLog(self._directory / name)
        if made.damage is not None:
            log.warning("%s was cut at offset %d: %s", partition, made.end_offset, made.damage)
        return made

    def close(self) -> None:
        """Close all of them cleanly."""
        for opened in self.opened.values():
            opened.close()


class BrokerServer:
    """One broker process's inside. ``links`` are its connections, ``sessions`` appear as clients connect."""

    def __init__(self, config: NodeConfig, trace: TraceFile, links: NodeLinks) -> None:
        self._config = config
        self._links = links
        self._ids = TopicIds()
        self._image_version = 0
        self._logs = Logs(Path(config.directory), self._identity)
        self._clean_shutdown = CleanShutdown(Path(config.directory))
        self._core = Broker(
            config.node,
            spoken(config.broker),
            self._logs.make,
            time.time_ns(),
            config.host,
            config.port,
            rack=config.rack,
            previous_epoch=self._clean_shutdown.take(),
        )
        self._runtime = Runtime(self._core, self._send, trace, self._learn_image)
        self._gateway = Gateway(self._runtime.deliver)
        self._leaders: dict[NodeId, LeaderLink] = {}
        # Markers wait to be committed, and answers come in order, so a follower's fetches are not behind them.
        self._marking: dict[NodeId, LeaderLink] = {}
        self._stopped = False
        self._controller = ControllerLink(
            links,
            config.node,
            CONTROLLER,
            (config.controller_host, config.controller_port),
            deliver=lambda message: self._runtime.deliver(CONTROLLER, message),
            lost=lambda: self._on_lost(CONTROLLER),
        )
        data = DataRequests(self._gateway, self._logs.opened, self._ids)
        cluster = ClusterRequests(config, self._gateway, lambda: self._core.image, self._ids)
        # What the core sends to this broker's own number is for the core, so the handlers ask under another one.
        coordinators = Coordinators(links.next_anonymous(), lambda: self._core.image, cluster, config.topics)
        groups = GroupRequests(self._gateway, self._core)
        transactions = TransactionRequests(self._gateway, lambda: self._core.image, coordinators)
        reports = Reports(lambda: self._core.image, self._core.replicas, lambda: self._core.transactional_ids)
        self._handlers: dict[int, Callable[[Call], None]] = {
            ApiKey.PRODUCE: data.produce,
            ApiKey.FETCH: data.fetch,
            ApiKey.LIST_OFFSETS: data.list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: data.offset_for_leader_epoch,
            ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets,
            ApiKey.END_TXN: transactions.end,
            ApiKey.WRITE_TXN_MARKERS: transactions.write_markers,
            ApiKey.TXN_OFFSET_COMMIT: groups.txn_offset_commit,
            ApiKey.API_VERSIONS: cluster.api_versions,
            ApiKey.METADATA: cluster.metadata,
            ApiKey.CREATE_TOPICS: cluster.create_topics,
            ApiKey.DELETE_TOPICS: cluster.delete_topics,
            ApiKey.DESCRIBE_CONFIGS: cluster.describe_configs,
            ApiKey.FIND_COORDINATOR: coordinators.find,
            ApiKey.JOIN_GROUP: groups.join,
            ApiKey.SYNC_GROUP: groups.sync,
            ApiKey.HEARTBEAT: groups.heartbeat,
            ApiKey.LEAVE_GROUP: groups.leave,
            ApiKey.LIST_GROUPS: groups.list_groups,
            ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
            ApiKey.OFFSET_COMMIT: groups.offset_commit,
            ApiKey.OFFSET_FETCH: groups.offset_fetch,
            ApiKey.DELETE_GROUPS: groups.delete_groups,
            ApiKey.OFFSET_DELETE: groups.offset_delete,
            ApiKey.DESCRIBE_PRODUCERS: reports.describe_producers,
            ApiKey.DESCRIBE_TRANSACTIONS: reports.describe_transactions,
            ApiKey.LIST_TRANSACTIONS: reports.list_transactions,
        }

    def start(self) -> None:
        """Register with the controller."""
        self._runtime.start()

    def protocol(self) -> asyncio.Protocol:
        """The receiving end of a new connection."""
        return RequestSession(self._links, lambda call: self._handlers[call.header.api_key](call)).connection

    def status(self) -> dict[str, Any]:
        """This broker's image and logs, for the control socket."""
        replicas = self._core.replicas
        return {
            "broker_epoch": self._core.broker_epoch,
            "fenced": self._core.session.fenced,
            "image": describe_image(self._core.image),
            "logs": {
                str(partition): {
                    "end_offset": replica.log.end_offset,
                    "high_watermark": replica.high_watermark,
                    "leading": replica.leading,
                    "leader_epoch": replica.leader_epoch,
                    "isr": replica.isr if replica.leading else None,
                }
                for partition, replica in replicas.items()
            },
        }

    def move_leader(self, partition: str, leader: NodeId) -> str:
        """The refusal of a broker, as only the controller moves leaders."""
        return f"broker {self._config.node} does not move {partition} to broker {leader}; ask the controller"

    async def stop(self) -> None:
        """Hand leaderships over as far as that is possible in time, then close the logs cleanly."""
        self._runtime.do(self._core.leave)
        limit_us = now_us() + int(LEAVE_LIMIT_S * 1e6)
        while not self._core.session.may_leave and now_us() < limit_us:
            await asyncio.sleep(0.02)
        self._runtime.close()
        self._stopped = True
        for replica in self._core.replicas.values():
            replica.log.checkpoint_high_watermark(replica.high_watermark)
        self._logs.close()
        self._clean_shutdown.write(self._core.broker_epoch)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _send(self, target: NodeId, message: core.Message) -> None:
        if target == CONTROLLER:
            self._controller.send(message)
        elif target == self._config.node:
            asyncio.get_running_loop().call_soon(self._take_own, message)
        elif isinstance(message, core.WriteTxnMarkers):
            self._ask_leader(self._marking, target, message, lambda _: None)  # Markers are sent again in time.
        elif isinstance(message, FollowerRequest):
            self._ask_leader(self._leaders, target, message, self._on_lost)
        else:
            self._gateway.answered(message)

    def _take_own(self, message: core.Message) -> None:
        """Give the core a message of its own: a coordinator leads the log that it writes to."""
        if not self._stopped:
            self._runtime.deliver(self._config.node, message)

    def _ask_leader(
        self,
        opened: dict[NodeId, LeaderLink],
        leader: NodeId,
        request: LeaderRequest,
        lost: Callable[[NodeId], None],
    ) -> None:
        broker = self._core.image.brokers.get(leader)
        if broker is None:
            return
        link = opened.get(leader)
        if link is None:
            link = opened[leader] = LeaderLink(
                self._links,
                self._config.node,
                leader,
                self._ids,
                deliver=self._runtime.deliver,
                lost=lost,
            )
        link.send((broker.host, broker.port), request)

    def _on_lost(self, peer: NodeId) -> None:
        self._runtime.do(lambda now: self._core.on_disconnect(now, peer))

    def _learn_image(self) -> None:
        image = self._core.image
        if image.version != self._image_version:
            self._image_version = image.version
            self._ids.learn(image.topics)

    def _identity(self, topic: str) -> int:
        return self._core.image.topics[topic].identity
