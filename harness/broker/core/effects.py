"""The seam of the core: what its surroundings call, and what it asks them to do, in the order in which it asks.

A node of the core takes one *step* at a time: a message, or a reminder, and the time at which it came. In a step it
changes its state and collects effects, which its surroundings carry out when it is over. The simulator and the server
interpret the three kinds of effect below and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from harness.broker.core.messages import Message
from harness.broker.core.types import NO_NODE, NONE, BrokerConfig, Image, NodeId, Outside, TopicPartition
from harness.ground.observations import Fact


class Timer(msgspec.Struct, frozen=True, gc=False):
    """A reminder. The core recognises its own by ``name`` and ``subject``; a late or needless one does no harm."""

    name: str
    subject: Any = None


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Deliver ``message`` to ``target`` (broker, controller or client), maybe never."""

    target: NodeId
    message: Message


class Arm(msgspec.Struct, frozen=True, gc=False):
    """Call ``on_timer`` with ``timer`` at ``at_us``. Timers are never cancelled."""

    at_us: int
    timer: Timer


class Observed(msgspec.Struct, frozen=True, gc=False):
    """A fact for the story: nothing depends on it."""

    fact: Fact


Effect = Deliver | Arm | Observed


class Core(Protocol):
    """A broker or the controller. Every call is one step at ``now_us``, on a clock that never goes back."""

    def start(self, now_us: int) -> list[Effect]:
        """Called once, first."""

    def on_message(self, now_us: int, sender: NodeId, message: Any) -> list[Effect]:
        """A message came."""

    def on_timer(self, now_us: int, timer: Timer) -> list[Effect]:
        """A reminder is due."""


class Context:
    """The state that all parts of one node share: its identity, settings, metadata, the present step and its effects.

    ``now_us`` and ``sender`` are those of the step; ``sender`` is NONE in a reminder. ``broker_epoch`` is NONE while
    the broker is not registered (rule 20). ``offline`` are partitions whose log directory has failed (rule 29).
    ``observing`` is looked at before facts are gathered, so that bulk
    simulation does not pay for stories.
    """

    node: NodeId
    config: Outside[BrokerConfig]
    observing: Outside[bool]
    image: Image
    broker_epoch: int
    offline: frozenset[TopicPartition]
    now_us: Outside[int]
    sender: Outside[NodeId]
    effects: Outside[list[Effect]]
    _correlation: int

    def __init__(self, node: NodeId, config: BrokerConfig, *, observing: bool, incarnation: int = 0) -> None:
        self.node = node
        self.config = config
        self.observing = observing
        self.image = Image()
        self.broker_epoch = NONE
        self.offline = frozenset()
        self.now_us = 0
        self.sender = NO_NODE
        self.effects = []
        # An answer to a dead process may reach the next one, so incarnations count apart (within the wire's 31 bits).
        self._correlation = incarnation % 1_000 * 1_000_000

    def begin(self, now_us: int, sender: NodeId = NO_NODE) -> None:
        """A step begins."""
        self.now_us = now_us
        self.sender = sender

    def correlation(self) -> int:
        """A number that no earlier request of this node carried."""
        self._correlation = self._correlation % (2**31 - 1) + 1
        return self._correlation

    def send(self, target: NodeId, message: Message) -> None:
        """Deliver, maybe never."""
        self.effects.append(Deliver(target, message))

    def answer(self, message: Message) -> None:
        """Deliver to the sender of this step's message."""
        self.effects.append(Deliver(self.sender, message))

    def remind(self, after_ms: float, timer: Timer) -> None:
        """Remind ``after_ms`` from now."""
        self.effects.append(Arm(self.now_us + int(after_ms * 1000), timer))

    def arm(self, at_us: int, timer: Timer) -> None:
        """Remind at a time."""
        self.effects.append(Arm(at_us, timer))

    def observe(self, fact: Fact) -> None:
        """Tell the story. Look at ``observing`` first: making the fact is most of the cost."""
        self.effects.append(Observed(fact))

    def take(self) -> list[Effect]:
        """Take the effects so far, in order, out of the node."""
        effects = self.effects
        self.effects = []
        return effects


class Node:
    """The common part of a broker and the controller: a message goes to the one handler of its kind.

    A handler takes the message and nothing else; the time and the sender are the step's.
    """

    _context: Context
    _handlers: Outside[Mapping[type[Message], Callable[[Any], None]]]

    @property
    def image(self) -> Image:
        """The newest metadata that this node has."""
        return self._context.image

    def on_message(self, now_us: int, sender: NodeId, message: Message) -> list[Effect]:
        """Take one message. A kind that this node does not take is ignored."""
        context = self._context
        context.now_us, context.sender = now_us, sender  # As ``begin``: every message comes this way.
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(message)
        return context.take()
