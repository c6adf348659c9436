"""Intervals against values from statistical tables."""

from __future__ import annotations

import pytest

from checkers.verdicts.proportions import incomplete_beta, proportion


def test_nothing_of_n_is_bounded_by_three_in_n() -> None:
    assert proportion(0, 300).high == pytest.approx(0.01)
    assert proportion(0, 300).method == "rule of three"
    assert proportion(0, 2).high == 1.0


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(1, 10, 0.00253, 0.44502), (5, 10, 0.18709, 0.81291), (10, 10, 0.69150, 1.0), (3, 1_000_000, 6.187e-7, 8.767e-6)],
)
def test_k_of_n_is_the_exact_interval(count: int, total: int, low: float, high: float) -> None:
    found = proportion(count, total)
    assert found.method == "Clopper-Pearson"
    assert (found.low, found.high) == (pytest.approx(low, rel=1e-3), pytest.approx(high, rel=1e-3))


def test_of_no_trials_nothing_is_known() -> None:
    found = proportion(0, 0)
    assert (found.low, found.high, found.rate, found.method) == (0.0, 1.0, 0.0, "none")


def test_large_counts_agree_with_the_normal_approximation() -> None:
    found = proportion(400_000, 1_000_000)
    assert (found.low, found.high) == (pytest.approx(0.39904, abs=1e-5), pytest.approx(0.40096, abs=1e-5))


def test_the_beta_function_is_the_tail_of_the_binomial() -> None:
    assert incomplete_beta(1, 3, 0.5) == pytest.approx(1 - 0.5**3)
    assert incomplete_beta(3, 1, 0.5) == pytest.approx(0.5**3)


def test_more_than_all_is_refused() -> None:
    with pytest.raises(ValueError, match="not 3 of 2"):
        proportion(3, 2)
