"""The wires between the nodes: each is one connection in one direction, and messages on it arrive in order."""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.broker.core import messages
from harness.broker.core.types import CONTROLLER

#: Kinds of wires between two brokers: what a follower asks, and what its leader answers.
_REQUESTS: Final = (messages.Fetch, messages.OffsetForLeaderEpoch, messages.ListOffsets)
_RESPONSES: Final = (
    messages.FetchResponse,
    messages.OffsetForLeaderEpochResponse,
    messages.ListOffsetsResponse,
)


class WireName(NamedTuple):
    """One direction of one connection."""

    kind: str
    source: int
    target: int


def every_wire(brokers: int) -> list[WireName]:
    """The wires of a cluster with this number of brokers, in the order of a state's digests."""
    numbers = range(brokers)
    between = [(source, other) for source in numbers for other in numbers if source != other]
    return [
        *(WireName("request", source, other) for source, other in between),
        *(WireName("response", source, other) for source, other in between),
        *(WireName("metadata", CONTROLLER, broker) for broker in numbers),
        *(WireName("answer", CONTROLLER, broker) for broker in numbers),
        *(WireName("proposal", broker, CONTROLLER) for broker in numbers),
    ]


def wire_kind(kind: type[messages.Message]) -> str:
    """The kind of wire on which messages of a class travel."""
    if kind in _REQUESTS:
        return "request"
    if kind in _RESPONSES:
        return "response"
    if kind is messages.MetadataUpdate:
        return "metadata"
    return "proposal" if kind is messages.AlterPartition else "answer"
