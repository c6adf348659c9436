"""An accepted finding counts until its last day, in its cells, and as long as it was never gone."""

from __future__ import annotations

from datetime import UTC, date, datetime

import msgspec
import pytest

from checkers import Acceptance, AcceptanceStatus, Cell, DatedCell, accepting, matrix_of, still_back
from checkers.verdicts.acceptance import acceptance_words, missed_by_chance
from tests.checkers.findings import a_finding
from tests.harness.campaigns.comparison.conftest import STRONG, night, run_lines

KEY = "simulated/c/kill"
BEGAN = "2027-01-10T02:00:00+00:00"


def cell_of(*, runs: int = 3, losing: int = 3, **changes) -> Cell:
    (cell,) = night("n", run_lines(STRONG, runs=runs, losing=losing, **changes)).cells.values()
    return cell


LOSSY, CLEAN = cell_of(), cell_of(losing=0)
(IDENTITY,) = LOSSY.identities["lost-write"]


def entry(**changes) -> Acceptance:
    usual = {"identity": IDENTITY, "cells": (KEY,), "reason": "KAFKA-1", "owner": "ann", "until": date(2027, 1, 31)}
    return Acceptance(**usual | changes)


def judged(cell: Cell, *entries: Acceptance, began: str = BEGAN, earlier: tuple[DatedCell, ...] = ()) -> Cell:
    (answer,) = accepting([cell], entries, began, {KEY: earlier})
    return answer


def status(cell: Cell) -> list[str]:
    return [acceptance.status for acceptance in cell.accepted]


def test_a_cell_whose_findings_are_all_accepted_is_excused_and_stays_broken() -> None:
    cell = judged(LOSSY, entry())
    assert (cell.excused, status(cell), cell.outcome) == (True, ["accepted"], LOSSY.outcome)
    matrix = matrix_of([cell])
    assert matrix.verdict.exit_code == 0
    assert matrix.verdict.sentence.startswith("No promise was broken, apart from accepted findings in 1 of 1 cell. ")
    assert matrix.verdict.outcomes["broken promise"] == 1


def test_one_finding_that_is_not_accepted_keeps_the_cell_red() -> None:
    both = night("n", run_lines(STRONG, losing=1), run_lines(STRONG, losing=2, mark="in the log")).cells[KEY]
    cell = judged(both, entry())
    assert (cell.excused, status(cell)) == (False, ["accepted"])
    assert matrix_of([cell]).verdict.exit_code == 1
    assert judged(both, entry(identity="", anomaly="lost-write")).excused


@pytest.mark.parametrize(
    ("began", "excused"), [("2027-01-31T23:59:59+00:00", True), ("2027-02-01T00:00:00+00:00", False)]
)
def test_the_last_day_counts_and_the_next_does_not(began: str, excused: bool) -> None:
    cell = judged(LOSSY, entry(), began=began)
    assert (cell.excused, status(cell)) == (excused, ["accepted" if excused else "expired"])


def test_in_another_cell_the_same_finding_is_red() -> None:
    cell = judged(LOSSY, entry(cells=("simulated/other/kill",)))
    assert (cell.excused, status(cell)) == (False, ["grown"])
    assert matrix_of([cell]).verdict.exit_code == 1


def test_a_finding_that_was_gone_and_is_back_is_red_until_it_is_accepted_anew() -> None:
    nights = [DatedCell(f"2027-01-0{day}T00:00:00+00:00", cell) for day, cell in ((1, LOSSY), (2, CLEAN), (3, LOSSY))]
    first = entry(since=datetime(2027, 1, 1, tzinfo=UTC))
    assert status(judged(LOSSY, first, earlier=tuple(nights[:1]))) == ["accepted"]
    assert status(judged(LOSSY, first, earlier=tuple(nights[:2]))) == ["back"]
    assert status(judged(LOSSY, first, earlier=tuple(nights))) == ["back"]
    assert status(judged(LOSSY, entry(since=datetime(2027, 1, 3, tzinfo=UTC)), earlier=tuple(nights))) == ["accepted"]


@pytest.mark.parametrize(
    ("before", "runs", "losing", "expected"),
    [
        ((1, 20), 20, 20, "more often"),
        ((1, 20), 20, 6, "accepted"),  # with a chance of 4.6 %
        ((1, 20), 20, 1, "accepted"),
        ((20, 20), 20, 1, "accepted"),
        ((1, 1), 20, 20, "accepted"),
        ((1, 5), 6, 6, "accepted"),
        (None, 20, 20, "accepted"),
    ],
)
def test_a_finding_that_shows_in_more_runs_than_chance_explains_is_red(
    before: tuple[int, int] | None, runs: int, losing: int, expected: str
) -> None:
    cell = judged(cell_of(runs=runs, losing=losing), entry(shown={KEY: before} if before else {}))
    assert (status(cell), cell.excused) == ([expected], expected == "accepted")
    if not cell.excused:
        words = "is accepted, but shows more often than chance explains: 20 of 20 runs, 1 of 20 when it was accepted"
        assert acceptance_words(cell) == f"{words} (ann: KAFKA-1)"


@pytest.mark.parametrize(
    ("silent", "losing", "expected"),
    [(20, 1, "accepted"), (20, 3, "accepted"), (20, 20, "more often"), (1, 6, "accepted")],
)
def test_where_it_was_not_seen_it_is_accepted_until_it_shows_more_often_than_chance_explains(
    silent: int, losing: int, expected: str
) -> None:
    elsewhere = entry(cells=("simulated/other/kill",), shown={"simulated/other/kill": (1, 20), KEY: (0, silent)})
    assert status(judged(cell_of(runs=20, losing=losing), elsewhere)) == [expected]


def test_a_finding_that_shows_as_another_anomaly_too_is_accepted_with_it() -> None:
    runs = run_lines(
        STRONG,
        counts={"lost-write": 1, "unseen": 1},
        anomalies={
            "lost-write": [a_finding("lost-write", key="ackproof-0", value=7)],
            "unseen": [a_finding("unseen", key="ackproof-0", messages=[7])],
        },
    )
    both = night("n", runs).cells[KEY]
    assert {*both.identities} == {"lost-write", "unseen"}
    assert status(judged(both, entry())) == ["accepted", "accepted"]
    assert judged(both, entry(identity="", anomaly="lost-write")).excused
    assert status(judged(both, entry(until=date(2027, 1, 1)))) == ["expired", "expired"]


def test_silence_of_a_rare_finding_or_of_runs_that_prove_nothing_is_not_freedom() -> None:
    rare = cell_of(runs=10, losing=1)
    began = ("2027-01-01T00:00:00+00:00", "2027-01-02T00:00:00+00:00")
    silent = DatedCell(began[1], cell_of(runs=10, losing=0))
    assert status(judged(rare, entry(), earlier=(DatedCell(began[0], rare), silent))) == ["accepted"]
    idle = DatedCell(began[1], cell_of(runs=9, losing=0, in_fault=0))
    assert status(judged(LOSSY, entry(), earlier=(DatedCell(began[0], LOSSY), idle))) == ["accepted"]
    many = tuple(DatedCell(began[1], silent.cell) for _ in range(30))
    assert status(judged(rare, entry(), earlier=(DatedCell(began[0], rare), *many))) == ["back"]


def test_the_chance_to_miss_what_is_still_there() -> None:
    assert missed_by_chance(3, 3, 3) == pytest.approx(1 / 35)  # 1/5 * 2/6 * 3/7
    assert missed_by_chance(1, 10, 0) == 1
    assert missed_by_chance(5, 3, 1) < missed_by_chance(3, 3, 1)


def test_a_log_that_does_not_come_back_is_accepted_by_its_name() -> None:
    stalled = msgspec.structs.replace(CLEAN, outcome=CLEAN.outcome.__class__.STALLED, stalled={"no leader": 2})
    assert judged(stalled, entry(identity="", anomaly="stalled")).excused
    assert not judged(stalled, entry()).excused
    both = msgspec.structs.replace(LOSSY, stalled={"no leader": 2})
    assert not judged(both, entry()).excused


def test_of_several_entries_the_best_counts() -> None:
    old, new = entry(until=date(2026, 1, 1)), entry(until=date(2027, 3, 1), owner="bob")
    (acceptance,) = judged(LOSSY, old, new, entry(cells=("elsewhere",))).accepted
    assert (acceptance.status, acceptance.owner) == (AcceptanceStatus.ACCEPTED, "bob")


def test_a_report_that_is_made_again_without_the_nights_keeps_what_was_back() -> None:
    cell = judged(LOSSY, entry())
    (red,) = [msgspec.structs.replace(acceptance, status="back") for acceptance in cell.accepted]
    before = msgspec.structs.replace(cell, accepted=[red], excused=False)
    (again,) = still_back([cell], [before])
    assert (again.excused, status(again)) == (False, ["back"])
    assert still_back([cell], [cell]) == [cell]
