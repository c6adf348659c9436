"""Rule 26: replicas of a new topic alternate between racks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.broker.core.placement import alternate


def test_without_racks_partition_p_starts_at_broker_p() -> None:
    assert alternate(dict.fromkeys(range(3), ""), 4, 2) == ((0, 1), (1, 2), (2, 0), (0, 1))


def test_leaders_alternate_between_racks_too() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    assert alternate(racks, 6, 3) == ((0, 2, 4), (2, 4, 0), (4, 0, 2), (1, 3, 5), (3, 5, 1), (5, 1, 3))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.integers(1, 9), st.integers(1, 9))
def test_replicas_are_different_brokers_in_as_many_racks_as_there_can_be(
    names: list[str], partitions: int, factor: int
) -> None:
    racks, factor = dict(enumerate(names)), min(factor, len(names))
    for replicas in alternate(racks, partitions, factor):
        assert len(set(replicas)) == len(replicas) == factor
        assert len({racks[node] for node in replicas}) == min(factor, len(set(names)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_racks_of_one_size_have_equal_shares(size: int) -> None:
    racks = {node: "abc"[node % 3] for node in range(3 * size)}
    shares = Counter(node for replicas in alternate(racks, 9 * size, 3) for node in replicas)
    assert set(shares.values()) == {9}
