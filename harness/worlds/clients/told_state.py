"""Asks a broker, as an operator does, what it tells of groups, of transactions, and of the last stable offset.

Nothing is changed by these questions: no member is made, and nothing is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from kafka.errors import GroupIdNotFoundError, KafkaError
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from harness.worlds.clients.direct_connection import DirectConnection
from harness.worlds.clients.membership import message_named
from workloads import LogPartition

_CLIENT_ID: Final = "ackproof-questions"
#: The first version with several groups, and with topics by their names still (KIP-709).
_FETCH_VERSION: Final = 8
#: The last version in which a group that is not known is dead, and no error (KIP-1043).
_DESCRIBE_VERSION: Final = 5
#: The first version that goes by the isolation (KIP-98).
_LIST_VERSION: Final = 2
_READ_COMMITTED: Final = 1
_LATEST: Final = -1

ConsumerGroupDescribeRequest: Final = message_named("ConsumerGroupDescribeRequest")
#: The library finds the class of the answer by itself.
RESPONSE: Final = message_named("ConsumerGroupDescribeResponse")
Answer = TypeVar("Answer")


class ToldGroup(NamedTuple):
    """A group by the word of its coordinator: the offsets by log partition, and of each member whether it has one.

    What it does not tell is None.
    """

    committed: dict[str, int] | None = None
    assigned: tuple[bool, ...] | None = None


def told_group(broker: tuple[str, int], group: str, limit_s: float) -> ToldGroup:
    """The word of a ``broker`` about a ``group`` of either protocol: one by the classic is unknown to KIP-848."""

    def ask(connection: DirectConnection) -> ToldGroup:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
            version=_FETCH_VERSION, group_id=group, topics=None, member_id=None, member_epoch=-1
        )
        fetched = connection.ask(OffsetFetchRequest[_FETCH_VERSION](groups=[wanted], require_stable=False))
        described = connection.ask(
            ConsumerGroupDescribeRequest[0](group_ids=[group], include_authorized_operations=False)
        )
        committed, assigned = _committed(fetched.groups[0]), _assigned(described.groups[0])
        if assigned is None and described.groups[0].error_code == GroupIdNotFoundError.errno:
            classic = connection.ask(
                DescribeGroupsRequest[_DESCRIBE_VERSION](groups=[group], include_authorized_operations=False)
            )
            assigned = _assigned_by_leader(classic.groups[0])
        return ToldGroup(committed, assigned)

    return _told(broker, limit_s, ask) or ToldGroup()


def told_stable_end(broker: tuple[str, int], partition: str, limit_s: float) -> int | None:
    """The last stable offset of a log partition, as its leader, ``broker``, tells it; None where it does not."""
    topic, number = LogPartition.named(partition)

    def ask(connection: DirectConnection) -> int | None:
        of_topic = ListOffsetsRequest.ListOffsetsTopic
        wanted = of_topic.ListOffsetsPartition(version=_LIST_VERSION, partition_index=number, timestamp=_LATEST)
        topics = [of_topic(version=_LIST_VERSION, name=topic, partitions=[wanted])]
        response = connection.ask(
            ListOffsetsRequest[_LIST_VERSION](replica_id=-1, isolation_level=_READ_COMMITTED, topics=topics)
        )
        answer = response.topics[0].partitions[0]
        return None if answer.error_code else int(answer.offset)

    return _told(broker, limit_s, ask)


def told_transaction(broker: tuple[str, int], transactional_id: str, limit_s: float) -> str | None:
    """The state of a transactional id and its producer epoch, as its coordinator, ``broker``, tells them; or None."""

    def ask(connection: DirectConnection) -> str | None:
        answer = connection.ask(DescribeTransactionsRequest[0](transactional_ids=[transactional_id]))
        told = answer.transaction_states[0]
        return None if told.error_code else f"{told.transaction_state} in epoch {told.producer_epoch}"

    return _told(broker, limit_s, ask)


def _told(broker: tuple[str, int], limit_s: float, ask: Callable[[DirectConnection], Answer]) -> Answer | None:
    """The answer to a question; None without one in time."""
    try:
        with DirectConnection(broker, _CLIENT_ID, limit_s) as connection:
            return ask(connection)
    except (OSError, KafkaError):
        return None


def _committed(group: Any) -> dict[str, int] | None:
    if group.error_code:
        return None
    return {
        str(LogPartition(topic.name, partition.partition_index)): int(partition.committed_offset)
        for topic in group.topics
        for partition in topic.partitions
        if not partition.error_code
    }


def _assigned(group: Any) -> tuple[bool, ...] | None:
    if group.error_code:
        return None
    return tuple(any(topic.partitions for topic in member.assignment.topic_partitions) for member in group.members)


def _assigned_by_leader(group: Any) -> tuple[bool, ...] | None:
    """Say of each member of a classic group if it has log partitions; in a rebalance the group tells of none."""
    if group.error_code:
        return None
    told = (member.member_assignment for member in group.members)
    return tuple(bool(each) and bool(ConsumerProtocolAssignment.decode(each).partitions()) for each in told)
