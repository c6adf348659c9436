"""Intervals against values from statistical tables."""

from __future__ import annotations

import pytest

from checkers.verdicts.proportions import proportion


def test_nothing_of_n_is_bounded_by_three_in_n() -> None:
    assert proportion(0, 300).high == pytest.approx(0.01)
    assert proportion(0, 300).method == "rule of three"
    assert proportion(0, 2).high == 1.0


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(1, 10, 0.00253, 0.44502), (5, 10, 0.18709, 0.81291), (10, 10, 0.69150, 1.0), (3, 1_000_000, 6.187e-7, 8.767e-6)],
)
def test_k_of_n_is_the_exact_interval(count: int, total: int, low: float, high: float) -> None:
    interval = proportion(count, total)
    assert interval.method == "Clopper-Pearson"
    assert (interval.low, interval.high) == (pytest.approx(low, rel=1e-3), pytest.approx(high, rel=1e-3))


def test_of_no_trials_nothing_is_known() -> None:
    interval = proportion(0, 0)
    assert (interval.low, interval.high, interval.rate, interval.method) == (0.0, 1.0, 0.0, "none")


def test_large_counts_agree_with_the_normal_approximation() -> None:
    interval = proportion(400_000, 1_000_000)
    assert (interval.low, interval.high) == (pytest.approx(0.39904, abs=1e-5), pytest.approx(0.40096, abs=1e-5))


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        (1, 1, 0.025000000000000022, 1.0),
        (1, 10, 0.002528578544461785, 0.4450161170281951),
        (5, 10, 0.18708602844739863, 0.8129139715526013),
        (7, 123, 0.023184443513814712, 0.11374417315422986),
        (999, 1000, 0.9944410757201749, 0.9999746825125087),
        (3, 10**6, 6.186725499232777e-07, 8.767247786145137e-06),
        (12_345, 10**9, 1.212818230847271e-05, 1.2564720564490085e-05),
    ],
)
def test_intervals_are_those_of_version_0_1_0(count: int, total: int, low: float, high: float) -> None:
    """It had the incomplete beta function, its continued fraction and its inverse by itself."""
    interval = proportion(count, total)
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


def test_the_bounds_are_tails_of_the_binomial() -> None:
    assert (1 - proportion(1, 3).low) ** 3 == pytest.approx(1 - 0.025)
    assert proportion(3, 3).low ** 3 == pytest.approx(0.025)


def test_more_than_all_is_refused() -> None:
    with pytest.raises(ValueError, match="not 3 of 2"):
        proportion(3, 2)
