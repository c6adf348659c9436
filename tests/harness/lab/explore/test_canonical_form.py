"""The canonical form of a state follows from the declared types of fields; one that says too little is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from harness.broker.core.follower import Follower
from harness.broker.core.messages import Fetch
from harness.broker.core.producers import Producers
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import ParkedFetch
from harness.broker.core.transactions import PartitionTransactions
from harness.broker.core.types import (
    AnyOrder,
    Image,
    NodeId,
    Opaque,
    Outside,
    PartitionState,
    TopicConfig,
    TopicState,
)
from harness.lab.explore import scope_named
from harness.lab.explore.brokers import BrokerNode
from harness.lab.explore.canonical_form import Number, UnknownFieldError, renamed, tree_of
from harness.lab.explore.space import Space

#: Broker 0 is called 2, 1 is called 0, 2 is called 1.
NAMES = (2, 0, 1)


class Gained(Producers):
    """A class of the core with fields more, as somebody may add them."""

    added: NodeId
    apart: Outside[NodeId]

    def __init__(self) -> None:
        super().__init__()
        self.added = self.apart = NodeId(1)


def form(hint: Any, value: Any) -> Any:
    kind: Any = msgspec.defstruct("Added", [("added", hint)], frozen=True)
    return tree_of(kind(value))[1]


@pytest.mark.parametrize(
    "hint", [Any, object, dict, tuple, list[Any], Callable[[], None], type[Follower], int | NodeId, dict[str, object]]
)
def test_a_field_whose_type_says_too_little_is_an_error(hint: Any) -> None:
    with pytest.raises(UnknownFieldError, match=r"Added\.added"):
        form(hint, None)


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (int, 1, 1),
        (NodeId, 1, 0),
        (NodeId | None, 1, 0),
        (NodeId | None, None, None),
        (NodeId, 100, 100),
        (tuple[NodeId, ...], (2, 0), (1, 2)),
        (tuple[int, ...], (2, 0), (2, 0)),
        (tuple[NodeId, int], (2, 2), (1, 2)),
        (list[tuple[NodeId, int]], [(2, 2)], ((1, 2),)),
        (dict[NodeId, int], {0: 7, 1: 8}, ((0, 8), (2, 7))),
        (frozenset[str], frozenset("ba"), ("a", "b")),
        (AnyOrder[tuple[str, ...]], ("b", "a"), ("a", "b")),
        (Opaque[Any], (1, 0), (1, 0)),
    ],
)
def test_a_field_that_holds_a_broker_is_renamed_and_no_other(hint: Any, value: Any, expected: Any) -> None:
    assert renamed(form(hint, value), NAMES) == expected


def test_a_field_that_a_class_of_the_core_gains_is_in_its_form_and_is_renamed() -> None:
    shown, transactions = tree_of(Gained()), tree_of(PartitionTransactions())
    assert shown == ("Gained", transactions, (), Number(1))
    assert renamed(shown, NAMES) == ("Gained", transactions, (), 0)


def test_an_attribute_that_its_class_does_not_declare_is_an_error() -> None:
    node = BrokerNode(NodeId(0))
    node.disk.added = 1  # type: ignore[attr-defined]
    with pytest.raises(UnknownFieldError, match=r"Disk has fields that it does not declare: \['added'\]"):
        tree_of(node)


def test_a_class_that_shows_no_fields_is_an_error() -> None:
    with pytest.raises(UnknownFieldError, match="shows no fields"):
        tree_of(object())


def test_every_field_of_a_replica_is_declared() -> None:
    space = Space(scope_named("calm-1"))
    node = space.nodes._load(space.begin()[1])
    assert all(vars(replica).keys() <= Replica.__annotations__.keys() for replica in node.process.replicas.values())


def test_a_parked_fetch_is_renamed_with_its_client() -> None:
    parked, other = (ParkedFetch(node, Fetch(0, node, 0, ()), {}) for node in (NodeId(1), NodeId(0)))
    assert renamed(tree_of(parked), (1, 0)) == tree_of(other) != tree_of(parked)


def test_a_replica_in_a_failed_directory_is_renamed() -> None:
    first, second = NodeId(0), NodeId(1)
    state = PartitionState((first, second), (first,), first, 0, 0, offline=(second,))
    image = Image(topics={"t": TopicState(TopicConfig(), (state,))})
    swapped = PartitionState((second, first), (second,), second, 0, 0, offline=(first,))
    other = Image(topics={"t": TopicState(TopicConfig(), (swapped,))})
    assert renamed(tree_of(image), (1, 0)) == tree_of(other) != tree_of(image)
