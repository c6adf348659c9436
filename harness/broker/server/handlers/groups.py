"""Groups at a broker: the requests of members, of who commits, and of operators, to the coordinator in the core.

Members have the classic protocol here; that of KIP-848 is not offered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from harness.broker.core import messages as core
from harness.broker.core.broker import Broker
from harness.broker.core.groups.classic import ClassicGroup, State
from harness.broker.core.groups.coordinator import ANSWERS
from harness.broker.core.groups.group import Group
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.broker.server.codec import subscribed_topics
from harness.broker.server.codec.wire import Fields, by_partition, by_topic
from harness.broker.server.handlers.gateway import Call, Gateway, Gather

#: Longest wait for offsets to be on the log, or for those of others to be: offsets.commit.timeout.ms of Kafka.
OFFSETS_LIMIT_S: Final = 5.0
#: From these versions on: a member gets its id before it joins (KIP-394), the protocol's name may be null, several
#: members leave at once.
_JOIN_NAMED: Final = 4
_JOIN_TYPED: Final = 7
_LEAVE_SEVERAL: Final = 3
#: From this version on, the offsets of several groups are asked for at once.
_FETCH_SEVERAL: Final = 8
#: From this version on, stable offsets may be asked for (KIP-447).
_FETCH_STABLE: Final = 7
#: The only kind of group here, as ListGroups calls it (KIP-848).
_CLASSIC: Final = "classic"


class GroupRequests:
    """The requests about groups. What they mean is the core's to judge; this ``broker`` is it."""

    def __init__(self, gateway: Gateway, broker: Broker) -> None:
        self._gateway = gateway
        self._broker = broker

    # --- members ---------------------------------------------------------------------------------------------------

    def join(self, call: Call) -> None:
        """JoinGroup: answered when the group's next generation begins."""
        request = call.request

        def reply(answer: core.GroupJoinResponse) -> None:
            named = answer.protocol is not None or call.header.version >= _JOIN_TYPED
            call.reply(
                {
                    "error_code": answer.error,
                    "generation_id": answer.generation,
                    "protocol_type": answer.protocol_type,
                    "protocol_name": answer.protocol if named else "",
                    "leader": answer.leader,
                    "member_id": answer.member or request.member_id,
                    "members": [{"member_id": name, "metadata": metadata} for name, metadata in answer.members],
                }
            )

        question = core.GroupJoin(
            0,
            request.group_id,
            request.member_id,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            offers=tuple(_offer(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
            named_first=call.header.version >= _JOIN_NAMED,
            client_id=call.header.client_id or "",
            client_host=call.client_host,
        )
        self._gateway.ask(call.sender, question, reply)

    def sync(self, call: Call) -> None:
        """SyncGroup: answered when the leader's assignments are on every in-sync replica."""
        request = call.request

        def reply(answer: core.GroupSyncResponse) -> None:
            protocol = {"protocol_type": answer.protocol_type, "protocol_name": answer.protocol}
            call.reply({"error_code": answer.error, **protocol, "assignment": answer.assignment})

        assignments = tuple((row.member_id, bytes(row.assignment)) for row in request.assignments)
        question = core.GroupSync(0, request.group_id, request.member_id, request.generation_id, assignments)
        self._gateway.ask(call.sender, question, reply)

    def heartbeat(self, call: Call) -> None:
        """Heartbeat: a member is alive, and learns whether it has to join again."""
        request = call.request
        question = core.GroupHeartbeat(0, request.group_id, request.member_id, request.generation_id)
        self._gateway.ask(call.sender, question, partial(_reply_error, call))

    def leave(self, call: Call) -> None:
        """LeaveGroup: members leave by themselves, before version 3 one."""
        request = call.request
        several = call.header.version >= _LEAVE_SEVERAL
        names = [each.member_id for each in request.members] if several else [request.member_id]

        def reply(answers: list[core.GroupLeaveResponse]) -> None:
            if several:
                rows = zip(names, answers, strict=True)
                members = [{"member_id": name, "error_code": answer.error} for name, answer in rows]
                call.reply({"error_code": ErrorCode.NONE, "members": members})
            else:
                _reply_error(call, answers[0])

        gather = Gather(len(names), reply)
        for index, name in enumerate(names):
            question = core.GroupLeave(0, request.group_id, name)
            self._gateway.ask(call.sender, question, gather.put_at(index))

    # --- what operators ask ----------------------------------------------------------------------------------------

    def list_groups(self, call: Call) -> None:
        """The groups that this broker coordinates; one that only has committed offsets is Empty, as in Kafka."""
        states = {state.lower() for state in call.request.states_filter}
        types = {kind.lower() for kind in call.request.types_filter}
        error, groups = self._broker.groups
        rows = []
        for name, group in sorted(groups.items()):
            described = _described(group)
            if (not states or described["group_state"].lower() in states) and (not types or _CLASSIC in types):
                kept = {key: described[key] for key in ("protocol_type", "group_state")}
                rows.append({"group_id": name, **kept, "group_type": _CLASSIC})
        call.reply({"error_code": error, "groups": rows})

    def describe_groups(self, call: Call) -> None:
        """State and members of groups; one that does not exist is Dead, as in Kafka."""
        call.reply({"groups": [{"group_id": name, **self._describe(name)} for name in call.request.groups]})

    def _describe(self, name: str) -> Fields:
        error, group = self._broker.group(name)
        if error or not name:
            return {"error_code": error or ErrorCode.INVALID_GROUP_ID, "group_state": ""}
        return _described(group)

    # --- offsets ---------------------------------------------------------------------------------------------------

    def offset_commit(self, call: Call) -> None:
        """OffsetCommit: acknowledged when its record is on every in-sync replica (rule 2)."""
        member = (call.request.group_id, call.request.member_id, call.request.generation_id_or_member_epoch)
        self._commit(call, lambda offsets: core.OffsetCommit(0, *member, offsets))

    def txn_offset_commit(self, call: Call) -> None:
        """TxnOffsetCommit: the same, but it counts with the producer's transaction (rule 46)."""
        request = call.request
        member = (request.group_id, request.member_id, request.generation_id)
        producer = (request.producer_id, request.producer_epoch)
        self._commit(call, lambda offsets: core.TxnOffsetCommit(0, *member, offsets, *producer))

    def _commit(self, call: Call, question: Callable[[Any], core.OffsetCommit]) -> None:
        asked = list(by_partition(call.request.topics))
        image = self._broker.image
        offsets = {
            partition: core.CommittedOffset(part.committed_offset, part.committed_leader_epoch, part.committed_metadata)
            for partition, part in asked
            if image.partition(partition) is not None
        }

        def reply(answer: core.GroupAnswer) -> None:
            of_missing = answer.error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            rows = ((each, {"error_code": answer.error if each in offsets else of_missing}) for each, _ in asked)
            call.reply({"topics": by_topic(rows)})

        self._ask_within(call, question(tuple(offsets.items())), reply)

    def offset_fetch(self, call: Call) -> None:
        """OffsetFetch: what was committed; offset -1 where nothing is.

        A reader of committed records asks for what is stable: none that an open transaction may supersede (rule 46).
        """
        request = call.request
        stable = call.header.version >= _FETCH_STABLE and request.require_stable
        if call.header.version < _FETCH_SEVERAL:
            self._fetch(call, request, stable, call.reply)
            return
        names = [group.group_id for group in request.groups]

        def reply(answers: list[Fields]) -> None:
            call.reply({"groups": [{"group_id": name, **answer} for name, answer in zip(names, answers, strict=True)]})

        gather = Gather(len(names), reply)
        for index, group in enumerate(request.groups):
            self._fetch(call, group, stable, gather.put_at(index))

    def _fetch(self, call: Call, wanted: Any, stable: bool, put: Callable[[Fields], None]) -> None:
        """The committed offsets of one group; no topics (null) means all of them."""
        topics = wanted.topics
        asked = (
            None
            if topics is None
            else tuple(TopicPartition(topic.name, number) for topic in topics for number in topic.partition_indexes)
        )

        def reply(answer: core.OffsetFetchResponse) -> None:
            told, unstable = dict(answer.offsets), answer.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            rows = []
            for partition in (*told, *answer.unstable) if asked is None else asked:
                offset = told.get(partition, core.NOT_COMMITTED)
                row = {
                    "committed_offset": offset.offset,
                    "committed_leader_epoch": offset.leader_epoch,
                    "metadata": offset.metadata,
                    "error_code": ErrorCode.NONE if partition in told else answer.error,
                }
                rows.append((partition, row))
            error = ErrorCode.NONE if unstable else answer.error
            put({"topics": by_topic(rows), "error_code": error})

        question = core.OffsetFetch(0, wanted.group_id, partitions=asked, require_stable=stable)
        self._ask_within(call, question, reply)

    def delete_groups(self, call: Call) -> None:
        """DeleteGroups: a group is gone once that is on every in-sync replica (rule 57)."""
        names = call.request.groups_names

        def reply(answers: list[core.DeleteGroupResponse]) -> None:
            rows = zip(names, answers, strict=True)
            call.reply({"results": [{"group_id": name, "error_code": answer.error} for name, answer in rows]})

        gather = Gather(len(names), reply)
        for index, name in enumerate(names):
            self._ask_within(call, core.DeleteGroup(0, name), gather.put_at(index))

    def offset_delete(self, call: Call) -> None:
        """OffsetDelete: the same for some of a group's offsets, but not of topics that members read (rule 56)."""
        asked = [partition for partition, _ in by_partition(call.request.topics)]
        image = self._broker.image
        missing = {each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for each in asked if image.partition(each) is None}

        def reply(answer: core.DeleteOffsetsResponse) -> None:
            refused = missing | dict.fromkeys(answer.read, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            rows = ((each, {"error_code": refused.get(each, ErrorCode.NONE)}) for each in asked)
            call.reply({"error_code": answer.error, "topics": [] if answer.error else by_topic(rows)})

        partitions = tuple(each for each in asked if each not in missing)
        question = core.DeleteOffsets(0, call.request.group_id, partitions=partitions)
        self._ask_within(call, question, reply)

    def _ask_within(self, call: Call, question: core.GroupRequest, reply: Callable[[Any], None]) -> None:
        silent = ANSWERS[type(question)](0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._gateway.ask_within(OFFSETS_LIMIT_S, call.sender, question, reply, partial(reply, silent))


def _offer(protocol: str, metadata: bytes) -> core.Offer:
    topics = subscribed_topics(metadata)
    return core.Offer(protocol, metadata, None if topics is None else tuple(sorted(topics)))


def _reply_error(call: Call, answer: core.GroupAnswer) -> None:
    call.reply({"error_code": answer.error})


def _described(group: Group) -> Fields:
    """A group as DescribeGroups shows it: metadata of members only while they are settled, assignments always."""
    classic = ClassicGroup() if group.classic is None else group.classic
    stable = classic.state is State.STABLE
    return {
        "error_code": ErrorCode.NONE,
        "group_state": classic.state.value if group.exists else "Dead",
        "protocol_type": classic.protocol_type or "",
        "protocol_data": (classic.protocol or "") if stable else "",
        "members": [
            {
                "member_id": name,
                "client_id": member.told.client_id,
                "client_host": member.told.client_host,
                "member_metadata": member.told.offer(classic.protocol).metadata if stable else b"",
                "member_assignment": member.told.assignment,
            }
            for name, member in classic.members.items()
        ],
    }
