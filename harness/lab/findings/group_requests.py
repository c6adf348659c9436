"""Requests to one coordinator about a group, from a client that is no member."""

from __future__ import annotations

from typing import Any, Final

from kafka.errors import for_code
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from harness.lab.findings.stage import PARTITIONS, OpenCluster
from harness.worlds.clients import DirectConnection
from workloads import LogPartition

#: Every answer.
ANSWER_S: Final = 60.0
_COMMIT_VERSION: Final = 7
#: The first version that can ask for stable offsets (KIP-447).
_FETCH_VERSION: Final = 7
_FIND_VERSION: Final = 2


def connected(cluster: OpenCluster, broker: int, limit_s: float = ANSWER_S) -> DirectConnection:
    """A connection to this broker."""
    host, _, port = cluster.world.clients.bootstrap[broker].rpartition(":")
    return DirectConnection((host, int(port)), "ackproof-groups", limit_s)


def commit_of(group: str, offset: int) -> Any:
    """The request that commits an offset of one log partition."""
    topic, index = LogPartition.named(PARTITIONS[0])
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = kind.OffsetCommitRequestPartition(
        version=_COMMIT_VERSION,
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata="",
    )
    return OffsetCommitRequest[_COMMIT_VERSION](
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[kind(version=_COMMIT_VERSION, name=topic, partitions=[partition])],
    )


def error_of(response: Any) -> int:
    """The error of a commit; 0 if it was acknowledged."""
    return int(response.topics[0].partitions[0].error_code)


def commits(connection: DirectConnection, group: str, offset: int) -> bool:
    """Ask for a commit; True if it was acknowledged."""
    return not error_of(connection.ask(commit_of(group, offset)))


def question(group: str, *, stable: bool = False) -> Any:
    """The request for the offset that the group has committed; ``stable``: wait for what is not committed yet."""
    topic, index = LogPartition.named(PARTITIONS[0])
    asked = OffsetFetchRequest.OffsetFetchRequestTopic(version=_FETCH_VERSION, name=topic, partition_indexes=[index])
    return OffsetFetchRequest[_FETCH_VERSION](group_id=group, topics=[asked], require_stable=stable)


def offset_in(response: Any) -> int | str:
    """The offset in the answer to a question; or the name of the error."""
    (partition,) = response.topics[0].partitions if response.topics else (response,)
    if code := response.error_code or partition.error_code:
        return str(for_code(code).__name__)
    return int(partition.committed_offset)


def told(connection: DirectConnection, group: str, *, stable: bool = False) -> int | str:
    """The offset that the group has committed, by this broker's word; or the name of its error."""
    return offset_in(connection.ask(question(group, stable=stable)))


def coordinator_by(connection: DirectConnection, group: str) -> int | str:
    """The group's coordinator, by this broker's word; or the name of its error."""
    response = connection.ask(FindCoordinatorRequest[_FIND_VERSION](key=group, key_type=0))
    return str(for_code(response.error_code).__name__) if response.error_code else int(response.node_id)
