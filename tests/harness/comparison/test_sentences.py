"""What people are told of two campaigns."""

from __future__ import annotations

from harness.comparison import compare_results, figures_of, made_with, sentences, side_by_side
from tests.harness.comparison.conftest import STRONG, WEAK, night, run_lines

RUN = "runs/simulated/c/kill/9"


def reported(before: dict[str, int], after: dict[str, int]) -> list[str]:
    return list(
        sentences(compare_results(night("A", run_lines(STRONG, **before)), night("B", run_lines(STRONG, **after))))
    )


def test_figures_that_did_not_change_stand_once() -> None:
    before, after = (night("n", run_lines(WEAK, losing=losing)).cells["simulated/c/kill"] for losing in (0, 2))
    shown = side_by_side(before, after)
    assert shown["outcome"] == "held → permitted loss"
    assert shown["runs that lost"] == "0/10 → 2/10"
    assert shown["at most"] == "25.89% → -"
    assert shown["recovery"] == "never"
    assert side_by_side(before, None)["outcome"] == "held → -"
    assert figures_of(None).keys() == figures_of(before).keys()


def test_a_new_finding_has_its_story_its_smallest_seed_and_the_command_that_shows_it() -> None:
    (identity,) = night("B", run_lines(STRONG, losing=2)).findings or {}
    assert reported({}, {"losing": 2}) == [
        "worse: simulated/c/kill: held, then broken promise",
        f"new: lost-write {identity}, in 2 runs; smallest: 1 fault of leader, seed 9; again: ackproof replay B/{RUN}",
    ]


def test_a_finding_that_is_gone_says_how_likely_that_is_chance() -> None:
    assert reported({"losing": 1}, {})[1].endswith("so many runs would miss it with a chance of 35%")
    assert reported({"losing": 9}, {})[1].endswith("seed 2")


def test_findings_of_one_run_are_one_sentence() -> None:
    names = ("lost-write", "unseen")
    both = {"counts": dict.fromkeys(names, 1), "anomalies": {name: [{"key": "p-0"}] for name in names}}
    compared = compare_results(night("A", run_lines(STRONG, runs=1)), night("B", run_lines(STRONG, runs=1, **both)))
    assert len([one for one in sentences(compared) if one.startswith("new: ")]) == 1
    assert len(compared.new_defects) == 2


def test_what_a_campaign_was_made_with_is_one_line() -> None:
    record = {
        "worlds": {"simulated": {"planned": 1}, "kafka": {"version": "4.3.1", "client": "kafka-python"}},
        "versions": {"kafka-python": "3.0.12"},
        "seed": 7,
    }
    assert made_with(record) == "simulated, kafka 4.3.1 with kafka-python 3.0.12, seed 7"
