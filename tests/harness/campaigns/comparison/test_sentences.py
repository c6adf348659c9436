"""Sentences about two campaigns."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaigns.comparison import compare_results, figures_of, made_with, sentences, side_by_side
from tests.checkers.findings import a_finding
from tests.harness.campaigns.comparison.conftest import PLANTED, STRONG, WEAK, night, run_lines

KEY = "simulated/c/kill"
RUN = f"runs/{KEY}/9"


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


def test_a_new_finding_has_its_story_its_smallest_seed_and_the_command_that_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not any("replay" in line for line in reported({}, {"losing": 2}))  # no run is kept
    monkeypatch.setattr(Path, "is_dir", lambda path: True)
    assert reported({}, {"losing": 2}) == [
        f"worse: {KEY}: held, then broken promise.",
        f"new in {KEY}: lost-write; 1 finding, in 2 of 10 runs.",
        "  smallest: 1 fault of leader, seed 9",
        f"  ackproof replay B/{RUN}",
        "  ackproof accept B 4c8a00238254",
    ]


def test_a_finding_that_is_gone_always_says_how_likely_that_is_chance() -> None:
    before = "  as frequent as before, it would be missed by 10 runs with a chance"
    assert reported({"losing": 1}, {})[-2:] == [
        f"gone from {KEY}: lost-write; 1 finding, in 1 of 10 runs before.",
        f"{before} of 0.28 to 98 % (at 95 % confidence)",
    ]
    assert reported({"losing": 9}, {})[-1] == f"{before} of 0 to 0.03 % (at 95 % confidence)"
    assert reported({"losing": 10}, {"runs": 30})[-1] == (
        "  as frequent as before, it would be missed by 30 runs with a chance below 0.01 % (at 95 % confidence)"
    )


def test_a_finding_that_was_not_looked_for_says_why() -> None:
    compared = compare_results(night("A", run_lines(STRONG, losing=1)), night("B", run_lines(STRONG, cell="d/kill")))
    assert list(sentences(compared))[-2:] == [
        f"not looked for in {KEY}: lost-write; 1 finding, in 1 of 10 runs before; no run of the cell was judged.",
        "  smallest: 1 fault of leader, seed 10",
    ]


def test_findings_of_a_cell_that_was_not_run_are_counted_though_another_cell_has_others_of_the_anomaly() -> None:
    before = night("A", run_lines(STRONG, losing=1), run_lines(STRONG, cell="d/kill", losing=1))
    compared = compare_results(before, night("B", run_lines(STRONG, losing=1, story="follower")))
    (line,) = [sentence for sentence in sentences(compared) if sentence.startswith("not looked for")]
    assert line.startswith("not looked for in simulated/d/kill: lost-write; 1 finding, in 1 of 10 runs before; ")


def test_defects_that_come_and_go_are_numbers_in_one_line() -> None:
    first, gone, come = (
        {"losing": 1, "anomaly": "broken-invariant", "mark": mark, "story": mark} for mark in ("one", "two", "three")
    )
    before = night("A", run_lines(STRONG, **first), run_lines(STRONG, **gone))
    after = night("B", run_lines(STRONG, **first), run_lines(STRONG, **come))
    compared = compare_results(before, after)
    shown, *_ = sentences(compared)
    assert shown == (
        f"known in {KEY}: broken-invariant; 2 findings, 1 of them new, 1 more not seen this time, in at least 1 of 20 "
        "runs."
    )
    each = [line for line in sentences(compared, all_=True) if line not in list(sentences(compared))]
    assert [line.partition(": broken-invariant ")[0] for line in each] == ["known", "new", "not seen"]
    assert each[2].endswith(f", in 1 run of {KEY}: 1 fault of two, seed 10.")


def test_findings_of_one_cell_are_one_sentence() -> None:
    names = ("lost-write", "unseen")
    both = {"counts": dict.fromkeys(names, 1), "anomalies": {name: [a_finding(name, key="p-0")] for name in names}}
    compared = compare_results(night("A", run_lines(STRONG, runs=1)), night("B", run_lines(STRONG, runs=1, **both)))
    (line,) = [sentence for sentence in sentences(compared) if sentence.startswith("new in ")]
    assert line == f"new in {KEY}: lost-write, unseen; 2 findings, in 1 of 1 run."


def test_that_nothing_was_found_is_said() -> None:
    assert reported({}, {}) == ["Findings that nothing permits: none in either."]


def test_another_system_is_not_said_to_be_other_settings() -> None:
    before, after = night("A", run_lines(STRONG)), night("B", run_lines(PLANTED))
    other = "not the same system: planted.bug was none, is acknowledge-after-append."
    assert next(sentences(compare_results(before, after))) == other
    acks = next(line for line in sentences(compare_results(before, night("B", run_lines(WEAK)))) if "acks" in line)
    assert acks == "not the same settings under the same name: acks was all, is 1."


def test_what_a_campaign_was_made_with_is_one_line() -> None:
    record = {
        "worlds": {"simulated": {"planned": 1}, "kafka": {"version": "4.3.1", "client": "kafka-python"}},
        "versions": {"kafka-python": "3.0.12"},
        "seed": 7,
    }
    assert made_with(record) == "simulated, kafka 4.3.1 with kafka-python 3.0.12, seed 7"
    record["worlds"] = {"kafka": {"client": "java", "client_version": "3.9.2", "other_clients": ["java:4.3.1"]}}
    assert made_with(record) == "kafka with java 3.9.2 and java:4.3.1, seed 7"
