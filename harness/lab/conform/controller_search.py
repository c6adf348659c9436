"""The search for an order of what Kafka's controller logged in which the core's controller makes all of it.

It goes depth first, and tries at most :data:`NODES_MAX` steps. What is more than :data:`SLACK_US` apart stays in the
order of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from harness.broker.core import messages as m
from harness.broker.core.controller import UNCLEAN, Controller
from harness.broker.core.planted import with_bug
from harness.broker.core.types import (
    NO_NODE,
    NONE,
    BrokerState,
    ErrorCode,
    Image,
    NodeId,
    PartitionState,
    TopicState,
)
from harness.ground.observations import BrokerFenced, BrokerRegistered, Fact, IsrChanged, LeaderElected, ProposalRefused
from harness.lab.conform.controller_steps import (
    OBSERVED,
    administered,
    beat,
    begin_again,
    fence,
    propose,
    propose_refused,
    register,
    state_of,
)
from harness.lab.conform.shown import in_words
from harness.worlds.reference_settings import broker_config, topic_config
from workloads import Settings

#: Steps that are tried for one log partition.
NODES_MAX: Final = 20_000
#: Two lines of logs that are less apart may have happened in the other order.
SLACK_US: Final = 500_000
#: A change that follows from an event is logged within this time: up to 0.6 s later where the machine does much else.
AT_ONCE_US: Final = 1_000_000
#: An emptied directory is told to the controller within this time after its broker's registration.
TOLD_US: Final = 5_000_000

PartitionChange = LeaderElected | IsrChanged
BrokerLife = BrokerFenced | BrokerRegistered
#: A fact that a controller logs between its changes of a partition.
Between = BrokerLife | ProposalRefused
FactT = TypeVar("FactT", bound=Fact)


class LoggedFact(NamedTuple, Generic[FactT]):
    """A fact as a node logged it."""

    time_us: int
    node: int
    fact: FactT

    def __str__(self) -> str:
        shown = msgspec.to_builtins(self.fact)
        what, _ = shown.pop("what"), shown.pop("partition", None)
        facts = {name.replace("_", " "): value for name, value in shown.items()}
        return f"{self.time_us / 1e6:.3f} s, node {self.node}, {what}: {_in_words(facts)}"


class _Node(NamedTuple):
    """A node of the search: the core's image, and what of the log is behind it."""

    image: Image
    changes: int
    events: int
    deviations: int = 0


class Order(NamedTuple):
    """An order in which everything fits, with its known ``deviations``; or the first that does not fit."""

    deviations: int = 0
    misfit: tuple[str, ...] = ()


class ControllerSearch:
    """The search for an order of one log partition's ``changes``, and what was logged ``between``, that the core makes.

    What follows from it after ``known_until_us`` may be missing, because the log ends there.
    """

    def __init__(
        self,
        changes: Sequence[LoggedFact[PartitionChange]],
        between: Sequence[LoggedFact[Between]],
        settings: Settings,
        known_until_us: int,
    ) -> None:
        self._changes = changes
        self._events = between
        self._events_held = sum(said.time_us <= known_until_us for said in between)
        self._broker = broker_config(settings)
        self._topic = topic_config(settings)
        self._furthest = 0
        self._core: list[str] = []
        self._furthest_event = 0
        self._answers: list[str] = []

    def depth_first(self) -> Order:
        """Find an order, or what does not fit."""
        if not self._changes:
            return Order(misfit=("the controller said nothing about it",))
        stack = [self._beginning()]
        visited: set[tuple[object, ...]] = set()
        while stack:
            node = stack.pop()
            if node.changes == len(self._changes) and node.events >= self._events_held:
                return Order(node.deviations)
            if (key := _key(node)) in visited:
                continue
            visited.add(key)
            if len(visited) > NODES_MAX:
                return Order(misfit=(f"no order was found in {NODES_MAX} steps", *self._neighbours()))
            if node.changes > self._furthest:
                self._furthest, self._core = node.changes, []
            if node.events > self._furthest_event:
                self._furthest_event, self._answers = node.events, []
            stack += reversed(list(self._next(node)))
        return Order(misfit=(*self._neighbours(), *dict.fromkeys([*self._core, *self._answers])))

    def _beginning(self) -> _Node:
        first = self._changes[0]
        before = [said for said in self._events if said.time_us <= first.time_us]
        alive = {
            said.fact.broker: isinstance(said.fact, BrokerRegistered)
            for said in before
            if not isinstance(said.fact, ProposalRefused)
        }
        fact = first.fact
        isr, replicas = fact.isr or (), fact.replicas or fact.isr or ()
        nodes = sorted({*replicas, *(said.fact.broker for said in self._events)})
        brokers = {NodeId(node): BrokerState(1, fenced=not alive.get(node, False)) for node in nodes}
        state = PartitionState(
            replicas=tuple(map(NodeId, replicas)),
            isr=tuple(map(NodeId, isr)),
            leader=NodeId(NONE if fact.leader is None else fact.leader),
            leader_epoch=fact.leader_epoch or 0,
            partition_epoch=fact.partition_epoch or 0,
            elr=tuple(map(NodeId, fact.elr)),
            last_known_leader=NodeId(*fact.last_known_elr) if fact.last_known_elr else NO_NODE,
        )
        return _Node(Image(1, brokers, {OBSERVED.topic: TopicState(self._topic, (state,))}), 1, len(before))

    def _next(self, node: _Node) -> Iterator[_Node]:
        """The nodes that may follow, the more likely ones first."""
        if node.changes == len(self._changes):
            yield from self._happened(node, self._events[node.events])
            return
        change = self._changes[node.changes]
        event = self._events[node.events] if node.events < len(self._events) else None
        of_event = [] if event is None or event.time_us > change.time_us + SLACK_US else [*self._happened(node, event)]
        first = event is not None and event.time_us <= change.time_us
        if first:
            yield from of_event
        if event is None or change.time_us <= event.time_us + SLACK_US:
            yield from self._changed(node, change)
        if not first:
            yield from of_event

    def _fitting(self, node: _Node, image: Image) -> Iterator[_Node]:
        """The node after ``node``, if ``image`` has the partition as it was observed next."""
        state = state_of(image)
        if node.changes == len(self._changes):
            self._core.append(f"does not fit: {self._events[node.events - 1]}")
            self._core.append(f"the core would show {_in_words(_told(state))} then, and nothing follows")
            return
        expected = _shown(self._changes[node.changes].fact, state_of(node.image))
        if _told(state) == expected:
            yield node._replace(image=image, changes=node.changes + 1)
        elif node.changes == self._furthest:
            self._core.append(f"the core would show {_in_words(_told(state))}, and not {_in_words(expected)}")

    def _happened(self, node: _Node, event: LoggedFact[Between]) -> Iterator[_Node]:
        """The controller fences a broker, takes it back, or refuses its proposal, as it logged."""
        after = node._replace(events=node.events + 1)
        if isinstance(event.fact, ProposalRefused):
            yield from self._refused(after, event.fact)
            return
        for image in self._lived(node.image, event.fact):
            if state_of(image) == state_of(node.image):
                yield after._replace(image=image)
            elif node.changes == len(self._changes) or self._at_once(node, event):
                yield from self._fitting(after, image)
            elif node.changes == self._furthest:
                self._core.append(f"the core would show {_in_words(_told(state_of(image)))} at once: {event}")

    def _at_once(self, node: _Node, event: LoggedFact[Between]) -> bool:
        """True if the next change may be what follows from the event."""
        return abs(self._changes[node.changes].time_us - event.time_us) <= AT_ONCE_US

    def _refused(self, node: _Node, fact: ProposalRefused) -> Iterator[_Node]:
        """The controller refuses a proposal for the same reason, and the partition stays as it is.

        Only Kafka's partition does so after the refusal of an ineligible member: see the replication rules.
        """
        state = state_of(node.image)
        if (state.leader_epoch, state.partition_epoch) != (fact.leader_epoch, fact.partition_epoch):
            return
        controller = self._controller(node.image)
        error = propose_refused(controller, fact, fact.isr)
        ineligible = error == ErrorCode.INELIGIBLE_REPLICA
        after = state_of(controller.image)
        ended = ineligible and after == replace(state, partition_epoch=state.partition_epoch + 1)
        same = set(fact.ineligible) == (self._ineligible(node.image, fact) if ineligible else set())
        if error.name == fact.error and same and (ended or after == state):
            yield node._replace(deviations=node.deviations + ended)
        else:
            self._answers.append(f"does not fit: {self._events[node.events - 1]}")
            self._answers.append(f"the core answers {error.name} then, and would show {_in_words(_told(after))}")

    def _ineligible(self, image: Image, fact: ProposalRefused) -> set[int]:
        """The members of the ISR that was proposed which the controller refuses beside the leader alone."""
        pairs = {member: {member, fact.broker} for member in fact.isr}
        errors = {member: propose_refused(self._controller(image), fact, pair) for member, pair in pairs.items()}
        return {member for member, error in errors.items() if error == ErrorCode.INELIGIBLE_REPLICA}

    def _lived(self, image: Image, fact: BrokerLife) -> Iterator[Image]:
        broker = NodeId(fact.broker)
        registered = image.brokers[broker]
        returns = isinstance(fact, BrokerRegistered)
        if registered.fenced is not returns and not registered.leaving:
            yield image
        elif not returns:
            yield self._after(
                image, partial(fence, broker=broker, session_us=self._broker.broker_session_timeout_ms * 1_000)
            )
        else:
            yield self._after(image, partial(beat, broker=broker))
            yield self._after(image, partial(begin_again, broker=broker))

    def _changed(self, node: _Node, change: LoggedFact[PartitionChange]) -> Iterator[_Node]:
        """Something that is not logged before: a proposal, a planned move, a stop in order, a regular election."""
        image, fact = node.image, change.fact
        state = state_of(image)
        acts: list[Callable[[Controller], object]] = []
        if state.leader == NONE:
            acts.append(lambda controller: controller.on_timer(0, UNCLEAN))
        else:
            acts.append(lambda controller: propose(controller, fact.isr or ()))
        if fact.leader in state.isr and fact.leader != state.leader:
            move = m.MoveLeader(0, OBSERVED.topic, OBSERVED.partition, NodeId(fact.leader or 0))
            acts.append(lambda controller: controller.on_message(0, NO_NODE, move))
        acts += [
            partial(beat, broker=broker, leaving=True)
            for broker, registered in image.brokers.items()
            if not registered.fenced and not registered.leaving
        ]
        acts += [
            partial(register, broker=broker, clean=False)
            for broker, registered in image.brokers.items()
            if self._broker.eligible_leader_replicas and (registered.fenced or registered.leaving)
        ]
        for act in acts:
            yield from self._fitting(node, self._after(image, act))
        if self._deviates(change, state):
            others = self._fitting(node, administered(image, fact.replicas or state.replicas))
            yield from (other._replace(deviations=node.deviations + 1) for other in others)

    def _deviates(self, change: LoggedFact[PartitionChange], state: PartitionState) -> bool:
        """True if the replicas were put in another order, or a broker may have told of an emptied directory.

        These are the known deviations: deviations.py. Neither changes anything else.
        """
        replicas = change.fact.replicas or state.replicas
        if replicas != state.replicas:
            return set(replicas) == set(state.replicas)
        return any(
            isinstance(said.fact, BrokerRegistered) and -SLACK_US <= change.time_us - said.time_us <= TOLD_US
            for said in self._events
        )

    def _controller(self, image: Image) -> Controller:
        controller = with_bug(Controller, self._broker.planted_bug)(self._broker, image, observe=False)
        controller.start(0)
        return controller

    def _after(self, image: Image, act: Callable[[Controller], object]) -> Image:
        controller = self._controller(image)
        act(controller)
        return controller.image

    def _neighbours(self) -> Iterator[str]:
        index = self._furthest
        for number in range(max(0, index - 1), min(len(self._changes), index + 2)):
            word = "does not fit" if number == index else "before" if number < index else "after"
            yield f"{word}: {self._changes[number]}"
        near_us = self._changes[min(index, len(self._changes) - 1)].time_us
        yield from (f"near: {said}" for said in self._events if abs(said.time_us - near_us) <= 2 * SLACK_US)


def _key(node: _Node) -> tuple[object, ...]:
    brokers = tuple(
        (broker, registered.fenced, registered.leaving) for broker, registered in node.image.brokers.items()
    )
    return node.changes, node.events, state_of(node.image), brokers


def _told(state: PartitionState) -> dict[str, object]:
    return {
        "leader": state.leader,
        "leader epoch": state.leader_epoch,
        "partition epoch": state.partition_epoch,
        "ISR": sorted(state.isr),
        "ELR": sorted(state.elr),
        "last known leader": state.last_known_leader,
        "replicas": list(state.replicas),
    }


def _shown(fact: PartitionChange, before: PartitionState) -> dict[str, object]:
    """The observed state; what Kafka does not name has not changed."""
    return _told(before) | {
        "leader": before.leader if fact.leader is None else fact.leader,
        "leader epoch": before.leader_epoch if fact.leader_epoch is None else fact.leader_epoch,
        "partition epoch": fact.partition_epoch,
        "ISR": sorted(before.isr if fact.isr is None else fact.isr),
        "ELR": sorted(fact.elr),
        "last known leader": NONE if not fact.last_known_elr else fact.last_known_elr[0],
        "replicas": list(fact.replicas or before.replicas),
    }


def _in_words(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {in_words(value)}" for name, value in facts.items())
