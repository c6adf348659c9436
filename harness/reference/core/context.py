"""What all parts of one broker (or of the controller) share: identity, settings, metadata, outgoing effects."""

from __future__ import annotations

from harness.observations import Fact
from harness.reference.core.effects import Arm, Effect, Observed, Send, Timer
from harness.reference.core.messages import Message
from harness.reference.core.types import NONE, BrokerConfig, Image, NodeId


class Context:
    """One node's identity, configuration, applied image and outgoing effects.

    ``observing`` is looked at before facts are gathered, so that bulk simulation does not pay for stories.
    """

    __slots__ = ("_correlation", "broker_epoch", "config", "effects", "image", "node", "observing")

    def __init__(self, node: NodeId, config: BrokerConfig, *, observing: bool, incarnation: int = 0) -> None:
        self.node = node
        self.config = config
        self.observing = observing
        self.image = Image()
        self.broker_epoch = NONE
        self.effects: list[Effect] = []
        # An answer to a dead process may reach the next one, so incarnations count apart (within the wire's 31 bits).
        self._correlation = incarnation % 1_000 * 1_000_000

    def correlation(self) -> int:
        """A number that no earlier request of this node carried."""
        self._correlation = self._correlation % (2**31 - 1) + 1
        return self._correlation

    def send(self, target: NodeId, message: Message) -> None:
        """Deliver, maybe never."""
        self.effects.append(Send(target, message))

    def arm(self, at_us: int, timer: Timer) -> None:
        """Remind at a time."""
        self.effects.append(Arm(at_us, timer))

    def observe(self, fact: Fact) -> None:
        """Tell the story. Look at ``observing`` first: making the fact is most of the cost."""
        self.effects.append(Observed(fact))

    def take(self) -> list[Effect]:
        """The effects so far, in order; afterwards there are none."""
        effects = self.effects
        self.effects = []
        return effects
