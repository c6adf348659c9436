"""Steps of single nodes, each performed once: a node's step depends on its own state and on what reaches it only.

So a state of the cluster is a tuple of digests, and the real core (``harness.broker.core``) runs once for each pair
of a node's state and an event; the next million times the answer is a look-up.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.controller import Controller
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.messages import Message
from harness.broker.core.planted import with_bug
from harness.broker.core.types import (
    CONTROLLER,
    NONE,
    BrokerState,
    ErrorCode,
    Image,
    NodeId,
    PartitionState,
    TopicState,
)
from harness.lab.explore.brokers import BrokerCopy, BrokerNode, WritingClient, exposed, happen
from harness.lab.explore.controllers import ControllerState, controller_state_of, decide, offers, registration
from harness.lab.explore.events import AT, CLEAN_EVENTS, NodeEvent, SentMessage, StepResult, sent
from harness.lab.explore.kept_nodes import KeptNodes
from harness.lab.explore.normal_form import NOW_US, given_up, open_requests, settle_broker
from harness.lab.explore.rules import broken_by_step
from harness.lab.explore.scope import Scope
from harness.worlds.reference_settings import broker_config, topic_config

#: Answers to what a broker has asked.
_ANSWERS: Final = (messages.FetchResponse, messages.PartitionAnswer)
#: Errors of a fetch that bring its follower further.
_USEFUL: Final = (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)


class NodeStates(KeptNodes[BrokerNode | Controller, StepResult]):
    """All states of nodes that a search has met, and the steps between them, for one ``scope``."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        settings = scope.chosen
        config = broker_config(settings)
        if not scope.constants.fetches_park:
            config = replace(config, replica_fetch_wait_max_ms=0)
        self._constants = scope.constants
        self.settings = settings
        self._config = config
        self._topic = topic_config(settings)
        self._writes = WritingClient(settings.acks, scope.constants.keys, settings.enable_idempotence)
        self._offers: dict[int, tuple[NodeEvent, ...]] = {}
        self.copies: dict[int, BrokerCopy] = {}
        self.controller_states: dict[int, ControllerState] = {}

    def begin(self) -> tuple[int, list[tuple[int, tuple[SentMessage, ...]]]]:
        """The controller's first state, and each broker's with what it has sent: all registered, broker 0 leads."""
        numbers = tuple(map(NodeId, range(self._constants.brokers)))
        isr = numbers[: self._constants.in_sync]
        state = PartitionState(numbers, isr, leader=numbers[0], leader_epoch=0, partition_epoch=0)
        image = Image(
            1, {node: BrokerState(1, fenced=False) for node in numbers}, {AT.topic: TopicState(self._topic, (state,))}
        )
        controller = with_bug(Controller, self._config.planted_bug)(self._config, image=image, observe=False)
        controller.start(NOW_US)
        brokers = []
        for number in numbers:
            node = BrokerNode(number)
            process = node.start(self._config, 1)
            effects = process.on_message(NOW_US, CONTROLLER, messages.MetadataUpdate(image))
            names = settle_broker(process, {}, NONE, node.incarnation)
            brokers.append((self._keep(node), self._sent_messages(sent(effects), names)))
        return self._keep(controller), brokers

    # --- steps -------------------------------------------------------------------------------------------------------

    def offers(self, digest: int) -> tuple[NodeEvent, ...]:
        """Return the events that happen to a node by itself: timers that are set, time that passes."""
        events = self._offers.get(digest)
        if events is None:
            node = self._load(digest)
            offered = node.offers(self._constants) if isinstance(node, BrokerNode) else offers(node)
            events = self._offers[digest] = tuple(offered)
        return events

    def led(self, digest: int) -> tuple[int, int]:
        """The leader and the leader epoch that a decision of the controller names."""
        message = self.messages[digest]
        assert isinstance(message, messages.MetadataUpdate)  # noqa: S101 - what travels on a wire of metadata
        state = message.image.topics[AT.topic].partitions[AT.partition]
        return state.leader, state.leader_epoch

    def question(self, digest: int) -> Message:
        """A request without its number: what is asked, and not how often."""
        return replace(self.messages[digest], correlation=NONE)

    @override
    def perform(self, digest: int, event: NodeEvent) -> tuple[StepResult, ...]:
        """The same by the real core, whether it was ever done before or not."""
        if digest in self.copies:
            return (self._broker_step(digest, event),)
        free = self._constants.elected == "any"
        firsts = range(self._constants.brokers) if free else (None,)
        return tuple(dict.fromkeys(self._controller_step(digest, event, first) for first in firsts))

    def _broker_step(self, digest: int, event: NodeEvent) -> StepResult:
        node, before, broken, idle = self._load(digest), self.copies[digest], None, False
        effects: list[Effect] = []
        message = self.messages[event.number] if event.kind == "message" else None
        answered = message.correlation if isinstance(message, _ANSWERS) else NONE
        process = node.process
        requests = {} if process is None else open_requests(process)
        if event.kind == "crash":
            node.crash(event.number, event.peer, wipes=self._constants.crash_loses == "everything")
        elif process is None:
            node.start(self._config, event.number)
        else:
            try:
                effects, idle = happen(process, event, message, self._writes)
            except (AssertionError, ValueError) as error:  # What the core or its log takes for impossible.
                broken = ("assertion", f"broker {node.node}: {error}")
        names = {} if node.process is None else settle_broker(node.process, requests, answered, node.incarnation)
        after = self._keep(node)
        return StepResult(
            after,
            self._sent_messages(sent(effects), names),
            _acknowledged(effects),
            exposed(before, self.copies[after]),
            broken=broken or broken_by_step(before, self.copies[after]),
            given_up=() if node.process is None else given_up(requests, open_requests(node.process), answered),
            refused=after == digest and _refuses(effects),
            idle=idle or (broken is None and after == digest and event.kind in CLEAN_EVENTS),
        )

    def _controller_step(self, digest: int, event: NodeEvent, first: int | None) -> StepResult:
        controller, broken = self._load(digest), None
        message = self.messages[event.number] if event.kind == "message" else None
        effects: list[Effect] = []
        try:
            effects = decide(controller, event, message, first)
        except AssertionError as error:
            broken = ("assertion", f"controller: {error}")
        sends = self._sent_messages(sent(effects), {})
        return StepResult(self._keep(controller), sends, registered=registration(effects), broken=broken)

    @override
    def _note(self, digest: int, node: BrokerNode | Controller) -> None:
        if isinstance(node, BrokerNode):
            self.copies[digest] = node.copy()
        else:
            self.controller_states[digest] = controller_state_of(node)


def _acknowledged(effects: list[Effect]) -> tuple[int, ...]:
    answers = (effect.message for effect in effects if isinstance(effect, Deliver))
    return tuple(
        answer.correlation for answer in answers if isinstance(answer, messages.ProduceResponse) and not answer.error
    )


def _refuses(effects: list[Effect]) -> bool:
    answers = [effect.message for effect in effects if isinstance(effect, Deliver)]
    fetched = [answer for answer in answers if isinstance(answer, messages.FetchResponse)]
    return any(part.error not in _USEFUL for answer in fetched for part in answer.partitions)
