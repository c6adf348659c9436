"""The controller, what may happen to it, and what of it the invariants look at."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from harness.broker.core import messages
from harness.broker.core.controller import SESSIONS, UNCLEAN, Controller
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.messages import Message
from harness.broker.core.types import NONE, NodeId, PartitionState
from harness.lab.explore.events import AT, NodeEvent
from harness.lab.explore.normal_form import NOW_US, fall_silent, settle_controller
from nemesis.cluster import CLIENTS


class ControllerState(NamedTuple):
    """The controller as the invariants see it: the partition, which brokers it calls fenced, and their epochs."""

    state: PartitionState
    fenced: frozenset[int]
    epochs: dict[int, int]
    version: int


def controller_state_of(controller: Controller) -> ControllerState:
    """Read the decisions that the controller has made so far."""
    image = controller.image
    return ControllerState(
        image.topics[AT.topic].partitions[AT.partition],
        frozenset(node for node, broker in image.brokers.items() if broker.fenced),
        {node: broker.broker_epoch for node, broker in image.brokers.items()},
        image.version,
    )


def offers(controller: Controller) -> list[NodeEvent]:
    """Return the events that happen to a controller by itself, or because an operator asks."""
    image, state = controller.image, controller_state_of(controller).state
    events = [
        NodeEvent("unfence" if broker.fenced else "fence", node) for node, broker in sorted(image.brokers.items())
    ]
    if state.leader == NONE:
        return [*events, NodeEvent("unclean")]
    return events + [NodeEvent("move", node) for node in sorted(state.isr) if node != state.leader]


def decide(controller: Controller, event: NodeEvent, message: Message | None, first: int | None) -> list[Effect]:
    """Let the controller take one event, with ``first`` before the others wherever it takes the first that can lead."""
    _order_replicas(controller.image, first)
    effects = _happen(controller, event, message)
    _order_replicas(controller.image, None)
    for effect in effects:
        if isinstance(effect, Deliver):
            _order_replicas(effect.message, None)
    settle_controller(controller)
    return effects


def registration(effects: list[Effect]) -> int:
    """The broker epoch that a registration was given; NONE if no broker has registered or it was refused."""
    answers = (effect.message for effect in effects if isinstance(effect, Deliver))
    return next(
        (answer.broker_epoch for answer in answers if isinstance(answer, messages.RegisterBrokerResponse)), NONE
    )


def _happen(controller: Controller, event: NodeEvent, message: Message | None) -> list[Effect]:
    kind, peer = event.kind, NodeId(event.peer)
    if kind == "unclean":
        return controller.on_timer(NOW_US, UNCLEAN)
    if kind == "fence":
        fall_silent(controller, peer)
        return controller.on_timer(NOW_US, SESSIONS)
    if kind == "unfence":
        message = messages.Heartbeat(peer, controller.image.brokers[peer].broker_epoch, controller.image.version)
    elif kind == "move":
        message = messages.MoveLeader(0, AT.topic, AT.partition, peer)
        peer = NodeId(CLIENTS)
    elif kind == "register":
        message = messages.RegisterBroker(peer, event.number)
    return [] if message is None else controller.on_message(NOW_US, peer, message)


def _order_replicas(value: Any, first: int | None) -> None:
    """Put the replicas and the ELR of every partition state in ``value`` in one order, in place.

    ``first`` comes first, then the others by number. The core keeps the ELR in the order of its replicas, and would
    take the same members in another order for a change.
    """
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            content = getattr(value, name)
            if name in {"replicas", "elr"}:
                ordered = tuple(sorted(content, key=lambda node: (node != first, node)))
                msgspec.structs.force_setattr(value, name, ordered)
            elif name != "config":
                _order_replicas(content, first)
    elif isinstance(value, dict):
        for content in value.values():
            _order_replicas(content, first)
    elif isinstance(value, tuple):
        for content in value:
            _order_replicas(content, first)
