"""A search of groups without its reductions, and what both must agree on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from harness.broker.core.broker import Broker
from harness.broker.core.groups.coordinator import LOG
from harness.lab.explore import GroupScope
from harness.lab.explore.groups import coordinators
from harness.lab.explore.groups.space import GroupSpace
from harness.lab.explore.normal_form import settle_times_of_groups
from harness.lab.explore.searched import Next, State
from tests.harness.lab.explore.twin import Observations, number_apart, reached


class PlainGroups(GroupSpace):
    """A late request arrives whether that changes anything or not."""

    def _matters(self, state: State, step: Next, index: int) -> bool:
        return True


def _keep_numbers(broker: Broker) -> dict[int, int]:
    """Every request of the coordinator has a number of its own, and each of them is waited for."""
    coordinator = broker._groups.on(LOG)
    settle_times_of_groups(coordinator)
    return number_apart(broker, coordinator) | number_apart(broker, coordinator, "_generations", 10_000)


@contextmanager
def plain_coordinator() -> Iterator[None]:
    """The coordinator keeps the numbers of its requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinators, "settle_groups", _keep_numbers)
        yield


def observations(space: GroupSpace) -> Observations:
    """All that can be seen of the states that are reached; the rules that break; the number of states."""
    return reached(space, partial(_observed, space))


def _observed(space: GroupSpace, state: State) -> Any:
    members = tuple(repr(member) for member in space.members_in(state))
    return repr(space.nodes.coordinators[state[0]]), members, space.facts.by_digest[state[-1]]


def both(scope: GroupScope) -> tuple[Observations, Observations]:
    """The observations of a search as it is, and of its twin."""
    reduced = observations(GroupSpace(scope))
    with plain_coordinator():
        return reduced, observations(PlainGroups(scope))
