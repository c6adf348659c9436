"""Dense numbers against the plain way to find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.columns.ids import dense_ids, distinct_pairs, one_of, stable_order
from workloads.history import Kind

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-(2**63), -5, 0, 1, 2, 3, 2**62])))
SMALL_PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)))


def _columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first.copy(), second.copy()


@given(PAIRS)
def test_ids_number_the_different_pairs_in_their_order(pairs: list[tuple[int, int]]) -> None:
    ids = dense_ids(*_columns(pairs), 4)
    distinct = sorted(set(pairs))
    assert list(zip(ids.partition.tolist(), ids.number.tolist(), strict=True)) == distinct
    assert [distinct[number] for number in ids.of.tolist()] == pairs


@given(SMALL_PAIRS)
def test_distinct_pairs_are_each_there_once_and_in_order(pairs: list[tuple[int, int]]) -> None:
    first, second = distinct_pairs(*_columns(pairs), 3)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == sorted(set(pairs))


@pytest.mark.parametrize("largest", [2, 2**16 - 1, 2**16, 2**40])
@given(st.lists(st.integers(0, 2)))
def test_equal_ids_stay_as_they_stand(largest: int, small: list[int]) -> None:
    ids = np.array([largest if number == 2 else number for number in small], dtype=np.int64)
    assert stable_order(ids).tolist() == sorted(range(len(small)), key=lambda index: small[index])


def test_codes_are_looked_up_whatever_their_sign() -> None:
    codes = np.array([-1, *map(int, Kind), 127], dtype=np.int8)
    wanted = (int(Kind.READ), int(Kind.SEND))
    assert one_of(codes, *wanted).tolist() == np.isin(codes, wanted).tolist()
