"""Messages on connections that cannot be looked into: all of a link is held, and the evidence says so."""

import pytest

from harness.worlds.real.held_connections import HeldConnections
from nemesis.cluster import Link
from tests.conftest import ObedientCluster

LINKS = (Link(0, 1),)


@pytest.mark.parametrize("action", ["hold", "drop"])
def test_the_whole_connection_is_cut_until_the_release(action: str) -> None:
    cluster = ObedientCluster()
    messages = HeldConnections(cluster)
    assert getattr(messages, action)(LINKS, "AlterPartition")["whole_connection"] is True
    assert cluster.links == set(LINKS)
    messages.release(LINKS)
    assert cluster.links == set()


def test_where_no_cut_was_observed_nothing_is_claimed_to_be_held() -> None:
    assert HeldConnections(ObedientCluster(blind=True)).hold(LINKS) == {}


def test_the_end_of_a_hold_heals_no_partition_that_lasts_and_neither_the_other_way_round() -> None:
    cluster = ObedientCluster()
    connections = HeldConnections(cluster)
    more = (*LINKS, Link(1, 0))
    connections.cut(LINKS)
    connections.hold(more)
    connections.release(more, "hold")
    assert cluster.links == set(LINKS), "only what nobody else cut is whole again"
    connections.hold(LINKS)
    connections.heal(LINKS)
    assert cluster.links == set(LINKS), "the hold lasts"
    connections.release(LINKS, "hold")
    assert cluster.links == set()


def test_the_end_of_one_hold_does_not_end_another_on_the_same_link() -> None:
    cluster = ObedientCluster()
    messages = HeldConnections(cluster)
    messages.hold(LINKS, "Fetch")
    messages.hold(LINKS, "Produce")
    messages.drop(LINKS, "Fetch")
    messages.release(LINKS, "hold", "Fetch")
    messages.release(LINKS, "hold", "Produce")
    assert cluster.links == set(LINKS)
    messages.release(LINKS, "drop", "Fetch")
    assert cluster.links == set()
