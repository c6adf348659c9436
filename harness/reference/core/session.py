"""A broker's session with the controller: registration, heartbeats, controlled shutdown (rule 20)."""

from __future__ import annotations

from harness.reference.core.context import Context
from harness.reference.core.effects import Timer
from harness.reference.core.messages import Heartbeat, HeartbeatResponse, RegisterBroker, RegisterBrokerResponse
from harness.reference.core.types import CONTROLLER, NONE, ErrorCode, Image

HEARTBEAT = Timer("heartbeat")


class Session:
    """Keeps one incarnation of a broker registered. Whatever is lost is repeated with the next heartbeat."""

    __slots__ = ("_context", "_host", "_incarnation", "_port", "fenced", "leaving", "may_leave")

    def __init__(self, context: Context, incarnation: int, host: str, port: int) -> None:
        self._context = context
        self._incarnation = incarnation
        self._host = host
        self._port = port
        self.fenced = True
        self.leaving = False
        self.may_leave = False

    def tick(self, now_us: int) -> None:
        """Register, or say "alive", and come back after broker.heartbeat.interval.ms."""
        context = self._context
        context.arm(now_us + context.config.broker_heartbeat_interval_ms * 1000, HEARTBEAT)
        if context.broker_epoch == NONE:
            context.send(CONTROLLER, RegisterBroker(context.node, self._incarnation, self._host, self._port))
        else:
            self.beat()

    def beat(self) -> None:
        """Say "alive", and how new the applied image is."""
        context = self._context
        context.send(CONTROLLER, Heartbeat(context.node, context.broker_epoch, context.image.version, self.leaving))

    def on_registered(self, message: RegisterBrokerResponse) -> None:
        """Take the broker epoch. A refusal (another incarnation's session is still valid) is repeated by ``tick``."""
        if message.incarnation != self._incarnation or message.error or self._context.broker_epoch != NONE:
            return
        self._context.broker_epoch = message.broker_epoch
        self.beat()

    def on_heartbeat(self, message: HeartbeatResponse) -> Image | None:
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
