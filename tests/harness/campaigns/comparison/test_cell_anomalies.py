"""The fate of anomalies cell by cell, whatever their scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import VerdictLine, proportion
from checkers.measures.recovery import Recovery
from harness.campaigns.comparison import (
    FindingStatus,
    Results,
    cells_by_status,
    finding_sentences,
)
from harness.campaigns.comparison import cell_anomalies_of as anomalies_of
from tests.harness.campaigns.comparison.conftest import STRONG, WEAK, night, run_lines
from workloads.settings import Settings

KEY = "simulated/c/kill"
CLEAN = night("clean", run_lines(STRONG))
LOSSY = night("lossy", run_lines(STRONG, losing=1))


def statuses(earlier: list[Results], latest: Results) -> list[tuple[str, FindingStatus]]:
    return [(kind.anomaly, kind.status) for kind in anomalies_of(earlier, latest)]


def test_an_anomaly_is_new_then_known_then_gone_then_back_in_its_cell() -> None:
    other = night("other", run_lines(STRONG, losing=1, mark="in the log"))
    assert statuses([CLEAN], LOSSY) == [("lost-write", FindingStatus.NEW)]
    assert statuses([CLEAN, LOSSY], other) == [("lost-write", FindingStatus.KNOWN)]
    assert statuses([LOSSY, other], CLEAN) == [("lost-write", FindingStatus.GONE)]
    assert statuses([LOSSY, CLEAN], other) == [("lost-write", FindingStatus.BACK)]
    assert statuses([CLEAN], CLEAN) == []


def test_another_defect_is_a_new_finding_of_a_known_anomaly_and_the_first_is_not_seen() -> None:
    (kind,) = anomalies_of([LOSSY], night("other", run_lines(STRONG, losing=1, mark="in the log")))
    assert (kind.cell, kind.runs, kind.judged) == (KEY, 1, 10)
    assert [(finding.new, finding.seen, finding.runs) for finding in kind.findings] == [
        (True, True, 1),
        (False, False, 1),
    ]


def test_an_anomaly_names_the_nights_that_showed_it_first_and_last() -> None:
    nights = [night(name, run_lines(STRONG, losing=losing)) for name, losing in (("1", 1), ("2", 0), ("3", 1))]
    (kind,) = anomalies_of(nights, night("4", run_lines(STRONG)))
    assert (kind.status, kind.first, kind.last) == (FindingStatus.GONE, "1", "3")
    (kind,) = anomalies_of(nights, night("4", run_lines(STRONG, losing=1)))
    assert (kind.status, kind.first, kind.last) == (FindingStatus.KNOWN, "1", "4")


def test_what_the_settings_permit_is_of_no_kind() -> None:
    assert anomalies_of([night("1", run_lines(WEAK))], night("2", run_lines(WEAK, losing=3))) == []


def test_a_known_finding_is_not_new_in_another_cell() -> None:
    both = night("2", run_lines(STRONG, losing=1), run_lines(STRONG, losing=1, world="kafka"))
    assert [(kind.cell, kind.status) for kind in anomalies_of([LOSSY], both)] == [
        (KEY, FindingStatus.KNOWN),
        ("kafka/c/kill", FindingStatus.KNOWN),
    ]


def test_a_finding_that_is_known_elsewhere_is_new_in_a_cell_that_shows_it_more_often_than_chance_explains() -> None:
    before = night("1", run_lines(STRONG, losing=1), run_lines(STRONG, cell="d/kill"))
    seldom, often = (
        night("2", run_lines(STRONG, losing=1), run_lines(STRONG, cell="d/kill", losing=losing)) for losing in (1, 9)
    )
    assert [kind.status for kind in anomalies_of([before], seldom)] == [FindingStatus.KNOWN, FindingStatus.KNOWN]
    assert [kind.status for kind in anomalies_of([before], often)] == [FindingStatus.KNOWN, FindingStatus.NEW]


def test_the_example_is_a_run_of_the_cell_where_there_is_one() -> None:
    lines = run_lines(STRONG, losing=1), run_lines(STRONG, cell="d/kill", losing=2, mark="in the log")
    assert [kind.example.run for kind in anomalies_of([], night("1", *lines))] == [
        f"runs/{KEY}/10",
        "runs/simulated/d/kill/9",
    ]


def test_a_cell_is_shown_by_a_run_of_its_own_before_smaller_ones_of_other_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finding has one example in all cells; of one that is in both cells it is in the first."""
    monkeypatch.setattr(Path, "is_dir", lambda path: True)  # runs are kept
    kinds = anomalies_of(
        [], night("1", *both_cells(), run_lines(STRONG, cell="d/kill", runs=20, losing=1, anomaly="unseen"))
    )
    lines = list(finding_sentences(kinds, "1"))
    assert lines[4:] == ["  smallest: 1 fault of leader, seed 20", "  ackproof replay 1/runs/simulated/d/kill/20"]
    lines = list(finding_sentences(anomalies_of([], night("1", *both_cells())), "1"))
    assert lines[4] == "  smallest, in another cell: 1 fault of leader, seed 10"


def both_cells() -> tuple[Iterator[VerdictLine], ...]:
    return run_lines(STRONG, losing=1), run_lines(STRONG, cell="d/kill", losing=1)


def test_with_other_settings_an_anomaly_is_neither_known_nor_gone() -> None:
    other = Settings(min_insync_replicas=3)
    assert statuses([LOSSY], night("2", run_lines(other, losing=1))) == [("lost-write", FindingStatus.NEW)]
    (kind,) = anomalies_of([LOSSY], night("2", run_lines(other)))
    assert (kind.status, kind.why) == (
        FindingStatus.NOT_LOOKED_FOR,
        "the cell has other settings: min.insync.replicas was 2, is 3",
    )
    (kind,) = anomalies_of([LOSSY], night("2", run_lines(STRONG, cell="other/kill")))
    assert (kind.status, kind.why) == (FindingStatus.NOT_LOOKED_FOR, "no run of the cell was judged")


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [({"in_fault": 0, "fault_exercise": []}, "not exercised"), ({"fault_exercise": None}, "unknown")],
)
def test_of_a_cell_that_was_not_put_to_the_test_nothing_is_gone(changes: dict[str, Any], outcome: str) -> None:
    untested = night("2", run_lines(STRONG, **changes))
    assert {cell.outcome for cell in untested.cells.values()} == {outcome}
    (kind,) = anomalies_of([LOSSY], untested)
    assert (kind.status, kind.why) == (FindingStatus.NOT_LOOKED_FOR, f"the outcome of the cell is {outcome}")
    said = "\n".join(finding_sentences([kind], "2"))
    assert said.startswith(
        f"not looked for in {KEY}: lost-write; 1 finding, in 1 of 10 runs before; the outcome of the cell is"
    )
    assert "chance" not in said


def test_one_run_that_showed_an_anomaly_says_little_of_how_often_it_shows() -> None:
    once = night("1", run_lines(STRONG, runs=1, losing=1))
    (kind,) = anomalies_of([once], CLEAN)
    assert kind.missed_by_chance == pytest.approx((0, 0.975**10))
    *_, line = finding_sentences([kind], "2")
    assert (
        line == "  as frequent as before, it would be missed by 10 runs with a chance of 0 to 78 % (at 95 % confidence)"
    )


@pytest.mark.parametrize(
    "switched",
    [{"planted_bug": "acknowledge-after-append"}, {"missed_epoch": "kafka"}, {"idempotence_window": "connection"}],
)
def test_what_a_switched_defect_does_is_new_with_it_and_gone_without_it(switched: dict[str, Any]) -> None:
    planted = night("planted", run_lines(Settings(min_insync_replicas=2, **switched), losing=1))
    assert statuses([CLEAN], planted) == [("lost-write", FindingStatus.NEW)]
    assert statuses([CLEAN, planted], CLEAN) == [("lost-write", FindingStatus.GONE)]


def test_of_a_silent_anomaly_the_chance_follows_from_its_most_frequent_finding() -> None:
    twice = night("1", run_lines(STRONG, losing=1), run_lines(STRONG, losing=3, mark="in the log"))
    (kind,) = anomalies_of([twice], night("2", run_lines(STRONG, runs=20)))
    assert (kind.runs, kind.judged, kind.looked) == (3, 20, 20)
    share = proportion(3, 20)
    assert share.method == "Clopper-Pearson"
    assert kind.missed_by_chance == pytest.approx(((1 - share.high) ** 20, (1 - share.low) ** 20))


def test_nights_of_which_only_a_matrix_is_left_are_passed_over() -> None:
    alone = msgspec.structs.replace(CLEAN, findings=None)
    assert statuses([LOSSY, alone], LOSSY) == [("lost-write", FindingStatus.KNOWN)]
    assert anomalies_of([LOSSY], alone) == []


def test_cells_with_findings_are_counted_by_fate() -> None:
    lines = run_lines(STRONG, losing=1, anomaly="unseen"), run_lines(STRONG, cell="other/kill", losing=1)
    assert (
        cells_by_status(anomalies_of([LOSSY], night("2", *lines))) == "new in 1 cell, known in 1 cell, gone from 1 cell"
    )
    assert cells_by_status([]) == "none"


def test_a_log_that_did_not_come_back_is_said_as_findings_are() -> None:
    stalled = night("1", run_lines(STRONG, recovery=Recovery(tried=True, unwritten={"ackproof-0": "no answer"})))
    assert (
        next(finding_sentences(anomalies_of([], stalled), "1"))
        == f"new in {KEY}: stalled; 1 finding, in 10 of 10 runs."
    )
    assert statuses([stalled], CLEAN) == [("stalled", FindingStatus.GONE)]


def test_no_more_than_twelve_cells_have_sentences() -> None:
    many = night("1", *(run_lines(STRONG, cell=f"{number}/kill", losing=1) for number in range(15)))
    lines = list(finding_sentences(anomalies_of([], many), "1"))
    assert len([line for line in lines if line.startswith("new in ")]) == 12
    assert lines[-1] == "... and 3 more such cells."
