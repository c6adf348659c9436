"""A play is the command that its page names, in a process of its own: what its words and its end mean."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.ground.errors import HostError
from harness.lab.findings import FINDINGS
from harness.lab.releases import KnownHarm, StoppedError, command_player, harms_of, playing
from harness.lab.releases.harms import advice_plan
from harness.plan import read_plan
from harness.records.release_file import ReleasePlay

Plays = Callable[..., ReleasePlay]


@pytest.fixture
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plays:
    """Plays words with a program of some lines in the place of ackproof."""

    def play(program: str, *words: str, limit_s: float = 60, patch: Path | None = None) -> ReleasePlay:
        monkeypatch.setattr(playing, "_PROGRAM", (sys.executable, "-c", program))
        with (tmp_path / "lock").open("w") as lock:
            player = command_player("4.4.0", patch, tmp_path / "work", tmp_path / "runs", lock.fileno())
            return player(KnownHarm("an entry", "finding", "a harm", lambda release: (*words, release)), limit_s)

    return play


def says(answer: Any, code: int = 0, error: str = "") -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return f"import sys; print({text!r}); print({error!r}, file=sys.stderr); sys.exit({code})"


def finding(verdict: str, why: str = "") -> dict[str, Any]:
    return {"plays": [{"verdict": verdict, "seen": ["a fact"], "why": why}]}


@pytest.mark.parametrize(
    ("words", "program", "shown", "part"),
    [
        ("finding", says(finding("shown"), 1), True, "a fact"),
        ("finding", says(finding("not shown"), 0), False, "a fact"),
        ("finding", says(finding("could not be observed", "no leader"), 2), None, "no leader"),
        ("finding", says("", 70, "ackproof: Kafka 4.4.0 does not start"), None, "does not start (exit code 70)"),
        ("conform", says({"steps": [{"word": "same"}], "disagreements": []}), False, "1 steps were compared"),
        ("conform", says({"steps": [{"word": "same"}], "disagreements": ["b is lost"]}), True, "b is lost"),
        (
            "conform",
            says({"steps": [{"word": "unexplained", "number": 3, "text": "kill 0"}], "disagreements": None}, 1),
            True,
            "step 3, kill 0: unexplained",
        ),
        ("conform", says("", 70, "ackproof: S01 all/2: a step failed"), None, "a step failed"),
        ("campaign", says({"verdict": {"sentence": "nothing broken"}}), False, "nothing broken"),
        ("campaign", says({"verdict": {"sentence": "3 lost"}}, 1), True, "3 lost"),
        ("campaign", says({"verdict": {"sentence": "too little"}}, 2), None, "too little"),
        ("upgrade", says("certified: 5 steps"), False, "certified: 5 steps"),
        ("upgrade", says("not certified: 2 lost", 1), True, "not certified: 2 lost"),
        ("upgrade", says("not certified: step 3", 2), None, "not certified: step 3"),
    ],
)
def test_a_command_s_words_and_exit_code_say_what_showed(
    *, words: str, program: str, shown: bool | None, part: str, plays: Plays
) -> None:
    played = plays(program, words)
    assert played.shown is shown
    assert any(part in text for text in (*played.seen, played.why))


def test_a_play_that_does_not_end_is_ended_and_its_files_are_gone(plays: Plays, tmp_path: Path) -> None:
    endless = "import tempfile, threading; tempfile.mkdtemp(); threading.Event().wait()"
    with pytest.raises(StoppedError):
        plays(endless, "finding", limit_s=0.5)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_play_works_below_the_release_s_directory_and_holds_its_lock(plays: Plays, tmp_path: Path) -> None:
    program = f"import os, tempfile, json; a = {finding('shown')!r}; a['plays'][0]['seen'] = [tempfile.gettempdir(), "
    program += "str([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if "
    program += "os.path.exists(f'/proc/self/fd/{n}')])]; print(json.dumps(a))"
    where, files = plays(program, "finding").seen
    assert where == str(tmp_path / "work") != tempfile.gettempdir()
    assert str(tmp_path / "lock") in files


def test_what_is_left_behind_ends_the_judgement(plays: Plays) -> None:
    with pytest.raises(HostError, match="ackproof heal"):
        plays(says("", 70, "ackproof: broken; some of it was not undone: ackproof heal /d"), "finding")


# --- what is played --------------------------------------------------------------------------------------------------


def names(entries: list[KnownHarm]) -> list[str]:
    return [entry.name for entry in entries]


def test_everything_is_played_once_and_the_most_telling_first(tmp_path: Path) -> None:
    played = names(harms_of("4.4.0", "4.3.1", tmp_path))
    assert len(played) == len(set(played))
    assert set(FINDINGS) <= {name.split()[1] for name in played if name.startswith(("finding", "defect"))}
    order = ["finding 008 commit", "certificate", "usual advice", "finding 010 earliest", "story S40", "story S01"]
    assert sorted(order, key=played.index) == order
    assert {"story G11", "story T22"} <= set(played)


def test_controls_are_not_played(tmp_path: Path) -> None:
    played = names(harms_of("4.4.0", "4.3.1", tmp_path))
    assert "finding 007 decision" in played
    assert not {"finding 007 told", "finding 001 reference", "finding 015 rested"} & set(played)


def test_there_is_no_upgrade_to_an_older_release(tmp_path: Path) -> None:
    assert "certificate" in names(harms_of("4.2.2", "4.2.1", tmp_path))
    assert "certificate" not in names(harms_of("4.2.2", "4.3.1", tmp_path))


def test_a_finding_that_one_of_both_has_comes_before_one_that_neither_has(tmp_path: Path) -> None:
    busy = "finding 012 busy"
    assert names(harms_of("4.3.1", "4.3.0", tmp_path)).index(busy) < 10
    assert names(harms_of("4.4.0", "4.3.1", tmp_path)).index(busy) > 10


def test_with_a_patch_only_findings_are_played(tmp_path: Path) -> None:
    entries = harms_of("4.4.0", "4.4.0", tmp_path, patched=True)
    assert {entry.kind for entry in entries} == {"finding", "defect"}


def test_the_patch_is_handed_to_the_play(plays: Plays) -> None:
    program = (
        f"import sys, json; a = {finding('not shown')!r}; a['plays'][0]['seen'] = sys.argv[1:]; print(json.dumps(a))"
    )
    assert plays(program, "finding", patch=Path("cures")).seen == ("finding", "4.4.0", "--patch", "cures", "--json")
    assert plays(program, "finding").seen == ("finding", "4.4.0", "--json")


def test_the_plan_of_the_usual_advice_is_one_run_of_each_family_on_the_release(tmp_path: Path) -> None:
    plan = read_plan(advice_plan(tmp_path, "4.2.2"))
    assert {run.world.version for run in plan.runs()} == {"4.2.2"}  # type: ignore[union-attr]
    assert sorted(run.family for run in plan.runs()) == ["kill", "partition", "pause", "power"]
    assert [path.name for path in tmp_path.iterdir()] == ["usual-advice-4.2.2.toml"]
