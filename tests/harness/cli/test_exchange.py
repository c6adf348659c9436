"""Export and import on the command line: whole or not at all, and nothing that exists is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.plan import parse_plan
from harness.runs.run.performing import perform_run

PLAN = "[workload]\nduration_ms = 2_000\nwrites_per_second = 20.0\n[faults]\ncount = 0\n[worlds.simulated]\n"


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert perform_run(parse_plan(PLAN, "p").runs()[0], tmp_path / "run").status == "completed"
    return Path("run")


def test_a_history_survives_export_and_import(run_dir: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert exit_code_of(["export", "run", "--out", "a.jsonl"]) == 0
    assert exit_code_of(["import", "a.jsonl", "--out", "copy"]) == 0
    assert exit_code_of(["export", "copy", "--out", "b.jsonl"]) == 0
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    capsysbinary.readouterr()
    assert exit_code_of(["export", "run"]) == 0
    assert capsysbinary.readouterr().out == Path("a.jsonl").read_bytes()


def test_what_exists_is_not_overwritten(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.jsonl").write_text("mine")
    assert exit_code_of(["export", "run", "--out", "a.jsonl"]) == 64
    assert "a.jsonl exists, and results are never overwritten; name another file" in capsys.readouterr().err
    assert Path("a.jsonl").read_text() == "mine"
    before = sorted(run_dir.rglob("*"))
    assert exit_code_of(["import", "a.jsonl", "--out", "run"]) == 64
    assert "run is not empty" in capsys.readouterr().err
    assert sorted(run_dir.rglob("*")) == before


def test_a_directory_without_a_history_exports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("absent", "."):
        assert exit_code_of(["export", name]) == 64
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "holds no history; name the directory of a run" in err


def test_a_damaged_history_leaves_no_file_that_looks_whole(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (parquet,) = run_dir.rglob("clustered.parquet")
    parquet.write_bytes(parquet.read_bytes()[:500])
    assert exit_code_of(["export", "run", "--out", "a.jsonl"]) == 70
    assert "is not a readable Parquet file" in capsys.readouterr().err
    assert not Path("a.jsonl").exists()


def test_a_malformed_line_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"options": {}}\n{"index": 0, \n')
    assert exit_code_of(["import", "bad.jsonl"]) == 64
    assert "bad.jsonl, line 2: " in capsys.readouterr().err
    assert list((tmp_path / "results").iterdir()) == []
