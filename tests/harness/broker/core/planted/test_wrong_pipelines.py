"""Wrong forms of offsets in transactions, in whole runs: the checkers find each, and nothing without it."""

from __future__ import annotations

import pytest

from harness.lab.search.coordinated_portfolios import PIPELINED
from harness.lab.search.judged_run import JudgedRun, run_in_memory

#: Runs of each portfolio that are performed without a bug, and of the first one with it, until it is found.
RUNS = 2
TRIES = 4
SEED = 7


def run(bug: str, number: int, portfolio: int = 0) -> JudgedRun:
    return run_in_memory(PIPELINED[portfolio].spec(SEED, number, {"planted.bug": bug}))


def test_nothing_is_found_in_pipelines_as_they_are() -> None:
    for portfolio in range(len(PIPELINED)):
        for number in range(RUNS):
            judged_run = run("none", number, portfolio)
            assert (judged_run.verdict.anomalies, judged_run.broken, judged_run.verdict.valid) == ({}, None, True)
            counts = judged_run.verdict.transactions
            assert counts is not None
            assert counts.committed > 20
            assert counts.offsets_aborted > 5
            assert counts.offsets_refused


@pytest.mark.parametrize(
    ("bug", "expected"),
    [
        ("count-pending-offsets", "aborted-commit"),
        ("count-aborted-offsets", "missing-effect"),
        ("keep-pending-offsets", "missing-effect"),
        ("offsets-of-any-member", "doubled-effect"),
        ("answer-unstable-offsets", "unstable-offset"),
    ],
)
def test_a_wrong_form_is_found_in_virtual_time(bug: str, expected: str) -> None:
    assert any(expected in run(bug, number).verdict.anomalies for number in range(TRIES))
