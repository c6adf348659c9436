"""A search of transactions without its reductions, and what both must agree on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from harness.explore import TransactionScope, normal_form
from harness.explore.normal_form import FRESH, NOW_US, UNARMED_US
from harness.explore.searched import Next, State
from harness.explore.transactions import servers
from harness.explore.transactions.space import TransactionSpace
from harness.reference.core.broker import Broker
from harness.reference.core.types import NONE


class PlainTransactions(TransactionSpace):
    """A late request arrives whether that changes anything or not."""

    def _matters(self, state: State, step: Next, index: int) -> bool:
        return True


def _keep_numbers(broker: Broker) -> dict[int, int]:
    """Every request of the coordinator has a number of its own, and each of them is waited for."""
    coordinator = broker._transactions
    coordinator._look_for_old_us = UNARMED_US
    for transaction in coordinator._transactions.values():
        for partition, sent in transaction.markers.items():
            if sent.at_us != NONE:
                transaction.markers[partition] = replace(sent, at_us=NOW_US)
    last = max((number for number in coordinator._asked if number <= FRESH), default=0)
    fresh = [number for number in coordinator._asked if number > FRESH]
    names = {number: last + 1 + position for position, number in enumerate(fresh)}
    coordinator._asked = {names.get(number, number): asked for number, asked in coordinator._asked.items()}
    normal_form._rename_parked(broker, names)
    return names


@contextmanager
def plain_servers() -> Iterator[None]:
    """The coordinator keeps the numbers of its requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "settle_coordinator", _keep_numbers)
        yield


def observations(space: TransactionSpace) -> tuple[set[Any], set[str], int]:
    """All that can be seen of the states that are reached; the rules that break; the number of states.

    Nothing follows from a state that breaks a rule.
    """
    begin = space.begin()
    seen, todo = {begin}, [begin]
    observed, broken = set(), set()
    for state in todo:
        observed.add(_observed(space, state))
        for step in map(space.judged, space.follow(state)):
            if step.broken is not None:
                broken.add(step.broken[0])
            elif step.state not in seen:
                seen.add(step.state)
                todo.append(step.state)
    return observed, broken, len(seen)


def _observed(space: TransactionSpace, state: State) -> Any:
    return (
        space.nodes.coordinators[state[0]],
        tuple(space.parts_in(state)),
        tuple(repr(producer) for producer in space.producers_in(state)),
        space.facts.by_digest[state[-1]],
    )


def both(scope: TransactionScope) -> tuple[tuple[set[Any], set[str], int], tuple[set[Any], set[str], int]]:
    """The observations of a search as it is, and of its twin."""
    reduced = observations(TransactionSpace(scope))
    with plain_servers():
        return reduced, observations(PlainTransactions(scope))
