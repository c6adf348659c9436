"""Groups at a broker: finds coordinators, drives the state machine of :mod:`membership`, stores offsets.

A broker coordinates the groups whose partition of ``__consumer_offsets`` it leads, once it has read that partition.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

from harness.reference.core import messages as core
from harness.reference.core.partition import Replica
from harness.reference.core.types import ACKS_ALL, NONE, ErrorCode, Image, NodeId, TopicConfig, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.handlers import committed
from harness.reference.server.handlers.gateway import Gateway, Reply
from harness.reference.server.handlers.membership import Answers, Groups, MemberRequest, refused
from harness.reference.server.runtime import now_us
from harness.reference.server.storage.batches import parse_incoming

#: How long an append of offsets may take, as offsets.commit.timeout.ms of Kafka.
COMMIT_TIMEOUT_MS: Final = 5_000
#: How often sessions and joinings are looked at.
TICK_S: Final = 0.05
#: Bytes of the internal topic read at once while loading, so that other requests are served in between.
LOAD_BYTES: Final = 262_144
_STORAGE_ERRORS: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

CreateTopic = Callable[[plain.NewTopic, TopicConfig, Reply], None]


class GroupRequests:
    """Everything about groups at one broker."""

    def __init__(
        self,
        node: NodeId,
        gateway: Gateway,
        image: Callable[[], Image],
        *,
        replicas: Mapping[TopicPartition, Replica],
        create_topic: CreateTopic,
    ) -> None:
        self._node = node
        self._gateway = gateway
        self._image = image
        self._replicas = replicas
        self._create_topic = create_topic
        self._creating = False
        self._groups = Groups(time.time_ns())
        self._store = committed.OffsetStore()
        self._epochs: dict[TopicPartition, int] = {}  # led, and under which epoch
        self._loaded: set[TopicPartition] = set()
        self._tickets = count()
        self._waiting: dict[int, Reply] = {}
        self._ticking: asyncio.TimerHandle | None = None

    # --- requests --------------------------------------------------------------------------------------------------

    def find_coordinator(self, _sender: NodeId, request: plain.FindCoordinatorRequest, reply: Reply) -> None:
        """The leader of the group's partition. The internal topic is made the first time anybody asks."""
        reply(plain.FindCoordinatorResponse(tuple(self._find(request.kind, key) for key in request.keys)))

    def member(self, _sender: NodeId, request: MemberRequest, reply: Reply) -> None:
        """JoinGroup, SyncGroup, Heartbeat and LeaveGroup, which only the group's coordinator answers."""
        if error := self._refusal(request.group):
            reply(refused(request, error))
        else:
            self._answer(self._groups.handle(now_us(), request, self._ticket(reply)))

    def offset_commit(self, _sender: NodeId, request: plain.OffsetCommitRequest, reply: Reply) -> None:
        """OffsetCommit: acknowledged when the record that says it is on every in-sync replica."""
        error = self._refusal(request.group) or self._groups.commit_error(
            now_us(), request.group, request.member, request.generation
        )
        if not error and not self._store.has_room(request.group):
            error = ErrorCode.INVALID_GROUP_ID
        image = self._image()
        known = [(request.group, at, offset) for at, offset in request.offsets if image.partition(at) is not None]
        if error or not known:
            error = error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            reply(plain.OffsetCommitResponse(tuple((at, error) for at, _ in request.offsets)))
        else:
            self._append(request, known, reply)

    def offset_fetch(self, _sender: NodeId, request: plain.OffsetFetchRequest, reply: Reply) -> None:
        """OffsetFetch: what was committed, from memory."""
        reply(plain.OffsetFetchResponse(tuple(self._offsets_of(wanted) for wanted in request.groups)))

    # --- being coordinator -----------------------------------------------------------------------------------------

    def look_at_leadership(self) -> None:
        """After every change of metadata: take over partitions of the internal topic, give others up."""
        for number in range(committed.OFFSETS_PARTITIONS):
            at = TopicPartition(committed.OFFSETS_TOPIC, number)
            replica = self._replicas.get(at)
            epoch = replica.leader_epoch if replica is not None and replica.leading else NONE
            if epoch == self._epochs.get(at, NONE):
                continue
            self._epochs[at] = epoch
            self._loaded.discard(at)
            self._store.forget(at)
            self._answer(self._groups.abandon(lambda group, at=at: committed.partition_of(group) != at))  # type: ignore[misc]
            if replica is not None and epoch != NONE:
                self._load(at, replica, epoch, replica.log.start_offset)

    def _load(self, at: TopicPartition, replica: Replica, epoch: int, offset: int) -> None:
        """Read on from ``offset``; in pieces, and only as long as this broker leads in ``epoch``."""
        if self._epochs.get(at) != epoch:
            return
        end = replica.log.end_offset
        for batch in replica.log.read(offset, end, LOAD_BYTES):
            for commit in committed.decode_commits(batch):
                self._store.put(*commit)
            offset = batch.next_offset
        if offset >= end:
            self._loaded.add(at)
        else:
            asyncio.get_running_loop().call_soon(self._load, at, replica, epoch, offset)

    def _refusal(self, group: str) -> ErrorCode:
        if not group:
            return ErrorCode.INVALID_GROUP_ID
        at = committed.partition_of(group)
        if self._epochs.get(at, NONE) == NONE:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE if at in self._loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _find(self, kind: int, key: str) -> plain.Coordinator:
        if kind != 0:
            return plain.Coordinator(key, ErrorCode.INVALID_REQUEST)
        image = self._image()
        state = image.partition(committed.partition_of(key))
        if state is None:
            self._create_internal(image)
        leader = None if state is None else image.brokers.get(state.leader)
        if state is None or leader is None or leader.fenced:
            return plain.Coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return plain.Coordinator(key, ErrorCode.NONE, state.leader, leader.host, leader.port)

    def _create_internal(self, image: Image) -> None:
        if self._creating or not image.brokers:
            return
        self._creating = True
        replication = min(committed.OFFSETS_REPLICATION, len(image.brokers))
        topic = plain.NewTopic(committed.OFFSETS_TOPIC, committed.OFFSETS_PARTITIONS, replication)
        self._create_topic(topic, TopicConfig(), lambda _: setattr(self, "_creating", False))

    # --- answers and time ------------------------------------------------------------------------------------------

    def _ticket(self, reply: Reply) -> int:
        ticket = next(self._tickets)
        self._waiting[ticket] = reply
        if self._ticking is None:
            self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        return ticket

    def _answer(self, answers: Answers) -> None:
        for ticket, response in answers:
            self._waiting.pop(ticket)(response)

    def _tick(self) -> None:
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._answer(self._groups.expire(now_us()))

    # --- offsets ---------------------------------------------------------------------------------------------------

    def _append(self, request: plain.OffsetCommitRequest, known: list[committed.Commit], reply: Reply) -> None:
        batch = parse_incoming(committed.encode_commits(known, time.time_ns() // 1_000_000))
        at = committed.partition_of(request.group)
        produce = core.Produce(0, at, ACKS_ALL, COMMIT_TIMEOUT_MS, batch)

        def appended(answer: core.ProduceResponse) -> None:
            error = _STORAGE_ERRORS.get(answer.error, answer.error)
            if not error:
                for commit in known:
                    self._store.put(*commit)
            kept = {at for _, at, _ in known}
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            reply(
                plain.OffsetCommitResponse(tuple((at, error if at in kept else missing) for at, _ in request.offsets))
            )

        self._gateway.ask_numbered(self._node, produce, appended)

    def _offsets_of(self, wanted: plain.WantedOffsets) -> plain.FetchedOffsets:
        error = self._refusal(wanted.group)
        offsets = self._store.get(wanted.group) if not error else {}
        partitions = tuple(offsets) if wanted.partitions is None else wanted.partitions
        return plain.FetchedOffsets(wanted.group, error, tuple((at, offsets.get(at)) for at in partitions))
