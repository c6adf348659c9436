"""The same search without its reductions, and what both must agree on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from typing import Any, Final

import pytest

from harness.broker.core import invariants
from harness.broker.core.broker import CLEAN, ISR_CHECK, Broker
from harness.broker.core.effects import Effect, Timer
from harness.broker.core.follower import NEVER_US, Follower
from harness.broker.core.messages import Message
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE
from harness.lab.explore import Scope, brokers, normal_form
from harness.lab.explore import nodes as nodes_module
from harness.lab.explore.brokers import BrokerCopy, WritingClient
from harness.lab.explore.events import AT, NodeEvent
from harness.lab.explore.normal_form import FRESH, NOW_US
from harness.lab.explore.searched import Action, Next, SearchedSpace, State
from harness.lab.explore.space import Space

#: The names of what must hold in every reachable state.
INVARIANTS: Final = {name.replace("_", "-") for name, _ in inspect.getmembers(invariants, inspect.isfunction)}
#: All that was observed of states, the rules that break, and the number of states.
Observations = tuple[set[Any], set[str], int]


class Separate(Space):
    """Every decision of the controller arrives by itself."""

    def _is_no_news(self, wire: int, copy: BrokerCopy, digest: int) -> bool:
        return False


class Plain(Separate):
    """And names are kept apart; a refused request is refused and asked again."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope, merged=False)

    def _act(
        self, action: Action, state: State, target: int, event: NodeEvent, *, behind: bool = False
    ) -> Iterator[Next]:
        return super()._act(action, state, target, event, behind=True)


@contextmanager
def plain_nodes() -> Iterator[None]:
    """Brokers keep all that they have, and each tombstone its own time limit.

    Time passes for a follower whether that has consequences or not.
    """
    happen = brokers.happen

    def happens(
        broker: Broker, event: NodeEvent, message: Message | None, writes: WritingClient
    ) -> tuple[list[Effect], bool]:
        if event.kind == "silent":
            follower = broker.replicas[AT].followers[event.peer]
            follower.caught_up_us = follower.fetched_us = NEVER_US
            return [], False
        if event.kind == "check":
            return broker.on_timer(NOW_US, ISR_CHECK), False
        if event.kind == "clean-late":
            limits = [batch.delete_horizon_us for batch in broker.replicas[AT].log.cleanable.batches]
            return broker.on_timer(max([NOW_US, *limits]), Timer(CLEAN.name, AT)), False
        return happen(broker, event, message, writes)

    def offers(replica: Replica, _constants: object) -> list[NodeEvent]:
        silences = [
            NodeEvent("silent", node) for node, follower in replica.followers.items() if follower.caught_up_us == NOW_US
        ]
        proposing = replica.proposal is not None and replica.proposal.correlation != NONE
        return silences + [NodeEvent("write"), NodeEvent("check")] * replica.leading + [NodeEvent("repeat")] * proposing

    def settled(follower: Follower) -> None:
        follower.caught_up_us = normal_form._recent(follower.caught_up_us)
        follower.fetched_us = normal_form._recent(follower.fetched_us)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes_module, "happen", happens)
        patch.setattr(brokers, "_offers_of_replica", offers)
        patch.setattr(normal_form, "_settle_follower", settled)
        patch.setattr(normal_form, "_settle_limits", lambda _: None)
        patch.setattr(normal_form, "forget_unused", lambda _: None)
        yield


def observations(space: Space) -> Observations:
    """Facts of the states that are reached, under the least naming; the rules that break; the states."""
    return reached(space, partial(_observed, space))


def reached(space: SearchedSpace[Any, Any], observed: Callable[[State], Any]) -> Observations:
    """All that is ``observed`` of the states that are reached; the rules that break; the number of states.

    Nothing follows from a state that breaks a rule.
    """
    begin = space.begin()
    seen, todo = {space.canonical(begin)}, [begin]
    facts, broken = set(), set()
    for state in todo:
        facts.add(observed(state))
        for step in map(space.judged, space.follow(state)):
            if step.broken is not None:
                broken.add(step.broken[0])
                continue
            digest = space.canonical(step.state)
            if digest not in seen:
                seen.add(digest)
                todo.append(step.state)
    return facts, broken, len(seen)


def _observed(space: Space, state: State) -> Any:
    count = space.scope.constants.brokers
    controller_state, facts = space.nodes.controller_states[state[0]], space.facts.by_digest[state[-1]]
    copies = [space.nodes.copies[digest] for digest in state[1 : 1 + count]]
    least = min(_named(controller_state, copies, names) for names in permutations(range(count)))
    return least, facts.written, facts.shown, facts.permitted


def _named(controller_state: Any, copies: list[BrokerCopy], names: tuple[int, ...]) -> Any:
    def many(nodes: Any) -> tuple[int, ...]:
        return tuple(sorted(names[node] for node in nodes))

    state = controller_state.state
    leader = names[state.leader] if state.leader >= 0 else NONE
    decided = (
        leader,
        state.leader_epoch,
        state.partition_epoch,
        controller_state.version,
        many(state.isr),
        many(state.elr),
    )
    return (
        *decided,
        many(controller_state.fenced),
        tuple(sorted((names[node], epoch) for node, epoch in controller_state.epochs.items())),
        tuple(
            sorted(
                (names[copy.number], copy.alive, copy.away, copy.log, copy.flushed, copy.leader_epoch, copy.leading,
                 copy.high_watermark, many(copy.maximal_isr), copy.registered)
                for copy in copies
            )
        ),
    )  # fmt: skip


def both(scope: Scope) -> tuple[Observations, Observations]:
    """The observations of a search as it is, and of its twin."""
    reduced = observations(Space(scope))
    with plain_nodes():
        return reduced, observations(Plain(scope))


def number_apart(broker: Broker, coordinator: Any, kept: str = "_asked", first: int = 0) -> dict[int, int]:
    """Let every request of a coordinator have a number of its own, and be waited for; the names of the new ones.

    They are ``kept`` in this field, and numbered from the ``first`` one on.
    """
    asked = getattr(coordinator, kept)
    last = max((number for number in asked if number <= FRESH), default=first)
    fresh = [number for number in asked if number > FRESH]
    names = {number: last + 1 + position for position, number in enumerate(fresh)}
    setattr(coordinator, kept, {names.get(number, number): each for number, each in asked.items()})
    normal_form._rename_parked(broker, names)
    return names
