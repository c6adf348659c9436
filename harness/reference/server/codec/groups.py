"""The requests of consumer groups (classic protocol) and of committed offsets."""

from __future__ import annotations

from typing import Any, Final

from harness.reference.core.types import NONE, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.codec.wire import Context, Fields, by_partition, by_topic, text

#: From these versions on: members are given their names first (KIP-394), the protocol type is given, several members
#: leave at once, several groups are asked at once.
JOIN_NAMED: Final = 4
JOIN_TYPED: Final = 7
LEAVE_SEVERAL: Final = 3
FETCH_SEVERAL: Final = 8
#: From this version on, no topics means all that the group has committed.
FETCH_ALL: Final = 2
#: From this version on, a committed offset has a leader epoch (KIP-320).
COMMIT_EPOCH: Final = 6


def decode_join(request: Any, context: Context) -> plain.JoinGroupRequest:
    """Static membership (KIP-345) is not offered: an instance id is ignored and the member is an ordinary one."""
    return plain.JoinGroupRequest(
        text(request.group_id),
        text(request.member_id),
        request.session_timeout_ms,
        request.rebalance_timeout_ms if context.version >= 1 else request.session_timeout_ms,
        text(request.protocol_type),
        tuple((text(protocol.name), bytes(protocol.metadata)) for protocol in request.protocols),
        context.version >= JOIN_NAMED,
        context.client_id,
    )


def encode_join(answer: plain.JoinGroupResponse, context: Context) -> Fields:
    """Before version 7 the protocol's name may not be null."""
    return {
        "error_code": answer.error,
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol if context.version >= JOIN_TYPED else answer.protocol or "",
        "leader": answer.leader,
        "member_id": answer.member,
        "members": [
            {"member_id": member, "group_instance_id": None, "metadata": metadata}
            for member, metadata in answer.members
        ],
    }


def decode_sync(request: Any, _: Context) -> plain.SyncGroupRequest:
    """Assignments come from the leader only."""
    return plain.SyncGroupRequest(
        text(request.group_id),
        request.generation_id,
        text(request.member_id),
        tuple((text(row.member_id), bytes(row.assignment)) for row in request.assignments),
    )


def encode_sync(answer: plain.SyncGroupResponse, _: Context) -> Fields:
    """The member's own assignment."""
    return {
        "error_code": answer.error,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol,
        "assignment": answer.assignment,
    }


def decode_heartbeat(request: Any, _: Context) -> plain.HeartbeatRequest:
    """A member is alive."""
    return plain.HeartbeatRequest(text(request.group_id), request.generation_id, text(request.member_id))


def encode_heartbeat(answer: plain.HeartbeatResponse, _: Context) -> Fields:
    """Only an error code."""
    return {"error_code": answer.error}


def decode_leave(request: Any, context: Context) -> plain.LeaveGroupRequest:
    """One member before version 3."""
    leaving = request.members if context.version >= LEAVE_SEVERAL else [request]
    return plain.LeaveGroupRequest(text(request.group_id), tuple(text(member.member_id) for member in leaving))


def encode_leave(answer: plain.LeaveGroupResponse, context: Context) -> Fields:
    """Before version 3 the only member's error is the answer's."""
    if context.version < LEAVE_SEVERAL:
        return {"error_code": answer.error or (answer.members[0][1] if answer.members else answer.error)}
    return {
        "error_code": answer.error,
        "members": [
            {"member_id": member, "group_instance_id": None, "error_code": error} for member, error in answer.members
        ],
    }


def decode_offset_commit(request: Any, context: Context) -> plain.OffsetCommitRequest:
    """Offsets to remember."""
    with_epoch = context.version >= COMMIT_EPOCH
    offsets = tuple(
        (
            at,
            plain.CommittedOffset(
                part.committed_offset, part.committed_leader_epoch if with_epoch else NONE, part.committed_metadata
            ),
        )
        for at, part in by_partition(request.topics)
    )
    generation = request.generation_id_or_member_epoch
    return plain.OffsetCommitRequest(text(request.group_id), generation, text(request.member_id), offsets)


def encode_offset_commit(answer: plain.OffsetCommitResponse, _: Context) -> Fields:
    """An error code for each partition."""
    return {"topics": by_topic((at, {"error_code": error}) for at, error in answer.parts)}


def decode_offset_fetch(request: Any, context: Context) -> plain.OffsetFetchRequest:
    """One group before version 8."""
    if context.version >= FETCH_SEVERAL:
        return plain.OffsetFetchRequest(tuple(_wanted(text(group.group_id), group.topics) for group in request.groups))
    topics = request.topics if context.version >= FETCH_ALL else request.topics or ()
    return plain.OffsetFetchRequest((_wanted(text(request.group_id), topics),))


def _wanted(group: str, topics: Any) -> plain.WantedOffsets:
    if topics is None:
        return plain.WantedOffsets(group, None)
    return plain.WantedOffsets(
        group, tuple(TopicPartition(text(topic.name), index) for topic in topics for index in topic.partition_indexes)
    )


def encode_offset_fetch(answer: plain.OffsetFetchResponse, context: Context) -> Fields:
    """Offset -1 where nothing is committed. One group before version 8."""
    groups = [{"topics": _committed(group), "error_code": group.error} for group in answer.groups]
    if context.version < FETCH_SEVERAL:
        return groups[0]
    return {"groups": [{"group_id": one.group, **each} for one, each in zip(answer.groups, groups, strict=True)]}


def _committed(group: plain.FetchedOffsets) -> list[Fields]:
    nothing = plain.CommittedOffset(NONE)
    return by_topic(
        (
            at,
            {
                "committed_offset": (found or nothing).offset,
                "committed_leader_epoch": (found or nothing).leader_epoch,
                "metadata": (found or nothing).metadata,
                "error_code": group.error,
            },
        )
        for at, found in group.offsets
    )
