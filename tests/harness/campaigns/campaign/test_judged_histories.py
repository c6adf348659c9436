"""Judging: every run gets a verdict, also one that left no history, and the verdict meets its promise."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.simulated import measure_simulated
from checkers import (
    CheckError,
    Exercise,
    FoundHistory,
    JavaMissingError,
    Outcome,
    SourceKind,
    Verdict,
    VerdictLine,
    exit_code_of,
)
from checkers.measures.recovery import Recovery
from checkers.measures.writes_met import FaultExercise
from harness.campaigns.campaign import judged_histories
from harness.campaigns.campaign.judged_histories import (
    JudgedHistory,
    count_cells,
    is_unreadable,
    judge_all,
    write_verdicts,
)
from harness.ground.errors import HarnessError, JavaError, ResultsError
from harness.ground.machine.translated_errors import translated_errors
from harness.ground.progress import Progress
from harness.plan import parse_plan
from harness.records.run_record import Ended, write_record
from tests.nemesis.receipt_factory import a_receipt
from workloads.history import HistoryError

PLAN = parse_plan('[matrix]\nacks = [1, "all"]\n[worlds.simulated]\nruns = 3', "p.toml")
KILL = a_receipt(targets=(1,))
LOST = {"lost-write": 1}
DRAINED = Exercise(drained=True, acknowledged=9, acknowledged_in_fault=5)
EXERCISED: dict[str, Any] = {
    "history": "",
    "valid": True,
    "exercise": DRAINED,
    "faults": [KILL],
    "fault_exercise": [FaultExercise(sequence=0, acknowledged=20)],
    "recovery": Recovery(tried=True),
}


def run_at(directory: Path, acks: object, *, history: bool = True, crashed: bool = False) -> Path:
    spec = next(run for run in PLAN.runs() if run.settings["acks"] == acks)
    directory.mkdir(parents=True)
    failed = Ended(status="harness-failed", reason="broker 1 died")
    write_record(directory, spec, failed if crashed or not history else Ended(status="completed"))
    if history:
        (directory / "history").mkdir()
        (directory / "history" / "clustered.parquet").touch()
    return directory


def check_saying(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> list[Path]:
    asked: list[Path] = []

    def check(histories: list[FoundHistory], **_: object) -> list[Verdict]:
        asked.extend(history.path for history in histories if history.files or history.kind is SourceKind.FILE)
        return [msgspec.structs.replace(verdict, history=str(history.path)) for history in histories]

    monkeypatch.setattr(judged_histories, "check", check)
    return asked


@pytest.mark.parametrize(
    ("acks", "verdict", "outcome"),
    [
        ("all", Verdict(history="", valid=True, exercise=DRAINED, faults=[KILL]), "unknown"),
        (1, Verdict(history="", valid=False, counts=LOST, exercise=DRAINED, faults=[KILL]), "permitted loss"),
    ],
)
def test_a_run_that_failed_in_the_harness_shows_nothing_by_its_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: object, verdict: Verdict, outcome: str
) -> None:
    check_saying(monkeypatch, verdict)
    (judged,) = judge_all([run_at(tmp_path / "run", acks, crashed=True)], Progress())
    assert (judged.outcome, judged.line.valid) == (outcome, "unknown")
    assert "broker 1 died" in str(judged.line.reason)


@pytest.mark.parametrize(
    ("acks", "verdict", "outcome"),
    [
        (1, Verdict(history="", valid=False, counts=LOST, exercise=DRAINED, faults=[KILL]), "permitted loss"),
        ("all", Verdict(history="", valid=False, counts=LOST, exercise=DRAINED, faults=[KILL]), "broken promise"),
        ("all", Verdict(**EXERCISED), "held"),
        ("all", Verdict(history="", valid=True, faults=[KILL]), "unknown"),
    ],
)
def test_a_finding_meets_the_promise_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: object, verdict: Verdict, outcome: str
) -> None:
    check_saying(monkeypatch, verdict)
    (judged,) = judge_all([run_at(tmp_path / "run", acks)], Progress())
    assert judged.outcome == outcome
    assert (judged.line.why_unknown is not None) == (outcome == "unknown")


def test_a_run_that_left_no_history_is_unknown_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = run_at(tmp_path / "runs" / "good", 1)
    bad = run_at(tmp_path / "runs" / "bad", 1, history=False)
    asked = check_saying(monkeypatch, Verdict(**EXERCISED))
    judged = {run.path: run for run in judge_all([tmp_path], Progress())}
    assert asked == [good]
    assert (judged[bad].outcome, judged[bad].line.why_unknown) == ("unknown", "no history: broker 1 died")
    assert judged[good].outcome == "held"


def test_a_run_whose_history_may_not_be_listed_was_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_at(tmp_path / "run", 1)
    closed = str(run / "history")
    real = {name: getattr(os, name) for name in ("scandir", "listdir")}

    def refusing(name: str) -> Callable[[str], object]:
        def call(path: str = ".") -> object:
            if str(path) == closed:  # as its mode would for everybody but root, who may run these tests
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return real[name](path)

        return call

    for name in real:
        monkeypatch.setattr(os, name, refusing(name))
    check_saying(monkeypatch, Verdict(history="", valid=True, exercise=DRAINED))
    (judged,) = judge_all([run], Progress())
    assert judged.line.why_unknown == f"no history: {closed} cannot be listed (Permission denied)"


def test_a_run_whose_history_was_deleted_was_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_at(tmp_path / "run", 1)
    shutil.rmtree(run / "history")
    check_saying(monkeypatch, Verdict(history="", valid=True, exercise=DRAINED))
    (judged,) = judge_all([run], Progress())
    assert judged.line.why_unknown == "no history: the run completed, and its files are not there any more"


def test_a_history_of_another_tool_is_valid_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign.jsonl").touch()
    check_saying(monkeypatch, Verdict(history="", valid=False, counts=LOST))
    (judged,) = judge_all([tmp_path / "foreign.jsonl"], Progress())
    assert judged.outcome == "not valid"
    assert count_cells([], [judged]).exit_code == 1


def test_an_empty_history_of_another_tool_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign.jsonl").touch()
    check_saying(monkeypatch, Verdict(history="", valid=False, reason="nothing was sent or read"))
    (judged,) = judge_all([tmp_path / "foreign.jsonl"], Progress())
    assert (judged.outcome, judged.line.why_unknown) == ("unknown", "nothing was sent or read")
    assert count_cells([], [judged]).exit_code == 2


def test_nothing_to_judge_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="absent does not exist; name runs, a campaign, or files of JSON lines"):
        judge_all([tmp_path / "absent"], Progress())


def test_verdicts_name_histories_by_their_place_in_the_campaign(tmp_path: Path) -> None:
    inside = JudgedHistory(tmp_path / "runs" / "a", VerdictLine(history="x", valid=True))
    path = write_verdicts(tmp_path, [inside]).file
    assert [json.loads(line)["history"] for line in path.read_text().splitlines()] == ["runs/a"]


def test_a_verdict_outlives_a_history_that_cannot_be_read_any_more(tmp_path: Path) -> None:
    def judged(name: str, verdict: Verdict) -> JudgedHistory:
        return JudgedHistory(tmp_path / name, VerdictLine.of(verdict))

    good = Verdict(history="", valid=False, counts=LOST, exercise=Exercise(attempted=9))
    gone = Verdict(history="", valid="unknown", reason="layout 1, this version reads 2")
    cut = Verdict(history="", valid="unknown", reason="cut off", exercise=Exercise(attempted=4))
    assert write_verdicts(tmp_path, [judged("a", good), judged("b", gone)]).kept == 0
    again = [judged("a", gone), judged("b", gone)]
    file, kept = write_verdicts(tmp_path, again)
    assert kept == 1
    assert [json.loads(line)["valid"] for line in file.read_text().splitlines()] == [False, "unknown"]
    assert count_cells([tmp_path], again).exit_code == 2, "this check could tell nothing of them"
    file, kept = write_verdicts(tmp_path, [judged("a", cut)])
    assert kept == 0, "what was read now is newer"
    assert json.loads(file.read_text())["reason"] == "cut off"


def test_runs_of_a_checked_place_count_as_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run alone was held, and the exit code 0, where the campaign of the same runs said 2."""
    runs = [run_at(tmp_path / "runs" / name, "all") for name in ("1", "2", "3")]
    check_saying(monkeypatch, Verdict(**EXERCISED))
    for count, code in ((2, 2), (3, 0)):
        judged = judge_all([tmp_path], Progress())[:count]
        assert {run.outcome for run in judged} == {"held"}
        assert count_cells([tmp_path], judged).exit_code == code
    assert count_cells(runs[:1], judged[:1]).exit_code == 0, "a run that is named is judged alone"


def test_a_broken_promise_outweighs_an_unknown() -> None:
    assert exit_code_of([Outcome.HELD, Outcome.UNKNOWN, Outcome.BROKEN_PROMISE]) == 1
    assert exit_code_of([Outcome.HELD, Outcome.UNKNOWN]) == 2
    assert exit_code_of([Outcome.HELD, Outcome.PERMITTED_LOSS]) == 0
    assert exit_code_of([Outcome.HELD, Outcome.NOT_EXERCISED]) == 2
    assert exit_code_of([Outcome.UNKNOWN, Outcome.STALLED]) == 1


@pytest.mark.parametrize(
    ("raised", "reported"),
    [
        (JavaMissingError("install java"), JavaError),
        (CheckError("Spark failed"), HarnessError),
        (HistoryError("x is no history"), ResultsError),
    ],
)
def test_errors_of_the_checkers_become_the_harness_own(raised: Exception, reported: type[Exception]) -> None:
    with pytest.raises(reported, match=str(raised)), translated_errors():
        raise raised


def test_the_simulator_is_measured_by_what_it_did(tmp_path: Path) -> None:
    speed = measure_simulated(PLAN, 2, tmp_path)
    assert speed.schedules == 2
    assert speed.virtual_seconds_per_second > speed.schedules_per_second > 0
    assert speed.schedules_per_second_without_invariants > 0
    assert len(list(speed.lines())) == 4


def test_one_damaged_run_does_not_take_the_other_verdicts_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_at(tmp_path / "runs" / "good", 1)
    (run_at(tmp_path / "runs" / "bad", 1) / "run.json").write_text("{")
    (run_at(tmp_path / "runs" / "worse", 1, history=False) / "run.json").write_text("{")
    odd = run_at(tmp_path / "runs" / "odd", 1) / "run.json"
    odd.write_text(odd.read_text().replace('"min.insync.replicas"', '"min.insync.replica"'))
    check_saying(monkeypatch, Verdict(**EXERCISED))
    judged = {run.path.name: run for run in judge_all([tmp_path], Progress())}
    outcomes = {name: run.outcome for name, run in judged.items()}
    assert outcomes == {"good": "held", "bad": "unknown", "worse": "unknown", "odd": "unknown"}
    assert 'did you mean "min.insync.replicas"' in (judged["odd"].line.why_unknown or "")
    assert "run.json cannot be read" in (judged["bad"].line.why_unknown or "")
    assert "run.json cannot be read" in (judged["worse"].line.why_unknown or "")


def test_a_directory_of_json_lines_is_all_its_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.jsonl", "b.ndjson", "verdicts.jsonl", "notes.txt"):
        (tmp_path / name).touch()
    asked = check_saying(monkeypatch, Verdict(history="", valid=True))
    judge_all([tmp_path, tmp_path / "a.jsonl"], Progress())
    assert asked == [tmp_path / "a.jsonl", tmp_path / "b.ndjson"]


def test_a_directory_without_a_history_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no history; name runs, a campaign, or files of JSON lines"):
        judge_all([tmp_path], Progress())
    assert list(tmp_path.iterdir()) == []


def test_unreadable_is_said_of_foreign_histories_only(tmp_path: Path) -> None:
    unknown = VerdictLine(history="", valid="unknown", reason="line 1: not JSON")
    assert is_unreadable(JudgedHistory(tmp_path / "x.jsonl", unknown))
    assert not is_unreadable(JudgedHistory(tmp_path / "run", unknown, is_run=True))
    assert not is_unreadable(JudgedHistory(tmp_path / "x.jsonl", VerdictLine(history="", valid=False)))
