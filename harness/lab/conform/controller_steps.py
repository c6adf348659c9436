"""Steps of the core's controller with one log partition, each done by the messages that bring it about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from harness.broker.core import messages as m
from harness.broker.core.controller import SESSIONS, Controller
from harness.broker.core.effects import Deliver
from harness.broker.core.types import NONE, ErrorCode, Image, NodeId, PartitionState, TopicPartition
from harness.ground.observations import ProposalRefused

#: The log partition.
OBSERVED: Final = TopicPartition("observed", 0)


def state_of(image: Image) -> PartitionState:
    """The state of the log partition."""
    return image.topics[OBSERVED.topic].partitions[OBSERVED.partition]


def beat(controller: Controller, broker: NodeId, *, leaving: bool = False, now_us: int = 0) -> None:
    """A heartbeat of a broker that knows all metadata: a fenced one is taken back, a ``leaving`` one stops."""
    image = controller.image
    message = m.Heartbeat(broker, image.brokers[broker].broker_epoch, image.version, leaving)
    controller.on_message(now_us, broker, message)


def register(controller: Controller, broker: NodeId, *, clean: bool) -> None:
    """A new incarnation registers: after a ``clean`` stop it names the broker epoch of the one before."""
    before = controller.image.brokers[broker].broker_epoch if clean else NONE
    again = m.RegisterBroker(broker, controller.image.version, previous_broker_epoch=before)
    controller.on_message(0, broker, again)


def begin_again(controller: Controller, broker: NodeId) -> None:
    """A new incarnation registers after a clean stop, and is taken back."""
    register(controller, broker, clean=True)
    beat(controller, broker)


def propose(controller: Controller, isr: Iterable[int]) -> None:
    """The leader proposes this ISR, of the incarnations that are registered."""
    state = state_of(controller.image)
    brokers = controller.image.brokers
    members = tuple(m.IsrMember(NodeId(node), brokers[NodeId(node)].broker_epoch) for node in sorted(isr))
    own = brokers[state.leader].broker_epoch
    proposal = m.AlterPartition(0, state.leader, own, OBSERVED, state.leader_epoch, state.partition_epoch, members)
    controller.on_message(0, state.leader, proposal)


def propose_refused(controller: Controller, refused: ProposalRefused, isr: Iterable[int]) -> ErrorCode:
    """The broker that was ``refused`` proposes this ISR, under the same epochs: the controller's answer."""
    state = state_of(controller.image)
    brokers = controller.image.brokers
    members = tuple(
        m.IsrMember(NodeId(node), brokers[NodeId(node)].broker_epoch - (node in refused.earlier))
        for node in sorted(isr)
    )
    leader_epoch, partition_epoch = state.leader_epoch, state.partition_epoch
    if refused.error == ErrorCode.FENCED_LEADER_EPOCH.name:
        leader_epoch = refused.old_epoch or 0
    elif refused.error == ErrorCode.INVALID_UPDATE_VERSION.name:
        partition_epoch = refused.old_epoch or 0
    broker = NodeId(refused.broker)
    proposal = m.AlterPartition(
        0, broker, brokers[broker].broker_epoch, OBSERVED, leader_epoch, partition_epoch, members
    )
    effects = controller.on_message(0, broker, proposal)
    answers = [effect.message for effect in effects if isinstance(effect, Deliver)]
    return next(answer.error for answer in answers if isinstance(answer, m.AlterPartitionResponse))


def administered(image: Image, replicas: Iterable[int]) -> Image:
    """``image`` after a change of the partition that the core does not make, which raises its partition epoch."""
    state = state_of(image)
    after = replace(state, replicas=tuple(map(NodeId, replicas)), partition_epoch=state.partition_epoch + 1)
    topics = {OBSERVED.topic: replace(image.topics[OBSERVED.topic], partitions=(after,))}
    return replace(image, version=image.version + 1, topics=topics)


def fence(controller: Controller, broker: NodeId, *, session_us: int) -> None:
    """The session of this broker alone ends: the others have sent a heartbeat just before."""
    for node, registered in controller.image.brokers.items():
        if node != broker and not registered.fenced:
            beat(controller, node, now_us=session_us - 1)
    controller.on_timer(session_us, SESSIONS)
