"""`ackproof plan`: what would be run, for how long, and what it promises; nothing is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.campaign import estimating
from harness.cli.app import exit_code_of

PLANS = Path(__file__).parents[3] / "plans"


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "cores", lambda: 2)
    monkeypatch.chdir(tmp_path)


def test_a_plan_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "default.toml")]) == 0
    assert capsys.readouterr().out == (
        "default: 3,648 runs of 96 cells: 16 choices of settings × 3 families of faults (kill, pause, partition) × "
        "2 worlds, about 4 min\n"
    )


def test_explained_it_has_worlds_promises_and_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "kafka.toml"), "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "the plan's times" in shown
    assert "acks=1, enable.idempotence=false under kill: Acknowledged writes may be lost: acks=1" in shown
    assert "acks=all, enable.idempotence=true under kill: No acknowledged write may be lost" in shown
    assert "acks=all, enable.idempotence=true under power: Acknowledged writes may be lost: a copy was" in shown
    assert "\nseed 20240607, from which every run's follows; the first: runs/kafka/acks=1," in shown


def test_machines_get_every_run_with_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "demo.toml"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["cells"], len(shown["runs"])) == (4, 206)
    assert len({(run["world"], run["cell"], run["seed"]) for run in shown["runs"]}) == 206


def test_a_scripted_story_refers_to_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "stories" / "S40.toml"), "--explain"]) == 0
    assert "what comes of it under which settings: ackproof stories S40" in capsys.readouterr().out


def test_a_script_that_its_world_cannot_perform_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text('story = "S54"\n[workload]\npartitions = 1\n[worlds.processes]\nruns = 1\n')
    assert exit_code_of(["plan", "p.toml"]) == 64
    assert 'the story S54 says "release last 0>controller"' in capsys.readouterr().err


def test_a_plan_that_cannot_be_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text("famillies = []\n")
    assert exit_code_of(["plan", "p.toml"]) == 64
    assert "families" in capsys.readouterr().err
