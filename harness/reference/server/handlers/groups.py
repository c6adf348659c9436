"""Groups at a broker: finds coordinators, drives the state machine of :mod:`membership`, stores offsets.

A broker coordinates the groups whose partition of ``__consumer_offsets`` it leads, once it has read that partition.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.reference.core import messages as core
from harness.reference.core.replica import Replica
from harness.reference.core.types import ACKS_ALL, NONE, OFFSETS_TOPIC, ErrorCode, Image, NodeId, TopicPartition
from harness.reference.server.codec.wire import Fields, by_partition, by_topic
from harness.reference.server.handlers import committed
from harness.reference.server.handlers.gateway import Call, Gateway
from harness.reference.server.handlers.membership import Answers, Groups, State, refused
from harness.reference.server.handlers.metadata_and_topics import ClusterRequests
from harness.reference.server.runtime import now_us
from harness.reference.server.storage.batches import parse_incoming

#: Longest time for an append of offsets, as offsets.commit.timeout.ms of Kafka.
COMMIT_TIMEOUT_MS: Final = 5_000
#: Pause between looks at sessions and joinings.
TICK_S: Final = 0.05
#: Bytes of the internal topic read at once while loading, so that other requests are served in between.
LOAD_BYTES: Final = 262_144
#: From these versions on, several coordinators are asked for at once, and the offsets of several groups.
_FIND_SEVERAL: Final = 4
_FETCH_SEVERAL: Final = 8
#: The only kind of group here, as ListGroups calls it (KIP-848).
_CLASSIC: Final = "classic"
_NOTHING: Final = committed.CommittedOffset(NONE)
_STORAGE_ERRORS: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class GroupRequests:
    """Everything about groups at one broker: membership in memory, offsets in the internal topic."""

    def __init__(
        self,
        node: NodeId,
        gateway: Gateway,
        image: Callable[[], Image],
        *,
        replicas: Mapping[TopicPartition, Replica],
        cluster: ClusterRequests,
    ) -> None:
        self._node = node
        self._gateway = gateway
        self._image = image
        self._replicas = replicas
        self._cluster = cluster
        self._creating = False
        self._groups = Groups(time.time_ns())
        self._store = committed.OffsetStore()
        self._epochs: dict[TopicPartition, int] = {}  # led, and under which epoch
        self._loaded: set[TopicPartition] = set()
        self._ticking = False

    # --- requests --------------------------------------------------------------------------------------------------

    def find_coordinator(self, call: Call) -> None:
        """The leader of the group's partition. The internal topic is made the first time anybody asks."""
        request = call.request
        if call.header.version < _FIND_SEVERAL:
            call.reply(self._find(request.key_type, request.key))
            return
        keys = request.coordinator_keys
        call.reply({"coordinators": [{"key": key, **self._find(request.key_type, key)} for key in keys]})

    def member(self, call: Call) -> None:
        """JoinGroup, SyncGroup, Heartbeat and LeaveGroup, which only the group's coordinator answers."""
        if error := self._refusal(call.request.group_id):
            call.reply(refused(call, error))
            return
        if not self._ticking:
            self._ticking = True
            self._tick()
        self._answer(self._groups.handle(now_us(), call))

    def list_groups(self, call: Call) -> None:
        """The groups that this broker coordinates; one that only has committed offsets is Empty, as in Kafka."""
        coordinated = [partition for partition, epoch in self._epochs.items() if epoch != NONE]
        loading = any(partition not in self._loaded for partition in coordinated)
        states, types = call.request.states_filter, call.request.types_filter
        rows = []
        for name in sorted(self._groups.groups.keys() | self._store.groups()):
            described = self._described(name)
            wanted = not states or described["group_state"].lower() in {state.lower() for state in states}
            if wanted and (not types or _CLASSIC in {kind.lower() for kind in types}):
                kept = {key: described[key] for key in ("group_id", "protocol_type", "group_state")}
                rows.append({**kept, "group_type": _CLASSIC})
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        call.reply({"error_code": error, "groups": [] if loading else rows})

    def describe_groups(self, call: Call) -> None:
        """State and members of groups; one that does not exist is Dead, as in Kafka."""
        call.reply({"groups": [self._described(name) for name in call.request.groups]})

    def offset_commit(self, call: Call) -> None:
        """OffsetCommit: acknowledged when its record is on every in-sync replica (rule 2)."""
        request = call.request
        group = request.group_id
        error = self._refusal(group) or self._groups.commit_error(
            now_us(), group, request.member_id, request.generation_id_or_member_epoch
        )
        if not error and not self._store.has_room(group):
            error = ErrorCode.INVALID_GROUP_ID
        asked = list(by_partition(request.topics))
        image = self._image()
        commits = {
            partition: committed.CommittedOffset(
                part.committed_offset, part.committed_leader_epoch, part.committed_metadata
            )
            for partition, part in asked
            if image.partition(partition) is not None
        }

        def reply(error: ErrorCode, of_missing: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
            rows = (
                (partition, {"error_code": error if partition in commits else of_missing}) for partition, _ in asked
            )
            call.reply({"topics": by_topic(rows)})

        if error:
            reply(error, error)
        elif commits:
            self._append(group, commits, reply)
        else:
            reply(ErrorCode.NONE)

    def offset_fetch(self, call: Call) -> None:
        """OffsetFetch: what was committed, from memory; offset -1 where nothing is."""
        request = call.request
        if call.header.version < _FETCH_SEVERAL:
            call.reply(self._fetched(request))
            return
        call.reply({"groups": [{"group_id": group.group_id, **self._fetched(group)} for group in request.groups]})

    # --- being coordinator -----------------------------------------------------------------------------------------

    def look_at_leadership(self) -> None:
        """After every change of metadata: take over partitions of the internal topic, give others up."""
        for number in range(committed.OFFSETS_PARTITIONS):
            partition = TopicPartition(OFFSETS_TOPIC, number)
            replica = self._replicas.get(partition)
            epoch = replica.leader_epoch if replica is not None and replica.leading else NONE
            if epoch == self._epochs.get(partition, NONE):
                continue
            self._epochs[partition] = epoch
            self._loaded.discard(partition)
            self._store.forget(partition)
            self._answer(self._groups.abandon(lambda group, lost=partition: committed.partition_of(group) != lost))  # type: ignore[misc]
            if replica is not None and epoch != NONE:
                self._load(partition, replica, epoch, replica.log.start_offset)

    def _load(self, partition: TopicPartition, replica: Replica, epoch: int, offset: int) -> None:
        """Read on from ``offset``; in pieces, and only as long as this broker leads in ``epoch``."""
        if self._epochs.get(partition) != epoch:
            return
        end = replica.log.end_offset
        for batch in replica.log.read(offset, end, LOAD_BYTES):
            for commit in committed.decode_commits(batch):
                self._store.put(*commit)
            offset = batch.next_offset
        if offset >= end:
            self._loaded.add(partition)
        else:
            asyncio.get_running_loop().call_soon(self._load, partition, replica, epoch, offset)

    def _refusal(self, group: str) -> ErrorCode:
        if not group:
            return ErrorCode.INVALID_GROUP_ID
        partition = committed.partition_of(group)
        if self._epochs.get(partition, NONE) == NONE:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE if partition in self._loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _find(self, kind: int, key: str) -> Fields:
        """The coordinator of a group (kind 0; others are not offered) and its address."""
        if kind != 0:
            return _no_coordinator(ErrorCode.INVALID_REQUEST)
        image = self._image()
        state = image.partition(committed.partition_of(key))
        if state is None:
            self._create_internal(image)
        leader = None if state is None else image.brokers.get(state.leader)
        if state is None or leader is None or leader.fenced:
            return _no_coordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return {"error_code": ErrorCode.NONE, "node_id": state.leader, "host": leader.host, "port": leader.port}

    def _create_internal(self, image: Image) -> None:
        if self._creating or not image.brokers:
            return
        self._creating = True
        self._cluster.create_topic(
            self._node,
            OFFSETS_TOPIC,
            lambda _: setattr(self, "_creating", False),
            partitions=committed.OFFSETS_PARTITIONS,
            replication_factor=min(committed.OFFSETS_REPLICATION, len(image.brokers)),
        )

    # --- answers and time ------------------------------------------------------------------------------------------

    def _answer(self, answers: Answers) -> None:
        for call, fields in answers:
            call.reply(fields)

    def _tick(self) -> None:
        asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._answer(self._groups.expire(now_us()))

    def _described(self, name: str) -> Fields:
        """The group as DescribeGroups shows it."""
        group, error = self._groups.groups.get(name), self._refusal(name)
        if group is not None and not error:
            return group.described()
        state = State.EMPTY.value if not error and name in self._store.groups() else "" if error else "Dead"
        return {"error_code": error, "group_id": name, "group_state": state, "protocol_type": "", "members": []}

    # --- offsets ---------------------------------------------------------------------------------------------------

    def _append(
        self,
        group: str,
        commits: Mapping[TopicPartition, committed.CommittedOffset],
        reply: Callable[[ErrorCode], None],
    ) -> None:
        batch = parse_incoming(committed.encode_commits(group, commits, time.time_ns() // 1_000_000))
        produce = core.Produce(0, committed.partition_of(group), ACKS_ALL, COMMIT_TIMEOUT_MS, batch)

        def appended(answer: core.ProduceResponse) -> None:
            if not answer.error:
                for partition, offset in commits.items():
                    self._store.put(group, partition, offset)
            reply(_STORAGE_ERRORS.get(answer.error, answer.error))

        self._gateway.ask(self._node, produce, appended)

    def _fetched(self, wanted: Any) -> Fields:
        """The committed offsets of one group; no topics (null) means all of them."""
        error = self._refusal(wanted.group_id)
        offsets = self._store.get(wanted.group_id) if not error else {}
        partitions = (
            list(offsets)
            if wanted.topics is None
            else [TopicPartition(topic.name, number) for topic in wanted.topics for number in topic.partition_indexes]
        )
        rows = []
        for partition in partitions:
            offset = offsets.get(partition, _NOTHING)
            rows.append(
                (
                    partition,
                    {
                        "committed_offset": offset.offset,
                        "committed_leader_epoch": offset.leader_epoch,
                        "metadata": offset.metadata,
                        "error_code": error,
                    },
                )
            )
        return {"topics": by_topic(rows), "error_code": error}


def _no_coordinator(error: ErrorCode) -> Fields:
    return {"error_code": error, "node_id": NONE, "host": "", "port": NONE}
