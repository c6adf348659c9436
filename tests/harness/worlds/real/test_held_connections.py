"""Messages on connections that cannot be looked into: all of a link is held, and the evidence says so."""

import pytest

from harness.worlds.real.target import HeldConnections
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
