"""Events that happen to a node, and the results of its steps."""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.broker.core import messages
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.messages import Message
from harness.broker.core.types import NONE, TopicPartition
from harness.lab.explore.keys import Kept

#: The one log partition.
AT: Final = TopicPartition("t", 0)
#: The answer to a heartbeat, a registration or a request for ids is part of the step that asks, or of nothing here.
_FOLDED: Final = (
    messages.Heartbeat,
    messages.HeartbeatResponse,
    messages.RegisterBroker,
    messages.RegisterBrokerResponse,
    messages.AllocateProducerIds,
    messages.ProduceResponse,
    messages.TopicResponse,
)

#: A client writes its next record, or sends an earlier one again.
WRITE_EVENTS: Final = ("write", "write-again")
#: A pass of a cleaner, before the time limits of tombstones are over, and after it.
CLEAN_EVENTS: Final = ("clean", "clean-late")


class NodeEvent(NamedTuple):
    """An event at one node. ``peer`` is another node, ``number`` belongs to the kind: a digest, an offset, ..."""

    kind: str
    peer: int = NONE
    number: int = NONE


class SentMessage(NamedTuple):
    """A message on its way: its target, its class, and the digest by which it is known."""

    target: int
    kind: type[Message]
    digest: int


class StepResult(NamedTuple):
    """The result of a step: the node's next state, the messages that it sends, and what it shows to clients.

    ``acknowledged`` are numbers of records; ``exposed`` is what a leader's new high watermark lets consumers read, as
    (leader epoch, record), or None; ``registered`` is the broker epoch that a registration was given, NONE otherwise.
    ``broken`` is an invariant of this node alone and a sentence, or None. ``given_up`` are the leaders whose answers
    the broker waits for no more, though they have not come. ``refused``: a request changed nothing but got an error
    that makes its follower ask again, or wait for the controller. ``idle``: time passed, and nothing changed.
    """

    after: int
    sends: tuple[SentMessage, ...] = ()
    acknowledged: tuple[int, ...] = ()
    exposed: tuple[Kept, ...] | None = None
    registered: int = NONE
    broken: tuple[str, str] | None = None
    given_up: tuple[int, ...] = ()
    refused: bool = False
    idle: bool = False


def sent(effects: list[Effect]) -> list[Deliver]:
    """The messages among effects that travel; timers that are set are offered by the state itself."""
    return [effect for effect in effects if isinstance(effect, Deliver) and not isinstance(effect.message, _FOLDED)]
