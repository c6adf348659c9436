"""Replicas that a consumer may read from (rule 22, KIP-392): one in its own rack, as the leader names it.

The leader answers a consumer of another rack with the number of an in-sync follower in the consumer's, and no records.
That follower serves up to its own high watermark, which lags behind the leader's (rule 8) and never passes it: what is
read there may be stale, and is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.broker.core.messages import Fetch
from harness.broker.core.replica import Replica
from harness.broker.core.types import NO_NODE, BrokerState, NodeId


def rack_of(node: NodeId, brokers: Mapping[NodeId, BrokerState]) -> str:
    """The rack of a broker; one without a name is a rack of its own, as in the worlds of Apache Kafka."""
    broker = brokers.get(node)
    return broker.rack if broker is not None and broker.rack else f"r{node}"


def named_by_leader(
    replica: Replica, offset: int, fetch: Fetch, own: NodeId, brokers: Mapping[NodeId, BrokerState]
) -> NodeId:
    """The follower from which a consumer should read from ``offset`` on; NONE where the leader serves it itself.

    It does so too where it is in the consumer's rack, or where none there is in sync, has the offset and lives. Of
    several, the one with the largest log end.
    """
    if not fetch.rack or not replica.leading or rack_of(own, brokers) == fetch.rack:
        return NO_NODE
    return max(
        _candidates(replica, offset, fetch.rack, brokers),
        key=lambda node: (replica.followers[node].end_offset, -node),
        default=NO_NODE,
    )


def _candidates(replica: Replica, offset: int, rack: str, brokers: Mapping[NodeId, BrokerState]) -> Iterable[NodeId]:
    for node, follower in replica.followers.items():
        broker = brokers.get(node)
        alive = broker is not None and not broker.fenced and not broker.leaving
        if alive and node in replica.isr and rack_of(node, brokers) == rack and follower.end_offset >= offset:
            yield node
