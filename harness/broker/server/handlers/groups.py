"""Groups at a broker: drives the state machine of :mod:`membership`, stores offsets.

A broker coordinates the groups whose partition of ``__consumer_offsets`` it leads, once it has read that partition.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from harness.broker.core import messages as core
from harness.broker.core.replica import Replica
from harness.broker.core.types import ACKS_ALL, NONE, OFFSETS_TOPIC, ErrorCode, Image, NodeId, TopicPartition
from harness.broker.server.codec.wire import Fields, by_partition, by_topic
from harness.broker.server.handlers import committed
from harness.broker.server.handlers.gateway import Call, Gateway, Gather
from harness.broker.server.handlers.group_table import Groups
from harness.broker.server.handlers.membership import Answers, State, refused
from harness.broker.server.runtime import now_us
from harness.broker.server.storage.batches import parse_incoming

#: Longest time for an append of offsets, as offsets.commit.timeout.ms of Kafka.
COMMIT_TIMEOUT_MS: Final = 5_000
#: Pause between looks at sessions and joinings.
TICK_S: Final = 0.05
#: Bytes of the internal topic read at once while loading, so that other requests are served in between.
LOAD_BYTES: Final = 262_144
#: From this version on, the offsets of several groups are asked for at once.
_FETCH_SEVERAL: Final = 8
#: From this version on, stable offsets may be asked for (KIP-447).
_FETCH_STABLE: Final = 7
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
    """Everything about groups at one broker: membership in memory, offsets in the internal topic.

    The core is asked as ``sender``, a number of this broker's own.
    """

    def __init__(
        self,
        sender: NodeId,
        gateway: Gateway,
        image: Callable[[], Image],
        *,
        replicas: Mapping[TopicPartition, Replica],
    ) -> None:
        self._sender = sender
        self._gateway = gateway
        self._image = image
        self._replicas = replicas
        self._groups = Groups(time.time_ns())
        self._store = committed.OffsetStore()
        #: Commits of transactions that are on their way to the log: from then on they are pending.
        self._arriving: Counter[tuple[str, TopicPartition]] = Counter()
        self._epochs: dict[TopicPartition, int] = {}  # led, and under which epoch
        self._loaded: set[TopicPartition] = set()
        self._ticking = False

    # --- requests --------------------------------------------------------------------------------------------------

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
        error = self._refusal(request.group_id) or self._groups.commit_error(
            now_us(), request.group_id, request.member_id, request.generation_id_or_member_epoch
        )
        self._commit(call, error, None)

    def txn_offset_commit(self, call: Call) -> None:
        """TxnOffsetCommit: the same, but it counts with the producer's transaction (rule 46).

        It does not wait for an assignment that is under way. A client from before KIP-447 names no member.
        """
        request = call.request
        error = self._refusal(request.group_id)
        if not error and (request.member_id or request.generation_id != NONE):
            error = self._groups.commit_error(now_us(), request.group_id, request.member_id, request.generation_id)
            if error is ErrorCode.REBALANCE_IN_PROGRESS:
                error = ErrorCode.NONE
        self._commit(call, error, (request.producer_id, request.producer_epoch))

    def _commit(self, call: Call, error: ErrorCode, producer: committed.Producer | None) -> None:
        request, group = call.request, call.request.group_id
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
            self._append(group, commits, producer, reply)
        else:
            reply(ErrorCode.NONE)

    def offset_fetch(self, call: Call) -> None:
        """OffsetFetch: what was committed, from memory; offset -1 where nothing is.

        A reader of committed records asks for what is stable: none that an open transaction may supersede (rule 46).
        """
        request = call.request
        stable = call.header.version >= _FETCH_STABLE and request.require_stable
        if call.header.version < _FETCH_SEVERAL:
            call.reply(self._fetched(request, stable=stable))
            return
        groups = [{"group_id": group.group_id, **self._fetched(group, stable=stable)} for group in request.groups]
        call.reply({"groups": groups})

    def delete_groups(self, call: Call) -> None:
        """DeleteGroups: a group is gone once all its offsets are deleted on every in-sync replica (rule 56)."""
        names = call.request.groups_names
        gather = Gather(len(names), lambda rows: call.reply({"results": rows}))

        def put(index: int, name: str, error: ErrorCode) -> None:
            gather.put(index, {"group_id": name, "error_code": error})

        for index, name in enumerate(names):
            self._delete(name, partial(put, index, name))

    def _delete(self, name: str, reply: Callable[[ErrorCode], None]) -> None:
        partitions = self._store.get(name).partitions()
        unavailable = self._unavailable(committed.partition_of(name))
        error = unavailable or self._groups.delete(name, remembered=bool(partitions))
        if error or not partitions:
            reply(error)
        else:
            self._append(name, dict.fromkeys(sorted(partitions)), None, reply)

    def offset_delete(self, call: Call) -> None:
        """OffsetDelete: the same for some of a group's offsets, but not of topics that members read (rule 56)."""
        name, asked = call.request.group_id, [partition for partition, _ in by_partition(call.request.topics)]
        remembered, image = self._store.get(name).partitions(), self._image()
        error = self._refusal(name)
        if not error and not remembered and name not in self._groups.groups:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        refusals = {each: self._groups.offset_deletion_error(name, each.topic) for each in asked}
        if ErrorCode.NON_EMPTY_GROUP in refusals.values():
            error = error or ErrorCode.NON_EMPTY_GROUP
        refusals |= {each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for each in asked if image.partition(each) is None}

        def reply(error: ErrorCode) -> None:
            rows = ((each, {"error_code": refusals[each]}) for each in asked)
            call.reply({"error_code": error, "topics": [] if error else by_topic(rows)})

        doomed = [] if error else [each for each in asked if not refusals[each] and each in remembered]
        if doomed:
            self._append(name, dict.fromkeys(doomed), None, reply)
        else:
            reply(error)

    # --- transactions ---------------------------------------------------------------------------------------------

    def write_marker(self, message: core.WriteTxnMarkers, answered: Callable[[core.ProduceResponse], None]) -> None:
        """Have a marker written to a partition of the internal topic: the producer's commits count then, or are gone.

        The core's own coordinator of groups is not asked: it would take this log for its own.
        """
        partition, batch = message.partition, message.batch
        error = self._unavailable(partition)
        if error:
            answered(core.ProduceResponse(0, partition, error))
            return

        def written(answer: core.ProduceResponse) -> None:
            if not answer.error and batch.marker is not None:
                self._store.end(partition, batch.producer_id, commit=batch.marker.commit)
            answered(answer)

        self._gateway.ask(self._sender, core.Produce(0, partition, message.acks, message.timeout_ms, batch), written)

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
            self._store.load(partition, batch)
            offset = batch.next_offset
        if offset >= end:
            self._loaded.add(partition)
        else:
            asyncio.get_running_loop().call_soon(self._load, partition, replica, epoch, offset)

    def _refusal(self, group: str) -> ErrorCode:
        if not group:
            return ErrorCode.INVALID_GROUP_ID
        return self._unavailable(committed.partition_of(group))

    def _unavailable(self, partition: TopicPartition) -> ErrorCode:
        if self._epochs.get(partition, NONE) == NONE:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE if partition in self._loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

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
        commits: Mapping[TopicPartition, committed.CommittedOffset | None],
        producer: committed.Producer | None,
        reply: Callable[[ErrorCode], None],
    ) -> None:
        batch = parse_incoming(committed.encode_commits(group, commits, time.time_ns() // 1_000_000, producer))
        produce = core.Produce(0, committed.partition_of(group), ACKS_ALL, COMMIT_TIMEOUT_MS, batch)
        arriving = Counter((group, partition) for partition in commits) if batch.transactional else Counter()
        self._arriving += arriving

        def appended(answer: core.ProduceResponse) -> None:
            self._arriving -= arriving
            if not answer.error:
                self._store.put(group, commits, answer.base_offset, batch.producer_id)
            reply(_STORAGE_ERRORS.get(answer.error, answer.error))

        self._gateway.ask(self._sender, produce, appended)

    def _fetched(self, wanted: Any, *, stable: bool) -> Fields:
        """The committed offsets of one group; no topics (null) means all of them."""
        error = self._refusal(wanted.group_id)
        offsets = self._store.get("" if error else wanted.group_id)
        partitions = (
            list(offsets.everything())
            if wanted.topics is None
            else [TopicPartition(topic.name, number) for topic in wanted.topics for number in topic.partition_indexes]
        )
        rows = []
        for partition in partitions:
            pending = offsets.unstable((partition,)) or (wanted.group_id, partition) in self._arriving
            unstable = stable and pending
            offset = _NOTHING if unstable else offsets.of(partition, _NOTHING)
            rows.append(
                (
                    partition,
                    {
                        "committed_offset": offset.offset,
                        "committed_leader_epoch": offset.leader_epoch,
                        "metadata": offset.metadata,
                        "error_code": ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else error,
                    },
                )
            )
        return {"topics": by_topic(rows), "error_code": error}
