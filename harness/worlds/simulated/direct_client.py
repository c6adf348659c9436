"""Single requests of scripted stories, each over a connection of its own to the broker that the story names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from harness.broker.core import messages
from harness.broker.core.messages import (
    DeleteGroup,
    DeleteGroupResponse,
    Produce,
    ProduceResponse,
    RecordBatch,
    content_of_record,
)
from harness.broker.core.types import NONE, ErrorCode
from harness.worlds.contract import DirectWrite
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.producer import ACCEPTED, CONNECTION_LOST, ERROR_NAMES, REFUSALS
from nemesis.cluster import CLIENTS
from workloads import EventType, SendOutcome

#: An old epoch says nothing of earlier attempts, as clients see it.
_REFUSALS: Final = REFUSALS - {ErrorCode.INVALID_PRODUCER_EPOCH}
#: The first node of direct clients, far above those of a run's producers and consumers.
FIRST_NODE: Final = CLIENTS + 1_000_000


class SimulatedDirectClient:
    """Implements :class:`harness.worlds.contract.DirectClient`: each request is a client of its own."""

    def __init__(self, loop: Loop, network: Network) -> None:
        self._loop = loop
        self._network = network
        self._next_node = FIRST_NODE

    def produce(self, broker: int, write: DirectWrite, done: Callable[[SendOutcome], None]) -> None:
        """Send ``write`` from a client that exists for this request only."""
        if write.acks == 0:
            self._loop.push(self._loop.time_us, done, SendOutcome(EventType.OK, node=broker))
        record = (content_of_record(write.key, write.payload, tombstone=write.tombstone),)
        idempotence = (write.producer_id, write.producer_epoch, write.sequence)
        batch = RecordBatch(1, len(write.payload), record, NONE, NONE, *idempotence)
        request = Produce(0, parsed(write.partition), write.acks, write.timeout_ms, batch)
        self._ask(broker, request, done if write.acks else _not_waited_for)

    def delete_group(self, broker: int, group: str, done: Callable[[SendOutcome], None]) -> None:
        """Ask from a client that exists for this request only."""
        self._ask(broker, DeleteGroup(0, group), done)

    def _ask(self, broker: int, request: Produce | DeleteGroup, done: Callable[[SendOutcome], None]) -> None:
        node, self._next_node = self._next_node, self._next_node + 1
        self._network.add_client(node, _OneRequest(self._network, node, request, done))
        self._network.connect(node, broker)


class _OneRequest:
    """A connection to one broker with one request."""

    def __init__(
        self, network: Network, node: int, request: Produce | DeleteGroup, done: Callable[[SendOutcome], None]
    ) -> None:
        self._network = network
        self._node = node
        self._request = request
        self._done: Callable[[SendOutcome], None] | None = done
        self.receive: Callable[[int, Any], None] = self._on_message

    def connected(self, broker: int) -> None:
        """Send the request."""
        wire = self._network.wire(self._node, broker)
        if wire is not None:
            wire.send(self._request)

    def disconnected(self, peer: int) -> None:
        """End the request as INFO: its outcome is not known."""
        self._end(SendOutcome(EventType.INFO, error=CONNECTION_LOST, node=peer))

    def _on_message(self, source: int, message: messages.Message) -> None:
        if not isinstance(message, ProduceResponse | DeleteGroupResponse):
            return
        if message.error in ACCEPTED:
            offset = message.base_offset if isinstance(message, ProduceResponse) else None
            self._end(SendOutcome(EventType.OK, offset, node=source))
        else:
            kind = EventType.FAIL if message.error in _REFUSALS else EventType.INFO
            self._end(SendOutcome(kind, error=ERROR_NAMES.get(message.error, "UnknownError"), node=source))

    def _end(self, outcome: SendOutcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(outcome)


def _not_waited_for(_outcome: SendOutcome) -> None:
    """With acks=0 the write was over when it was handed over."""
