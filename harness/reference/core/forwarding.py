"""What a broker passes on to the controller for its clients: topic changes and producer ids."""

from __future__ import annotations

from msgspec.structs import replace

from harness.reference.core.context import Context
from harness.reference.core.messages import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    CreateTopic,
    DeleteTopic,
    InitProducerId,
    InitProducerIdResponse,
    MoveLeader,
    TopicResponse,
)
from harness.reference.core.types import CONTROLLER, NONE, ErrorCode, NodeId

#: Forwarded requests that wait for the controller; the oldest is forgotten, and its client times out.
FORWARDED_MAX = 1_000

TopicRequest = CreateTopic | DeleteTopic | MoveLeader


class Relay:
    """Forwards topic requests under correlations of its own and relays the answers."""

    __slots__ = ("_context", "_waiting")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: dict[int, tuple[NodeId, int]] = {}

    def forward(self, client: NodeId, message: TopicRequest) -> None:
        """Ask the controller on the client's behalf."""
        correlation = self._context.correlation()
        self._waiting[correlation] = (client, message.correlation)
        if len(self._waiting) > FORWARDED_MAX:
            del self._waiting[next(iter(self._waiting))]
        self._context.send(CONTROLLER, replace(message, correlation=correlation))

    def on_answer(self, message: TopicResponse) -> None:
        """Relay the answer under the client's correlation; one that nobody waits for is dropped."""
        waiting = self._waiting.pop(message.correlation, None)
        if waiting is not None:
            client, correlation = waiting
            self._context.send(client, replace(message, correlation=correlation))


class ProducerIds:
    """Hands out producer ids from a block that the controller allocated (KIP-730)."""

    __slots__ = ("_context", "_left", "_next")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next = 0
        self._left = 0

    def refill(self) -> None:
        """Ask for a block if there is none."""
        context = self._context
        if self._left == 0 and context.broker_epoch != NONE:
            context.send(CONTROLLER, AllocateProducerIds(context.node, context.broker_epoch))

    def on_block(self, message: AllocateProducerIdsResponse) -> None:
        """Take the block; what is left of an earlier one is never used."""
        if not message.error:
            self._next, self._left = message.first, message.count

    def serve(self, client: NodeId, message: InitProducerId) -> None:
        """Answer with a new id, or with an error that makes the client try again while a block is fetched."""
        if self._left == 0:
            answer = InitProducerIdResponse(message.correlation, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            answer = InitProducerIdResponse(message.correlation, ErrorCode.NONE, self._next, 0)
            self._next += 1
            self._left -= 1
        self._context.send(client, answer)
        self.refill()
