"""Moves leaders of the simulated cluster, and holds or drops its messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from harness.broker.core import messages
from harness.broker.core.controller import Controller
from harness.broker.core.messages import MoveLeader
from harness.broker.core.types import NONE, NodeId, TopicPartition
from harness.ground.errors import HarnessError
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.nodes import Process
from harness.worlds.simulated.wires import EVERY
from nemesis.cluster import CLIENTS, Link
from nemesis.evidence import LeaderMoved, LinksCut
from workloads import LogPartition

#: The node from which the harness asks for things; clients proper have larger numbers.
ADMINISTRATOR: Final = CLIENTS

#: Messages by the Kafka API that they are of, requests and responses. Between broker and controller the API of KRaft
#: is meant, also where this controller pushes its metadata instead of being fetched from.
APIS: Final[Mapping[str, tuple[type[messages.Message], ...]]] = {
    "Produce": (messages.Produce, messages.ProduceResponse),
    "Fetch": (messages.Fetch, messages.FetchResponse),
    "ListOffsets": (messages.ListOffsets, messages.ListOffsetsResponse),
    "OffsetForLeaderEpoch": (messages.OffsetForLeaderEpoch, messages.OffsetForLeaderEpochResponse),
    "Metadata": (messages.Metadata, messages.MetadataResponse),
    "InitProducerId": (messages.InitProducerId, messages.InitProducerIdResponse),
    "AddPartitionsToTxn": (messages.AddPartitionsToTxn, messages.AddPartitionsToTxnResponse),
    "EndTxn": (messages.EndTxn, messages.EndTxnResponse),
    "WriteTxnMarkers": (messages.WriteTxnMarkers,),
    "ConsumerGroupHeartbeat": (messages.ConsumerGroupHeartbeat, messages.ConsumerGroupHeartbeatResponse),
    "JoinGroup": (messages.GroupJoin, messages.GroupJoinResponse),
    "SyncGroup": (messages.GroupSync, messages.GroupSyncResponse),
    "Heartbeat": (messages.GroupHeartbeat, messages.GroupHeartbeatResponse),
    "LeaveGroup": (messages.GroupLeave, messages.GroupLeaveResponse),
    "OffsetCommit": (messages.OffsetCommit, messages.OffsetCommitResponse),
    "TxnOffsetCommit": (messages.TxnOffsetCommit, messages.TxnOffsetCommitResponse),
    "DeleteGroups": (messages.DeleteGroup, messages.DeleteGroupResponse),
    "OffsetDelete": (messages.DeleteOffsets, messages.DeleteOffsetsResponse),
    "OffsetFetch": (messages.OffsetFetch, messages.OffsetFetchResponse),
    "CreateTopics": (messages.CreateTopic, messages.TopicResponse),
    "DeleteTopics": (messages.DeleteTopic, messages.TopicResponse),
    "ElectLeaders": (messages.MoveLeader, messages.TopicResponse),
    "BrokerRegistration": (messages.RegisterBroker, messages.RegisterBrokerResponse),
    "BrokerHeartbeat": (messages.Heartbeat, messages.HeartbeatResponse),
    "UpdateMetadata": (messages.MetadataUpdate,),
    "AlterPartition": (messages.AlterPartition, messages.AlterPartitionResponse),
    "LogEnd": (messages.LogEnd, messages.LogEndResponse),
    "AllocateProducerIds": (messages.AllocateProducerIds, messages.AllocateProducerIdsResponse),
}


class SimulatedLeadership:
    """Implements :class:`nemesis.cluster.Leadership`. ``controller`` gives the newest process and its core."""

    def __init__(self, controller: Callable[[], tuple[Process, Controller]]) -> None:
        self._controller = controller

    def move_leader(self, partition: str, broker: int) -> LeaderMoved:
        """Have the controller elect ``broker``."""
        process, core = self._controller()
        log_partition = TopicPartition(*LogPartition.named(partition))
        if not process.alive or process.frozen:
            return {"refused": "the controller does not run"}
        before = core.image.partition(log_partition)
        process.receive(ADMINISTRATOR, MoveLeader(0, log_partition.topic, log_partition.partition, NodeId(broker)))
        state = core.image.partition(log_partition)
        if state is None:
            return {"refused": f"{partition} does not exist"}
        evidence: LeaderMoved = {"leader": state.leader, "leader_epoch": state.leader_epoch}
        if state.leader == NONE and state is not before:
            evidence["election"] = (
                "the old leader leads no more; the logs are compared before any broker does (rules 27, 28)"
            )
        elif state.leader != broker:
            evidence["refused"] = f"broker {broker} is not a live member of the ISR {list(state.isr)}"
        return evidence


class SimulatedMessages:
    """Implements :class:`nemesis.cluster.Messages`: each message is looked at when it is sent."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def hold(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Hold messages back when they are sent."""
        return self._filter(links, api, "hold", keeps=True)

    def delay(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Hold the first message of each link when it is sent."""
        return self._filter(links, api, "delay", keeps=True, most=1)

    def drop(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Drop messages when they are sent."""
        return self._filter(links, api, "drop", keeps=False)

    def release(self, links: Collection[Link], action: str = "", api: str = "") -> LinksCut:
        """See :meth:`Messages.release`; what is held at a link that is cut by now is lost or delayed with the rest."""
        ended = self._network.release(links, f"{action} {api}" if action else "")
        if not ended:
            return {}
        return {"held": sum(len(gone.held) for gone in ended), "dropped": sum(gone.dropped for gone in ended)}

    def release_one(self, link: Link, *, newest: bool) -> LinksCut:
        """Deliver one message that ``link`` holds."""
        released = self._network.release_one(link, newest=newest)
        return {} if released is None else {"released": type(released).__name__}

    def _filter(self, links: Collection[Link], api: str, action: str, *, keeps: bool, most: int = EVERY) -> LinksCut:
        if api and api not in APIS:
            raise HarnessError(
                f'the reference broker has no messages of the API "{api}"; choose one of {", ".join(APIS)}'
            )
        wanted = _has_metadata if api == "UpdateMetadata" else partial(_is_one_of, APIS[api]) if api else _is_any
        self._network.filter(links, wanted, f"{action} {api}", keeps=keeps, most=most)
        return {"filtered": [f"{source}>{target}" for source, target in sorted(links)]}


def _is_one_of(kinds: tuple[type, ...], _source: int, _target: int, message: Any) -> bool:
    return type(message) in kinds


def _has_metadata(_source: int, _target: int, message: Any) -> bool:
    """The controller's metadata, also where it comes along with the answer to a heartbeat."""
    return type(message) is messages.MetadataUpdate or (
        type(message) is messages.HeartbeatResponse and message.image is not None
    )


def _is_any(_source: int, _target: int, _message: Any) -> bool:
    return True
