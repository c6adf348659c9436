"""A broker's side of the controller: its session (rule 20), requests that it forwards, ids for producers."""

from __future__ import annotations

from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.effects import Context, Timer
from harness.broker.core.types import CONTROLLER, NONE, ErrorCode, Image, NodeId, Outside

HEARTBEAT = Timer("heartbeat")


class Session:
    """Keeps one incarnation of a broker registered. Whatever is lost is repeated with the next heartbeat.

    ``registration`` is what it registers with. ``fenced`` is the controller's last answer, true before the first; with
    ``leaving`` set, controlled shutdown waits for ``may_leave``.
    """

    fenced: bool
    leaving: bool
    may_leave: bool
    _context: Context
    _registration: Outside[messages.RegisterBroker]

    def __init__(self, context: Context, registration: messages.RegisterBroker) -> None:
        self._context = context
        self._registration = registration
        self.fenced = True
        self.leaving = False
        self.may_leave = False

    def tick(self) -> None:
        """Register or send a heartbeat, and come back after broker.heartbeat.interval.ms."""
        context = self._context
        context.remind(context.config.broker_heartbeat_interval_ms, HEARTBEAT)
        if context.broker_epoch == NONE:
            context.send(CONTROLLER, self._registration)
        else:
            self.beat()

    def beat(self) -> None:
        """Send a heartbeat with the version of the applied image, and what is offline."""
        context = self._context
        version, offline = context.image.version, tuple(sorted(context.offline))
        context.send(CONTROLLER, messages.Heartbeat(context.node, context.broker_epoch, version, self.leaving, offline))

    def on_registered(self, message: messages.RegisterBrokerResponse) -> None:
        """Take the broker epoch. A refusal (another incarnation's session is still valid) is repeated by ``tick``."""
        context, own = self._context, self._registration.incarnation
        if message.incarnation != own or message.error or context.broker_epoch != NONE:
            return
        context.broker_epoch = message.broker_epoch
        self.beat()

    def on_heartbeat(self, message: messages.HeartbeatResponse) -> Image | None:
        """The image that came along, if any. A stale broker epoch means: register again."""
        context = self._context
        if message.broker_epoch != context.broker_epoch:
            return None
        if message.error in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            context.broker_epoch = NONE
            return None
        self.fenced = message.fenced
        self.may_leave = self.leaving and message.may_leave
        return message.image


#: Forwarded requests that wait for the controller; the oldest is forgotten, and its client times out.
FORWARDED_MAX = 1_000

TopicRequest = messages.CreateTopic | messages.DeleteTopic | messages.MoveLeader


class Forwarding:
    """Forwards topic requests under correlations of its own and relays the answers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: dict[int, tuple[NodeId, int]] = {}

    def forward(self, message: TopicRequest) -> None:
        """Ask the controller on the client's behalf."""
        correlation = self._context.correlation()
        self._waiting[correlation] = (self._context.sender, message.correlation)
        if len(self._waiting) > FORWARDED_MAX:
            del self._waiting[next(iter(self._waiting))]
        self._context.send(CONTROLLER, replace(message, correlation=correlation))

    def on_answer(self, message: messages.TopicResponse) -> None:
        """Relay the answer under the client's correlation; one without a waiting client is dropped."""
        waiting = self._waiting.pop(message.correlation, None)
        if waiting is not None:
            client, correlation = waiting
            self._context.send(client, replace(message, correlation=correlation))


class ProducerIds:
    """Hands out producer ids from a block that the controller allocated (KIP-730)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next = 0
        self._left = 0

    def refill(self) -> None:
        """Ask for a block if no id is left."""
        context = self._context
        if self._left == 0 and context.broker_epoch != NONE:
            context.send(CONTROLLER, messages.AllocateProducerIds(context.node, context.broker_epoch))

    def on_block(self, message: messages.AllocateProducerIdsResponse) -> None:
        """Take the block; what is left of an earlier one is never used."""
        if not message.error:
            self._next, self._left = message.first, message.count

    def serve(self, message: messages.InitProducerId) -> None:
        """Answer with a new id, or with an error that makes the client try again while a block is fetched."""
        producer_id = self.take()
        if producer_id == NONE:
            answer = messages.InitProducerIdResponse(message.correlation, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            answer = messages.InitProducerIdResponse(message.correlation, ErrorCode.NONE, producer_id, 0)
        self._context.answer(answer)
        self.refill()

    def take(self) -> int:
        """A new id, NONE where none is left: :meth:`refill` asks for more."""
        if self._left == 0:
            return NONE
        self._next += 1
        self._left -= 1
        return self._next - 1
