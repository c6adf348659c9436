"""The requests of consumer groups (classic protocol) and of committed offsets."""

from __future__ import annotations

from typing import Any, Final

from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from harness.reference.core.types import NONE, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.codec.data import by_topic
from harness.reference.server.codec.wire import TopicIds, text

#: From these versions on: members are given their names first (KIP-394), the protocol type is told, several members
#: leave at once, several groups are asked at once.
JOIN_NAMED: Final = 4
JOIN_TYPED: Final = 7
LEAVE_SEVERAL: Final = 3
FETCH_SEVERAL: Final = 8
#: From this version on, no topics means all that the group has committed.
FETCH_ALL: Final = 2


def decode_join(request: Any, version: int, ids: TopicIds) -> plain.JoinGroup:
    """Static membership (KIP-345) is not offered: an instance id is ignored and the member is an ordinary one."""
    del ids
    return plain.JoinGroup(
        text(request.group_id),
        text(request.member_id),
        request.session_timeout_ms,
        request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
        text(request.protocol_type),
        tuple((text(protocol.name), bytes(protocol.metadata)) for protocol in request.protocols),
        version >= JOIN_NAMED,
    )


def encode_joined(answer: plain.Joined, version: int, ids: TopicIds) -> Any:
    """Before version 7 the protocol's name may not be null."""
    del ids
    member_class = JoinGroupResponse.JoinGroupResponseMember
    return JoinGroupResponse(
        version=version,
        error_code=int(answer.error),
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol if version >= JOIN_TYPED else answer.protocol or "",
        leader=answer.leader,
        member_id=answer.member,
        members=[
            member_class(version=version, member_id=member, group_instance_id=None, metadata=metadata)
            for member, metadata in answer.members
        ],
    )


def decode_sync(request: Any, version: int, ids: TopicIds) -> plain.SyncGroup:
    """Assignments come from the leader only."""
    del version, ids
    return plain.SyncGroup(
        text(request.group_id),
        request.generation_id,
        text(request.member_id),
        tuple((text(row.member_id), bytes(row.assignment)) for row in request.assignments),
    )


def encode_synced(answer: plain.Synced, version: int, ids: TopicIds) -> Any:
    """The member's own assignment."""
    del ids
    return SyncGroupResponse(
        version=version,
        error_code=int(answer.error),
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )


def decode_heartbeat(request: Any, version: int, ids: TopicIds) -> plain.GroupHeartbeat:
    """A member is alive."""
    del version, ids
    return plain.GroupHeartbeat(text(request.group_id), request.generation_id, text(request.member_id))


def encode_heartbeat(answer: plain.GroupHeartbeatAnswer, version: int, ids: TopicIds) -> Any:
    """Only an error code."""
    del ids
    return HeartbeatResponse(version=version, error_code=int(answer.error))


def decode_leave(request: Any, version: int, ids: TopicIds) -> plain.LeaveGroup:
    """One member before version 3."""
    del ids
    several = version >= LEAVE_SEVERAL
    members = [member.member_id for member in request.members] if several else [request.member_id]
    return plain.LeaveGroup(text(request.group_id), tuple(text(member) for member in members))


def encode_left(answer: plain.Left, version: int, ids: TopicIds) -> Any:
    """Before version 3 the only member's error is the answer's."""
    del ids
    member_class = LeaveGroupResponse.MemberResponse
    if version < LEAVE_SEVERAL:
        error = answer.error or (answer.members[0][1] if answer.members else answer.error)
        return LeaveGroupResponse(version=version, error_code=int(error))
    return LeaveGroupResponse(
        version=version,
        error_code=int(answer.error),
        members=[
            member_class(version=version, member_id=member, group_instance_id=None, error_code=int(error))
            for member, error in answer.members
        ],
    )


def decode_commit(request: Any, version: int, ids: TopicIds) -> plain.CommitOffsets:
    """Offsets to remember."""
    del ids
    return plain.CommitOffsets(
        text(request.group_id),
        request.generation_id_or_member_epoch,
        text(request.member_id),
        tuple(
            (
                TopicPartition(text(topic.name), part.partition_index),
                plain.CommittedOffset(
                    part.committed_offset,
                    part.committed_leader_epoch if version >= 6 else NONE,
                    part.committed_metadata,
                ),
            )
            for topic in request.topics
            for part in topic.partitions
        ),
    )


def encode_committed(answer: plain.OffsetsCommitted, version: int, ids: TopicIds) -> Any:
    """An error code for each partition."""
    del ids
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    part_class = topic_class.OffsetCommitResponsePartition
    return OffsetCommitResponse(
        version=version,
        topics=[
            topic_class(
                version=version,
                name=topic,
                partitions=[
                    part_class(version=version, partition_index=at.partition, error_code=int(error))
                    for at, error in parts
                ],
            )
            for topic, parts in by_topic(answer.parts, lambda part: part[0])
        ],
    )


def decode_fetch_offsets(request: Any, version: int, ids: TopicIds) -> plain.FetchOffsets:
    """One group before version 8."""
    del ids
    if version >= FETCH_SEVERAL:
        return plain.FetchOffsets(tuple(_wanted(text(group.group_id), group.topics) for group in request.groups))
    topics = request.topics if version >= FETCH_ALL else request.topics or ()
    return plain.FetchOffsets((_wanted(text(request.group_id), topics),))


def _wanted(group: str, topics: Any) -> plain.GroupOffsetsWanted:
    if topics is None:
        return plain.GroupOffsetsWanted(group, None)
    return plain.GroupOffsetsWanted(
        group, tuple(TopicPartition(text(topic.name), index) for topic in topics for index in topic.partition_indexes)
    )


def encode_offsets_fetched(answer: plain.OffsetsFetched, version: int, ids: TopicIds) -> Any:
    """Offset -1 where nothing is committed."""
    del ids
    if version < FETCH_SEVERAL:
        group = answer.groups[0]
        topic_class = OffsetFetchResponse.OffsetFetchResponseTopic
        part_class = topic_class.OffsetFetchResponsePartition
        topics = _offsets(group, topic_class, part_class, version)
        return OffsetFetchResponse(version=version, topics=topics, error_code=int(group.error))
    group_class = OffsetFetchResponse.OffsetFetchResponseGroup
    topic_class = group_class.OffsetFetchResponseTopics
    part_class = topic_class.OffsetFetchResponsePartitions
    groups = [
        group_class(
            version=version,
            group_id=group.group,
            topics=_offsets(group, topic_class, part_class, version),
            error_code=int(group.error),
        )
        for group in answer.groups
    ]
    return OffsetFetchResponse(version=version, groups=groups)


def _offsets(group: plain.GroupOffsets, topic_class: Any, part_class: Any, version: int) -> list[Any]:
    return [
        topic_class(
            version=version,
            name=topic,
            partitions=[
                part_class(
                    version=version,
                    partition_index=at.partition,
                    committed_offset=NONE if found is None else found.offset,
                    committed_leader_epoch=NONE if found is None else found.leader_epoch,
                    metadata="" if found is None else found.metadata,
                    error_code=int(group.error),
                )
                for at, found in parts
            ],
        )
        for topic, parts in by_topic(group.offsets, lambda part: part[0])
    ]


REQUESTS: Final = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
