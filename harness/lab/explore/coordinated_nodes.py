"""Steps of a coordinator and of its clients, each performed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from typing_extensions import override

from harness.broker.core.invariants import Broken
from harness.broker.core.messages import Message
from harness.lab.explore.coordinator_node import CoordinatorNode, Servers
from harness.lab.explore.events import NodeEvent, SentMessage
from harness.lab.explore.kept_nodes import KeptNodes


class NodeResult(NamedTuple):
    """The result of a step: the node's next state, the messages that it sends, an assertion that failed."""

    after: int
    sends: tuple[SentMessage, ...] = ()
    broken: Broken | None = None


class ClientNode(Protocol):
    """A client of a coordinator, as a value. It waits for the answer to one request at a time."""

    @property
    def waits(self) -> bool:
        """It waits for an answer."""

    @property
    def without_answer(self) -> tuple[str, ...]:
        """The events that may happen to it when no answer comes."""

    def request(self) -> Message | None:
        """The request whose answer it waits for; the correlation says how often that was sent again."""

    def act(self, event: NodeEvent) -> Self:
        """Begin what it may do, or send its request again."""

    def answered(self, message: Message) -> Self:
        """Take the answer to its request; it may ask for something else at once."""


C = TypeVar("C", bound=ClientNode)


class CoordinatedNodes(KeptNodes[Any, NodeResult], Generic[C]):
    """All states of nodes that a search has met: ``coordinators`` as rules see them, and ``clients``."""

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self.servers = servers
        self.coordinators: dict[int, Any] = {}
        self.clients: dict[int, C] = {}
        self._requests: dict[int, int] = {}

    def begin(self, nodes: Iterable[Any]) -> list[int]:
        """The digests of the first nodes."""
        return [self._keep(node) for node in nodes]

    def request_of(self, digest: int) -> int:
        """The request whose answer a client waits for, 0 for none."""
        request = self._requests.get(digest)
        if request is None:
            message = self.clients[digest].request()
            request = self._requests[digest] = 0 if message is None else self._keep_message(message)
        return request

    @override
    def perform(self, digest: int, event: NodeEvent) -> tuple[NodeResult, ...]:
        """The same by the real core, whether it was ever done before or not."""
        message = self.messages[event.number] if event.kind == "message" else None
        client = self.clients.get(digest)
        if client is not None:
            return (NodeResult(self._keep(client.act(event) if message is None else client.answered(message))),)
        node, names, broken = self._load(digest), dict[int, int](), None
        try:
            if isinstance(node, CoordinatorNode):
                effects, names, broken = node.happen(event, message, self.servers)
            else:
                effects, broken = node.take(event.peer, message)
        except (AssertionError, ValueError) as error:  # What the core or its log takes for impossible.
            return (NodeResult(digest, (), ("assertion", str(error))),)
        return (NodeResult(self._keep(node), self._sent_messages(effects, names), broken),)

    @override
    def _note(self, digest: int, node: Any) -> None:
        if isinstance(node, CoordinatorNode):
            self.coordinators[digest] = node.part()
        else:
            self.clients[digest] = node
