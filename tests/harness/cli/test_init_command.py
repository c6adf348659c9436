"""`ackproof init`: files to begin with, of which none is ever put in the place of another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from harness.cli.app import exit_code_of
from harness.plan import KINDS, LANGUAGES, ClientProgram, Processes, plans_here, read_plan, starter

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


#: The kinds that are plans and files for CI.
PLANS = [kind for kind in KINDS if kind != "client"]


@pytest.mark.parametrize("kind", PLANS)
def test_every_kind_writes_files_that_can_be_read_and_says_how_to_go_on(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["init", kind]) == 0
    going_on = capsys.readouterr().out.split()
    assert exit_code_of(going_on[1:]) == 0
    for plan in Path().rglob("*.toml"):
        assert read_plan(plan).runs()
        assert plan.read_text().startswith("# ")


def test_a_client_program_has_a_language_and_is_checked_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["init", "client", "--language", "python"]) == 0
    assert capsys.readouterr().out == "ackproof client check python3 client.py\n"
    (plan,) = (run.world for run in read_plan(Path("client.toml")).runs()[:1])
    assert plan == Processes(client=ClientProgram(command=("python3", "client.py")))
    compile(Path("client.py").read_text(), "client.py", "exec")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_of_each_language_comes_with_its_plan_and_the_words_that_check_it(
    language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["init", "client", "--language", language]) == 0
    assert f"ackproof client check {LANGUAGES[language].command}" in capsys.readouterr().out
    assert read_plan(Path("client.toml")).runs()
    program = [path for path in Path().iterdir() if '"hello"' in path.read_text() or "hello:" in path.read_text()]
    assert program


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["client"], "name a language: ackproof init client --language python"),
        (["client", "--language", "pyton"], 'unknown language "pyton"; did you mean "python"'),
        (["demo", "--language", "python"], "--language is for the kind client; leave it out"),
    ],
)
def test_a_language_is_for_a_client_program(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["init", *words]) == 64
    assert problem in " ".join(capsys.readouterr().err.split())
    assert not list(Path().iterdir())


def test_nothing_that_is_there_is_overwritten_and_then_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ackproof").mkdir()
    Path("ackproof/run.sh").write_text("mine")
    assert exit_code_of(["init", "ci"]) == 64
    assert "ackproof/run.sh exists, and no file is overwritten" in capsys.readouterr().err
    assert [path.name for path in Path().rglob("*") if path.is_file()] == ["run.sh"]
    assert Path("ackproof/run.sh").read_text() == "mine"


def test_every_plan_of_the_project_may_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"canary", "racks", "stories/S40", *PLANS} - {"ci"} <= plans_here().keys()
    assert exit_code_of(["init", "stories/S40"]) == 0
    assert Path("stories-S40.toml").is_file()
    assert exit_code_of(["init", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert {"ci", "racks", "stories/S40"} <= {line.split()[0] for line in listed}


def test_no_two_kinds_write_a_file_of_one_name() -> None:
    written = [to for kind in {**plans_here(), **KINDS} for to in starter(kind, "python")]
    assert sorted(set(written)) == sorted(written)
    assert exit_code_of(["init", "stories/S01"]) == exit_code_of(["init", "drawn/S01"]) == 0


@pytest.mark.parametrize("kind", ["../ci/run", "/etc/passwd", "stories/../../pyproject", "sock", ""])
def test_a_kind_that_is_none_is_refused_with_the_nearest(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["init", kind]) == 64
    assert "there are default, demo" in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_no_kind_is_a_question() -> None:
    assert exit_code_of(["init"]) == 64


def test_the_script_can_be_run_and_workflows_are_yaml() -> None:
    assert exit_code_of(["init", "ci"]) == 0
    assert os.access("ackproof/run.sh", os.X_OK)
    subprocess.run(["bash", "-n", "ackproof/run.sh"], check=True, timeout=120)
    assert subprocess.run(["ackproof/run.sh"], check=False, timeout=120, capture_output=True).returncode == 64
    for workflow in Path(".github/workflows").iterdir():
        (job,) = yaml.safe_load(workflow.read_text())["jobs"].values()
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_nothing_of_continuous_integration_names_a_host() -> None:
    for file in (*starter("ci").values(), ROOT / "requirements-dev.lock"):
        assert "://" not in file.read_text()
