"""A free run of Kafka held against the core's controller: what Kafka logged must be steps that the controller makes.

Observed, in ``cluster.jsonl`` of a run: whom the controller fenced and took back; each change of a log partition, with
leader, leader epoch, ISR, ELR and partition epoch; of brokers, when they began to lead or to follow, the ISR that a
leader counts with, and where a follower truncated.

Not observed: heartbeats, refused proposals, planned moves, stops in order, and which of two things that were logged at
about the same time came first. These are tried, depth first and at most :data:`NODES_MAX` of them, by the core's own
controller. What is more than :data:`SLACK_US` apart stays in the order of the log.

Fetches are not observed either. So a leader may propose what it likes, and of brokers no more is held than that they do
what the controller said, and truncate to where a leader epoch began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from harness.conform.controller_steps import (
    OBSERVED,
    administered,
    beat,
    begin_again,
    fence,
    propose,
    state_of,
)
from harness.conform.shown import in_words
from harness.errors import PlanError
from harness.observations import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    Fact,
    IsrChanged,
    LeaderElected,
    Observation,
    Truncated,
)
from harness.plan import Kafka
from harness.records.cluster_file import read_observations
from harness.records.run_record import read_record
from harness.reference.core import messages as m
from harness.reference.core.controller import UNCLEAN, Controller
from harness.reference.core.planted import with_bug
from harness.reference.core.types import (
    NO_NODE,
    NONE,
    BrokerState,
    Image,
    NodeId,
    PartitionState,
    TopicState,
)
from harness.worlds.reference_settings import broker_config, topic_config
from nemesis.cluster import CONTROLLER
from workloads import LogPartition, Settings

#: Steps that are tried for one log partition.
NODES_MAX: Final = 20_000
#: Two lines of logs that are less apart may have happened in the other order.
SLACK_US: Final = 500_000
#: An emptied directory is told to the controller within this time after its broker's registration.
TOLD_US: Final = 5_000_000

_Change = LeaderElected | IsrChanged
_Life = BrokerFenced | BrokerRegistered
_Role = BecameLeader | BecameFollower | IsrChanged | Truncated
FactT = TypeVar("FactT", bound=Fact)


class FreeRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one log partition of a run.

    ``changes`` of it by the controller and ``roles`` of brokers were observed, ``deviations`` of the changes are known
    ones. ``misfit`` is empty, or the first that does not fit, with its neighbours and what the core would show.
    """

    partition: str
    changes: int
    roles: int
    deviations: int = 0
    misfit: tuple[str, ...] = ()

    @property
    def compared(self) -> bool:
        """True if something was held: the core begins with the first change, and all else is held against it."""
        return self.changes > 0 and self.changes + self.roles > 1

    @property
    def fits(self) -> bool:
        """True if something was compared, and all of it fits."""
        return self.compared and not self.misfit


class _Said(NamedTuple, Generic[FactT]):
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


def held_run(run: Path, bug: str = "none") -> list[FreeRun]:
    """Hold each log partition of the topics that a run wrote to; with a planted ``bug``.

    Raises:
        PlanError: this run's log does not say enough.
    """
    record = read_record(run)
    if not isinstance(record.world, Kafka) or record.world.mode != "kraft" or record.world.controllers != 1:
        raise PlanError(f"{run} is not a run of Apache Kafka with one KRaft controller; only its log says enough")
    settings = Settings.from_mapping({**record.settings, "planted.bug": bug})
    written = [line for line in read_observations(run) if not (line.partition or "").startswith("__")]
    try:
        return held_observations(written, settings)
    except PlanError as error:
        raise PlanError(f"{run}: {error}") from error


def held_observations(seen: Sequence[Observation], settings: Settings) -> list[FreeRun]:
    """Hold each log partition that was observed; errors as above."""
    names = sorted({line.partition for line in seen if line.partition is not None}, key=LogPartition.named)
    if not names:
        raise PlanError("no log partition was observed in this run, so nothing is compared")
    return [_Search(name, seen, settings).result() for name in names]


class _Search:
    def __init__(self, partition: str, seen: Sequence[Observation], settings: Settings) -> None:
        self._changes = _new([
            _Said(line.time_us, line.node, line.fact)
            for line in seen
            if line.node >= CONTROLLER and isinstance(line.fact, _Change) and line.fact.partition == partition
        ])  # fmt: skip
        self._roles = [
            _Said(line.time_us, line.node, line.fact)
            for line in seen
            if line.node < CONTROLLER and isinstance(line.fact, _Role) and line.fact.partition == partition
        ]
        self._events = [
            _Said(line.time_us, line.node, line.fact)
            for line in seen
            if line.node >= CONTROLLER and isinstance(line.fact, _Life)
        ]
        # What follows from the last ones may be missing, because the log ends there.
        end_us = max(line.time_us for line in seen)
        self._events_held = sum(said.time_us <= end_us - SLACK_US for said in self._events)
        self._partition = partition
        self._broker = broker_config(settings)
        self._topic = topic_config(settings)
        self._furthest = 0
        self._core: list[str] = []

    def result(self) -> FreeRun:
        end = self._depth_first()
        misfit = self._role_misfit() if isinstance(end, _Node) else end
        return FreeRun(
            partition=self._partition,
            changes=len(self._changes),
            roles=len(self._roles),
            deviations=end.deviations if isinstance(end, _Node) else 0,
            misfit=tuple(misfit),
        )

    # --- the controller -----------------------------------------------------------------------------------------------

    def _depth_first(self) -> _Node | list[str]:
        """The end of an order in which everything fits, or what does not."""
        if not self._changes:
            return ["the controller said nothing about it"]
        stack = [self._beginning()]
        visited: set[tuple[object, ...]] = set()
        while stack:
            node = stack.pop()
            if node.changes == len(self._changes) and node.events >= self._events_held:
                return node
            if (key := _key(node)) in visited:
                continue
            visited.add(key)
            if len(visited) > NODES_MAX:
                return [f"no order was found in {NODES_MAX} steps", *self._neighbours()]
            if node.changes > self._furthest:
                self._furthest, self._core = node.changes, []
            stack += reversed(list(self._next(node)))
        return [*self._neighbours(), *dict.fromkeys(self._core)]

    def _beginning(self) -> _Node:
        first = self._changes[0]
        before = [said for said in self._events if said.time_us <= first.time_us]
        alive = {said.fact.broker: isinstance(said.fact, BrokerRegistered) for said in before}
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
        )
        return _Node(Image(1, brokers, {OBSERVED.topic: TopicState(self._topic, (state,))}), 1, len(before))

    def _next(self, node: _Node) -> Iterator[_Node]:
        """The nodes that may follow, the more likely ones first."""
        if node.changes == len(self._changes):
            yield from self._lives(node, self._events[node.events])
            return
        change = self._changes[node.changes]
        event = self._events[node.events] if node.events < len(self._events) else None
        of_event = [] if event is None or event.time_us > change.time_us + SLACK_US else [*self._lives(node, event)]
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

    def _lives(self, node: _Node, event: _Said[_Life]) -> Iterator[_Node]:
        """The controller fences a broker, or takes it back: what it logged."""
        after = node._replace(events=node.events + 1)
        for image in self._lived(node.image, event.fact):
            if state_of(image) == state_of(node.image):
                yield after._replace(image=image)
            else:
                yield from self._fitting(after, image)

    def _lived(self, image: Image, fact: _Life) -> Iterator[Image]:
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
            yield self._after(image, partial(begin_again, broker=broker, clean=False))
            yield self._after(image, partial(begin_again, broker=broker, clean=True))
            yield image  # It registered, and is fenced yet.

    def _changed(self, node: _Node, change: _Said[_Change]) -> Iterator[_Node]:
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
        for act in acts:
            yield from self._fitting(node, self._after(image, act))
        if self._deviates(change, state):
            others = self._fitting(node, administered(image, fact.replicas or state.replicas))
            yield from (other._replace(deviations=node.deviations + 1) for other in others)

    def _deviates(self, change: _Said[_Change], state: PartitionState) -> bool:
        """True if the replicas were put in another order, or a broker may have told of an emptied directory.

        These are the known deviations: deviations.toml. Neither changes anything else.
        """
        replicas = change.fact.replicas or state.replicas
        if replicas != state.replicas:
            return set(replicas) == set(state.replicas)
        return any(
            isinstance(said.fact, BrokerRegistered) and -SLACK_US <= change.time_us - said.time_us <= TOLD_US
            for said in self._events
        )

    def _after(self, image: Image, act: Callable[[Controller], object]) -> Image:
        controller = with_bug(Controller, self._broker.planted_bug)(self._broker, image, observe=False)
        controller.start(0)
        act(controller)
        return controller.image

    def _neighbours(self) -> Iterator[str]:
        index = self._furthest
        for number in range(max(0, index - 1), min(len(self._changes), index + 2)):
            word = "does not fit" if number == index else "before" if number < index else "after"
            yield f"{word}: {self._changes[number]}"
        near_us = self._changes[min(index, len(self._changes) - 1)].time_us
        yield from (f"near: {said}" for said in self._events if abs(said.time_us - near_us) <= 2 * SLACK_US)

    # --- brokers ------------------------------------------------------------------------------------------------------

    def _role_misfit(self) -> list[str]:
        begins = {said.fact.end_offset for said in self._roles if isinstance(said.fact, BecameLeader)}
        for said in self._roles:
            if isinstance(said.fact, Truncated):
                if said.fact.to_offset not in begins:
                    return [f"does not fit: {said}", "no leader epoch is known to begin there"]
            elif not any(_obeys(said, change) for change in self._changes):
                return [f"does not fit: {said}", "the controller has said nothing that this follows"]
        return []


def _obeys(said: _Said[_Role], change: _Said[_Change]) -> bool:
    """True if the broker does what the controller said then, and not before."""
    fact, word = said.fact, change.fact
    if change.time_us > said.time_us + SLACK_US:
        return False
    match fact:
        case IsrChanged():
            return fact.partition_epoch == word.partition_epoch and set(fact.isr or ()) == set(word.isr or ())
        case BecameLeader():
            leads = (word.leader, word.leader_epoch) == (said.node, fact.leader_epoch)
            return leads and set(fact.isr or ()) == set(word.isr or ())
        case BecameFollower():
            return fact.leader_epoch == word.leader_epoch and fact.leader in {None, word.leader}
    return False


def _new(changes: Iterable[_Said[_Change]]) -> list[_Said[_Change]]:
    """Without those that a controller which was started again repeats."""
    new: list[_Said[_Change]] = []
    for said in changes:
        if said.fact.partition_epoch is None:
            raise PlanError("this run's controller logged no partition epochs, so it cannot be held")
        if not any(_repeats(said.fact, earlier.fact) for earlier in new):
            new.append(said)
    return new


def _repeats(fact: _Change, other: _Change) -> bool:
    same_epochs = (fact.partition_epoch, fact.leader_epoch) == (other.partition_epoch, other.leader_epoch)
    return same_epochs and fact.leader == other.leader and set(fact.isr or ()) == set(other.isr or ())


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
        "replicas": list(state.replicas),
    }


def _shown(fact: _Change, before: PartitionState) -> dict[str, object]:
    """The observed state; what Kafka does not name has not changed."""
    return _told(before) | {
        "leader": before.leader if fact.leader is None else fact.leader,
        "leader epoch": before.leader_epoch if fact.leader_epoch is None else fact.leader_epoch,
        "partition epoch": fact.partition_epoch,
        "ISR": sorted(before.isr if fact.isr is None else fact.isr),
        "ELR": sorted(fact.elr),
        "replicas": list(fact.replicas or before.replicas),
    }


def _in_words(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {in_words(value)}" for name, value in facts.items())
