"""A coordinator with its log, as a node of a search, and how brokers that lead one log partition are started.

It is a :class:`~harness.broker.core.broker.Broker` that leads one log partition. That has a follower. Only
its log is kept: it fetches when the search says so, and each answer reaches it at once. So a record of the coordinator
is appended first, then on both logs, then committed. A move makes the follower the coordinator, with what it has, in
the next leader epoch; the former one is the follower then. Which of them has which number does not matter, so the
coordinator keeps its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from harness.broker.core import messages
from harness.broker.core.broker import Broker
from harness.broker.core.coordinator import look_of
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.invariants import Broken
from harness.broker.core.log import Log, MemoryLog
from harness.broker.core.messages import Message
from harness.broker.core.replica import truncation_offset
from harness.broker.core.types import (
    CONTROLLER,
    NONE,
    BrokerConfig,
    BrokerState,
    ErrorCode,
    Image,
    NodeId,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.normal_form import NOW_US, settle_broker, start_counting

#: The topic that is written to and read.
TOPIC: Final = "t"
#: The coordinator, and the follower of its log; leaders have the numbers of their partitions.
COORDINATOR: Final = NodeId(10)
FOLLOWER: Final = NodeId(11)
#: The sender of a request that was given up: no answer reaches it.
GONE: Final = NodeId(1999)
_EPOCH: Final = 1
_IDS_PER_EPOCH: Final = 10


class Servers(NamedTuple):
    """The settings with which the brokers of a scope are started.

    The coordinator leads ``log``. The topic that is written to has this number of ``partitions``.
    """

    config: BrokerConfig
    topic: TopicConfig
    partitions: int
    log: TopicPartition

    def image(self, leader_epoch: int) -> Image:
        """The metadata in this leader epoch of the coordinator's log."""
        both, numbers = (COORDINATOR, FOLLOWER), [NodeId(number) for number in range(self.partitions)]
        log = PartitionState(both, both, COORDINATOR, leader_epoch, leader_epoch)
        written = tuple(PartitionState((number,), (number,), number, 0, 0) for number in numbers)
        return Image(
            1 + leader_epoch,
            {node: BrokerState(_EPOCH, fenced=False) for node in (*both, *numbers)},
            {self.log.topic: TopicState(self.topic, (log,)), TOPIC: TopicState(self.topic, written)},
        )


class CoordinatorNode:
    """The coordinator: its process, its log, and the log of the follower. A subclass knows what it coordinates."""

    leader_epoch: int
    log: MemoryLog
    other: MemoryLog
    process: Broker

    def __init__(self, servers: Servers) -> None:
        self.leader_epoch = 0
        self.log, self.other = MemoryLog(), MemoryLog()
        self._start(servers)

    def _start(self, servers: Servers) -> None:
        """A new process leads with its log, in the present leader epoch."""
        self.process = started(COORDINATOR, servers.config, self.log, servers.image(self.leader_epoch))
        self._settle()

    def happen(
        self, event: NodeEvent, message: Message | None, servers: Servers
    ) -> tuple[list[Deliver], dict[int, int], Broken | None]:
        """Let it take one event; the messages that it sends, what their numbers are called, and a broken invariant."""
        if event.kind == "move":
            self.leader_epoch += 1
            self.log, self.other = self.other, self.log
            self._start(servers)
            return [], {}, None
        before = self._under_way()
        sent = sent_by(self.process, COORDINATOR, self._take(event, message, servers))
        broken = next(filter(None, self._broken(before, message, sent)), None)
        if event.kind == "fetch":
            sent = self._copy(sent)
        return sent, self._settle(), broken

    def _under_way(self) -> Any:
        """The changes that it has under way; None while it does not coordinate."""
        raise NotImplementedError

    def _broken(self, before: Any, message: Message | None, sent: Sequence[Deliver]) -> Iterator[Broken | None]:
        """The answers of the invariants of coordinators to a step, before which ``before`` was under way."""
        raise NotImplementedError

    def _settle(self) -> dict[int, int]:
        """Take times and fresh correlations out; what the fresh ones are called now."""
        settle(self.process)
        return self._settle_coordinator()

    def _settle_coordinator(self) -> dict[int, int]:
        raise NotImplementedError

    def _take(self, event: NodeEvent, message: Message | None, servers: Servers) -> list[Effect]:
        process = self.process
        if message is not None:
            return process.on_message(NOW_US, NodeId(event.peer), message)
        if event.kind == "fetch":
            return process.on_message(NOW_US, FOLLOWER, self._fetch(servers.log))
        return process.on_timer(NOW_US + self._after_us(event), look_of(servers.log, self.leader_epoch))

    def _after_us(self, event: NodeEvent) -> int:
        """The time after which it looks at what is due; what is to be due then is made ready."""
        raise NotImplementedError

    def part(self) -> Any:
        """It as rules see it."""
        raise NotImplementedError

    # --- the follower ------------------------------------------------------------------------------------------------

    def _fetch(self, partition: TopicPartition) -> messages.Fetch:
        epochs = self.other.epochs()
        last_epoch = epochs[-1][0] if epochs else NONE
        wanted = messages.FetchPartition(partition, self.other.end_offset, self.leader_epoch, last_epoch)
        return messages.Fetch(0, FOLLOWER, 0, (wanted,), broker_epoch=_EPOCH)

    def _copy(self, sent: list[Deliver]) -> list[Deliver]:
        """Let the answer to its fetch reach the follower; the other messages."""
        for effect in sent:
            if isinstance(effect.message, messages.FetchResponse):
                (part,) = effect.message.partitions
                if part.diverging is not None:
                    offset, _ = truncation_offset(self.other.epochs(), self.other.end_offset, part.diverging)
                    self.other.truncate_to(offset)
                for batch in part.batches:
                    self.other.append(batch)
        return [effect for effect in sent if effect.target != FOLLOWER]


def started(node: NodeId, config: BrokerConfig, log: MemoryLog, image: Image) -> Broker:
    """A broker that is registered, has producer ids to give, and knows that it leads its log partition."""
    process = Broker(node, config, _OneLog(log).open, _EPOCH, observe=False)
    start_counting(process)
    process.start(NOW_US)
    for message in (
        messages.RegisterBrokerResponse(ErrorCode.NONE, _EPOCH, _EPOCH),
        messages.AllocateProducerIdsResponse(ErrorCode.NONE, image.version * _IDS_PER_EPOCH, _IDS_PER_EPOCH),
        messages.MetadataUpdate(image),
    ):
        process.on_message(NOW_US, CONTROLLER, message)
    return process


def settle(process: Broker) -> None:
    """Take times and fresh correlations out of a broker that asks for nothing."""
    settle_broker(process, {}, NONE, _EPOCH)


class _OneLog:
    """A disk with one log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def open(self, _partition: TopicPartition) -> Log:
        return self._log


def sent_by(process: Broker, node: NodeId, effects: Sequence[Effect]) -> list[Deliver]:
    """The messages to others; those to itself are taken at once."""
    sent, waiting = list[Deliver](), deque(effects)
    while waiting:
        effect = waiting.popleft()
        if not isinstance(effect, Deliver) or effect.target == CONTROLLER:
            continue
        if effect.target == node:
            waiting.extend(process.on_message(NOW_US, node, effect.message))
        else:
            sent.append(effect)
    return sent
