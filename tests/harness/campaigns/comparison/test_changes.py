"""The second of two campaigns is worse, or not, or that is not known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.campaigns.comparison import Change, compare_results
from tests.harness.campaigns.comparison.conftest import PLANTED, STRONG, WEAK, night, run_lines
from workloads.settings import Settings


def changed(before: dict[str, Any], after: dict[str, Any], settings: Settings = STRONG) -> tuple[Change, int]:
    compared = compare_results(night("A", run_lines(settings, **before)), night("B", run_lines(settings, **after)))
    (cell,) = compared.cells
    return cell.change, compared.exit_code


def test_a_promise_that_is_broken_now_is_worse_and_one_that_holds_again_is_better() -> None:
    assert changed({}, {"losing": 1}) == (Change.WORSE, 1)
    assert changed({"losing": 1}, {}) == (Change.BETTER, 0)
    assert changed({"losing": 1}, {"losing": 1}) == (Change.SAME, 0)


def test_a_cell_that_was_not_exercised_is_not_better() -> None:
    assert changed({}, {"in_fault": 0}) == (Change.UNTOLD, 2)
    assert changed({"losing": 1}, {"in_fault": 0}) == (Change.UNTOLD, 2)
    assert changed({"in_fault": 0}, {"in_fault": 0}) == (Change.SAME, 2)
    assert changed({"in_fault": 0}, {}) == (Change.DIFFERS, 0)


def test_permitted_loss_is_worse_only_beyond_chance() -> None:
    assert changed({"losing": 1}, {"losing": 9}, WEAK) == (Change.WORSE, 1)
    assert changed({"losing": 9}, {"losing": 1}, WEAK) == (Change.BETTER, 0)
    assert changed({"losing": 3}, {"losing": 5}, WEAK) == (Change.SAME, 0)
    assert changed({"runs": 1}, {"runs": 1, "losing": 1}, WEAK) == (Change.DIFFERS, 0)


def test_what_a_promise_held_and_b_lost_is_worse_though_b_may_lose() -> None:
    before, after = night("A", run_lines(STRONG, runs=1)), night("B", run_lines(WEAK, runs=1, losing=1))
    compared = compare_results(before, after)
    assert (compared.cells[0].change, compared.exit_code) == (Change.WORSE, 1)
    assert compared.cells[0].why.startswith("B lost what A held: ")
    assert compared.cells[0].settings["acks"] == ("all", 1)


def test_a_cell_that_b_did_not_run_is_not_better() -> None:
    before = night("A", run_lines(STRONG), run_lines(STRONG, cell="other/kill"))
    compared = compare_results(before, night("B", run_lines(STRONG)))
    assert [cell.change for cell in compared.cells] == [Change.SAME, Change.UNTOLD]
    assert compared.exit_code == 2
    assert compared.sentence == (
        "Whether B is worse than A is not known: 1 cell in both (1 same), 1 only in A (1 not known)."
    )


@pytest.mark.parametrize(("losing", "change", "code"), [(0, Change.DIFFERS, 0), (1, Change.WORSE, 1)])
def test_a_cell_of_b_alone_is_worse_where_it_broke_a_promise(losing: int, change: Change, code: int) -> None:
    after = night("B", run_lines(STRONG), run_lines(STRONG, cell="other/kill", losing=losing))
    compared = compare_results(night("A", run_lines(STRONG)), after)
    assert (compared.cells[1].change, compared.exit_code) == (change, code)
    assert f": 1 cell in both (1 same), 1 only in B (1 {change})" in compared.sentence


def test_an_anomaly_that_is_new_in_its_cell_is_worse_though_the_cell_was_broken_before() -> None:
    before = night("A", run_lines(STRONG, losing=1))
    compared = compare_results(before, night("B", run_lines(STRONG, losing=1, anomaly="unseen")))
    assert compared.cells[0].change is Change.SAME
    assert compared.exit_code == 1
    assert compared.sentence == (
        "B is worse than A: 1 cell in both (1 same), new findings that nothing permits in 1 cell."
    )


def test_another_defect_of_an_anomaly_that_its_cell_had_before_is_not_worse() -> None:
    before = night("A", run_lines(STRONG, losing=1))
    compared = compare_results(before, night("B", run_lines(STRONG, losing=1, mark="in the log")))
    assert [(finding.new, finding.seen) for kind in compared.kinds for finding in kind.findings] == [
        (True, True),
        (False, False),
    ]
    assert (compared.new_defects, compared.exit_code) == ([], 0)
    assert compared.sentence == "B is not worse than A: 1 cell in both (1 same)."


def test_an_anomaly_that_only_another_cell_had_before_is_worse() -> None:
    """A finding of one cell excuses no other cell that shows it in all its runs."""
    losses = {"anomaly": "unseen"}
    before = night("A", run_lines(STRONG, losing=1, **losses), run_lines(STRONG, cell="other/kill", losing=10))
    after = night("B", run_lines(STRONG, losing=1, **losses), run_lines(STRONG, cell="other/kill", losing=10, **losses))
    compared = compare_results(before, after)
    assert [cell.change for cell in compared.cells] == [Change.SAME, Change.SAME]
    assert [(defect.cell, defect.anomaly) for defect in compared.new_defects] == [("simulated/other/kill", "unseen")]
    assert compared.exit_code == 1


def test_a_planted_bug_is_another_system_and_no_other_setting() -> None:
    clean, planted = night("A", run_lines(STRONG)), night("B", run_lines(PLANTED, losing=1))
    (cell,) = compare_results(clean, planted).cells
    assert (cell.settings, cell.system) == ({}, {"planted.bug": ("none", "acknowledge-after-append")})


def test_a_new_finding_that_is_permitted_is_not_worse() -> None:
    before = night("A", run_lines(WEAK, losing=1))
    assert compare_results(before, night("B", run_lines(WEAK, losing=1, story="follower"))).exit_code == 0


def test_campaigns_without_a_common_cell_say_nothing_of_each_other() -> None:
    compared = compare_results(night("A", iter(())), night("B", iter(())))
    assert compared.exit_code == 2
    assert compared.sentence == "Whether B is worse than A is not known: no cell in either."
    assert compare_results(night("A", iter(())), night("B", run_lines(STRONG))).exit_code == 2


def test_a_matrix_alone_does_not_make_a_known_finding_a_new_one() -> None:
    both = night("A", run_lines(STRONG, losing=1))
    alone = msgspec.structs.replace(both, findings=None)
    compared = compare_results(alone, both)
    assert (compared.cells[0].change, compared.new_defects, compared.exit_code) == (Change.SAME, [], 0)
