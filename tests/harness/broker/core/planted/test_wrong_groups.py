"""Wrong forms of the rules of groups, in whole runs: the checkers find each, and nothing without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.lab.search.coordinated_portfolios import GROUPED
from harness.lab.search.judged_run import JudgedRun, run_in_memory

#: Runs of each portfolio that are performed without a bug; with it, until the first that shows it.
RUNS = 3
SEED = 1


def runs_of(bug: str) -> Iterator[JudgedRun]:
    changed = {"planted.bug": bug}
    for portfolio in GROUPED:
        yield from (run_in_memory(portfolio.spec(SEED, number, changed)) for number in range(RUNS))


def test_nothing_is_found_in_groups_as_they_are() -> None:
    runs = [*runs_of("none")]
    assert [(judged_run.verdict.anomalies, judged_run.broken) for judged_run in runs] == [({}, None)] * len(runs)


@pytest.mark.parametrize(
    ("bug", "expected"),
    [
        ("commit-offsets-after-append", "group-went-back"),
        ("commit-of-any-member", "two-owners"),
        ("assign-unrevoked", "two-owners"),
        ("load-first-commits", "group-went-back"),
        ("load-no-members", "stale-generation"),
    ],
)
def test_a_wrong_form_is_found_in_virtual_time(bug: str, expected: str) -> None:
    assert any(expected in judged_run.verdict.anomalies for judged_run in runs_of(bug))
