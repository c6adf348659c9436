"""A search of transactions without its reductions, and what both must agree on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from harness.broker.core.broker import Broker
from harness.broker.core.types import NONE
from harness.lab.explore import TransactionScope
from harness.lab.explore.normal_form import NOW_US, UNARMED_US
from harness.lab.explore.searched import Next, State
from harness.lab.explore.transactions import servers
from harness.lab.explore.transactions.space import TransactionSpace
from tests.harness.lab.explore.twin import Observations, number_apart, reached


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
    return number_apart(broker, coordinator)


@contextmanager
def plain_servers() -> Iterator[None]:
    """The coordinator keeps the numbers of its requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "settle_coordinator", _keep_numbers)
        yield


def observations(space: TransactionSpace) -> Observations:
    """All that can be seen of the states that are reached; the rules that break; the number of states."""
    return reached(space, partial(_observed, space))


def _observed(space: TransactionSpace, state: State) -> Any:
    return (
        space.nodes.coordinators[state[0]],
        tuple(space.parts_in(state)),
        tuple(repr(producer) for producer in space.producers_in(state)),
        space.facts.by_digest[state[-1]],
    )


def both(scope: TransactionScope) -> tuple[Observations, Observations]:
    """The observations of a search as it is, and of its twin."""
    reduced = observations(TransactionSpace(scope))
    with plain_servers():
        return reduced, observations(PlainTransactions(scope))
