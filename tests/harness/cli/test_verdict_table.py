"""The output of `ackproof check`: whole and readable, whether of one history or of thousands."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from checkers import Exercise, Judgement, Outcome, VerdictLine
from checkers.verdicts.exercised import RunsExercised
from harness.campaigns.campaign.judged_histories import JudgedHistory
from harness.cli.terminal import Terminal
from harness.cli.verdict_table import show_judged
from tests.checkers.findings import a_finding


def judged(path: str, outcome: str, lost: int = 0, reason: str | None = None) -> JudgedHistory:
    judgement = Judgement(
        outcome=Outcome(outcome),
        broken={},
        permitted={},
        lost=lost,
        judged=not reason,
        reason=reason,
        permits_loss=True,
        promise="",
        reasons=0,
        faults=(),
        uncertain=0,
        without_effect=0,
        exercised=RunsExercised(judged=int(not reason), telling=int(not reason)),
    )
    line = VerdictLine(
        history=path,
        valid=not lost,
        counts={"lost-write": lost} if lost else {},
        exercise=Exercise(acknowledged=10, acknowledged_in_fault=4),
        judgement=judgement,
    )
    return JudgedHistory(Path(path), line)


def reported(ones: list[JudgedHistory], capsys: pytest.CaptureFixture[str], width: int = 200) -> list[str]:
    terminal = Terminal(out=Console(width=width, soft_wrap=True, highlight=False))
    show_judged(terminal, ones, [], ["results/c/verdicts.jsonl"])
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_one_history_is_one_row_and_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    lines = reported([judged("results/c/runs/w/s/kill/1", "permitted loss", 3)], capsys)
    assert lines == [
        "outcome acknowledged in faults found history below results/c/runs/w/s/kill",
        "permitted loss 10 4 3 lost-write 1",
        "",
        "1 history: 1 permitted loss; see results/c/verdicts.jsonl",
    ]


def test_of_an_irregular_history_with_findings_both_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    line = VerdictLine(history="a.jsonl", valid=False, counts={"unseen": 1}, irregular="two operations have index 7")
    shown = reported([JudgedHistory(Path("a.jsonl"), line)], capsys)
    assert shown[1] == "not valid 0 0 1 unseen; but two operations have index 7: correct the history first a.jsonl"


def test_worst_come_first_and_among_equals_those_that_lost_most(capsys: pytest.CaptureFixture[str]) -> None:
    lines = reported(
        [
            judged("r/a", "held"),
            judged("r/b", "permitted loss", 1),
            judged("r/c", "permitted loss", 9),
            judged("r/d", "unknown", reason="it was killed"),
            judged("r/e", "broken promise", 1),
        ],
        capsys,
    )
    assert [line.rpartition(" ")[2] for line in lines[1:6]] == ["e", "d", "c", "b", "a"]
    assert "unknown 10 4 it was killed d" in lines


def test_thousands_of_histories_are_told_by_cell_after_those_that_alarm(capsys: pytest.CaptureFixture[str]) -> None:
    many = [judged(f"r/{world}/kill/{n}", "held") for world in ("a", "b") for n in range(2000)]
    losing = [judged(f"r/a/kill/l{n}", "permitted loss", 2) for n in range(3)]
    lines = reported([*many, *losing, judged("r/b/kill/x", "broken promise", 1)], capsys)
    assert lines == [
        "outcome acknowledged in faults found history below r",
        "broken promise 10 4 1 lost-write b/kill/x",
        "",
        "outcomes acknowledged in faults found histories below r",
        "1 broken promise 20010 8004 1 lost-write b/kill",
        "2000 held",
        "3 permitted loss 20030 8012 6 lost-write a/kill",
        "2000 held",
        "",
        "4,004 histories: 1 broken promise, 3 permitted loss, 4,000 held; see results/c/verdicts.jsonl",
    ]


def test_a_screen_is_not_exceeded_whatever_the_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    lines = reported([judged(f"r/{n}/1", "unknown", reason="killed") for n in range(100)], capsys)
    assert len(lines) < 100
    assert "... and 90 more histories, none of them worse" in lines
    assert "... and 60 more groups, none of them worse" in lines


def test_why_is_told_once_a_cell_and_without_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    why = "r/{}/history/a.parquet is not readable"
    lines = reported([judged(f"r/c/{n}", "unknown", reason=why.format(f"c/{n}")) for n in range(100)], capsys)
    assert "unknown 10 4 history/a.parquet is not readable 0" in lines
    assert "100 unknown 1000 400 history/a.parquet is not readable ." in lines


@pytest.mark.parametrize("width", [60, 200])
def test_nothing_is_cut_off_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str], width: int) -> None:
    ones = [judged("results/c/runs/simulated/acks=1,isr=2/kill/1", "permitted loss", 3), judged("x/2", "held")]
    *table, _, _ = reported(ones, capsys, width)
    assert max(len(line) for line in table) <= width
    assert "acks=1,isr=2/kill/1" in "".join("".join(line.split()[-1:]) for line in table)


def test_a_file_that_nobody_could_read_is_a_sentence_and_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    why = "notes.txt is neither Parquet nor has the name of JSON lines (.jsonl, .ndjson, .json); name runs"
    unreadable = JudgedHistory(Path("notes.txt"), VerdictLine(history="notes.txt", valid="unknown", reason=why))
    assert reported([unreadable], capsys) == [why, "", "1 history: 1 unknown; see results/c/verdicts.jsonl"]
    lines = reported([judged("r/a", "held"), unreadable], capsys)
    assert lines[0] == why
    assert lines[3] == "held 10 4 nothing a"


def test_a_client_that_stopped_working_is_named_and_not_blamed_on_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    run = judged("r/a", "held")
    finding = {"key": "t-0", "instance": 0, "client": "kafka-python 3.0.12", "errors": ["TimeLimit"]}
    run.line.anomalies = {"wedged-client": [a_finding("wedged-client", **finding)]}
    run.line.counts = {"wedged-client": 1}
    lines = reported([run], capsys)
    sentence = "Not the log: 1 producer of kafka-python 3.0.12 stopped working in 1 run, where new ones worked"
    assert f"{sentence}; last error: TimeLimit." in lines
