"""The command line: exit codes, one sentence for what is wrong, machines and terminals."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from pathlib import Path

import click
import pytest

from checkers import Scratch, ScratchKind
from harness.cli import app
from harness.cli.app import COMMANDS, exit_code_of
from harness.ground.errors import JavaError, PlanError, StartError
from harness.ground.machine import java
from harness.records.journal import FILE_NAME, Journal
from harness.worlds import machine_abilities


def command_raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(app._Commands, "get_command", lambda *_: click.Command("fail", callback=fail))


@pytest.mark.parametrize(
    ("error", "code", "reported"),
    [
        (PlanError("p.toml: acks=2 is not possible"), 64, "ackproof: p.toml: acks=2 is not possible\n"),
        (StartError("broker 1 died; read logs/1.log"), 70, "ackproof: broker 1 died; read logs/1.log\n"),
        (KeyboardInterrupt(), 130, "\nackproof: interrupted\n"),
        (
            KeyboardInterrupt("interrupted; what was done is kept"),
            130,
            "\nackproof: interrupted; what was done is kept\n",
        ),
    ],
)
def test_an_error_is_one_sentence_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, reported: str
) -> None:
    command_raising(monkeypatch, error)
    assert exit_code_of(["fail"]) == code
    assert capsys.readouterr() == ("", reported)


def test_a_bug_is_one_line_and_a_log_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    command_raising(monkeypatch, ZeroDivisionError("a\nb"))
    assert exit_code_of(["fail"]) == 70
    reported = capsys.readouterr().err
    assert reported.startswith("ackproof: unexpected ZeroDivisionError: a b; the traceback is in ")
    assert reported.count("\n") == 1
    (log,) = tmp_path.iterdir()
    assert str(log) in reported
    assert "raise error" in log.read_text()


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command_raising(monkeypatch, ZeroDivisionError("a"))
    assert exit_code_of(["--debug", "fail"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_wrong_command_line_is_not_mistaken_for_an_unknown_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["campain"]) == 64
    assert 'unknown command "campain"; did you mean "campaign"?' in capsys.readouterr().err
    assert exit_code_of(["pln"]) == 64
    assert 'did you mean "plan"?' in capsys.readouterr().err
    assert exit_code_of(["frobnicate"]) == 64
    assert "there are init, plan, assess, run" in capsys.readouterr().err
    assert exit_code_of(["campaign"]) == 64
    assert exit_code_of(["campaign", "p.toml", "--seed", "-1"]) == 64


def test_every_command_exists_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert exit_code_of([name, "--help"]) == 0
        assert f"Usage: ackproof {name}" in capsys.readouterr().out


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["--help"]) == 0
    assert "64   the plan or the command is wrong" in capsys.readouterr().out


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ackproof 0.")


def test_a_bad_plan_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text("[settings]\nmin.insync.replicas = 4\n[worlds.simulated]\n")
    for command in ("run", "campaign"):
        assert exit_code_of([command, "p.toml"]) == 64
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "p.toml: settings: min.insync.replicas=4 can never be met with replication.factor=3" in err
    assert not (tmp_path / "results").exists()


def test_settings_on_the_command_line_are_checked_like_those_of_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text("[worlds.simulated]\n")
    for given, reported in (
        ("ack=1", 'ackproof: --settings: ack: unknown setting "ack"; did you mean "acks"?\n'),
        ("acks", 'ackproof: --settings acks: write NAME=VALUE, for example "acks=1"\n'),
        ("acks=2", 'ackproof: p.toml: settings: acks=2 is not possible; choose one of "all", 0, 1\n'),
    ):
        assert exit_code_of(["run", "p.toml", "--settings", given]) == 64
        assert capsys.readouterr().err == reported


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        (["--family", "KILL"], '--family: unknown fault family "KILL"; did you mean "kill"?'),
        (["--family", "kil"], '--family: unknown fault family "kil"; did you mean "kill"? (there are kill, pause, '),
        (
            ["--family", "kill+pauze", "--scenario", "S01"],
            '--family: unknown fault family "pauze"; did you mean "pause"?',
        ),
        (["--scenario", "S1"], '--scenario: scenarios: unknown scenario "S1"; did you mean "S31"?'),
        # The option's older name.
        (["--story", "S1"], '--scenario: scenarios: unknown scenario "S1"; did you mean "S31"?'),
        (["--family", "power"], 'the plan has no fault family "power"; it has kill and pause'),
        (["--world", "moon"], 'the plan has no world "moon"; it has simulated'),
    ],
)
def test_an_unknown_name_is_told_before_what_else_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], reported: str
) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text('families = ["kill", "pause"]\n[matrix]\nacks = [1, "all"]\n[worlds.simulated]\n')
    assert exit_code_of(["run", str(plan), *asked]) == 64
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ackproof: {reported}")


@pytest.mark.parametrize(
    ("story", "reported"),
    [("S9", 'unknown story "S9"; did you mean "S09"?'), ("my.toml", 'my.toml, line 3: "kil 0": unknown verb "kil"')],
)
def test_a_story_that_is_not_there_or_is_none_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], story: str, reported: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(f'story = "{story}"\n[workload]\npartitions = 1\n[worlds.simulated]\n')
    (tmp_path / "my.toml").write_text('number = "M1"\ntitle = "t"\nsteps = "kil 0"\n')
    for command in ("run", "campaign"):
        assert exit_code_of([command, "p.toml"]) == 64
        assert reported in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_without_java_a_campaign_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    (tmp_path / "p.toml").write_text("[worlds.simulated]\n")
    assert exit_code_of(["campaign", "p.toml"]) == 70
    assert "install openjdk-17-jre-headless" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_java_that_answers_too_late_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "java"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "ANSWER_LIMIT_S", 0.1)
    with pytest.raises(JavaError) as caught:
        java.usable_java()
    assert str(caught.value) == f"{fake} did not answer within 0.1 s: try again when this machine has less to do"


@pytest.mark.parametrize(
    ("listed", "reported"),
    [
        ("java.base@11.0.2\njdk.incubator.vector@11.0.2", r"is Java 11\.0\.2, and PySpark needs 17 or later"),
        ("java.base@17.0.2", r"lacks the module jdk\.incubator\.vector"),
        ("", "is Java 8 or older"),
    ],
)
def test_a_java_that_spark_cannot_use_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str, reported: str
) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "java"
    fake.write_text(f"#!/bin/sh\ncat <<EOF\n{listed}\nEOF\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=reported):
        java.usable_java()


def test_doctor_says_how_to_get_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [
        machine_abilities.Check(
            name="Java 17 or later", good=False, state="none", purpose="checks", how="install it", needed=True
        ),
        machine_abilities.Check(name="kcat", good=True, state="/usr/bin/kcat", purpose="tests", how=""),
    ]
    monkeypatch.setattr("harness.cli.doctor.examine", lambda _: checks)
    assert exit_code_of(["doctor"]) == 70
    out = capsys.readouterr().out
    assert "install it" in out
    assert out.splitlines()[-1] == "missing, and needed: Java 17 or later"
    assert "\x1b" not in out
    assert exit_code_of(["doctor", "--json"]) == 70
    assert [check["good"] for check in json.loads(capsys.readouterr().out)] == [False, True]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for all temporary files, so that nothing that others left is healed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_heal_finds_nothing_where_nothing_was_left(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["heal", str(temporary)]) == 0
    assert capsys.readouterr().out == "nothing was left behind\n"
    assert exit_code_of(["heal", str(temporary / "absent")]) == 64


def test_heal_tells_of_the_temporary_directory_of_a_killed_harness(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (left := temporary / "ackproof-check-killed").mkdir()
    (left / ".in-use").touch()
    with Scratch(ScratchKind.NIGHT) as alive:
        assert exit_code_of(["heal", str(temporary)]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"healed: directory {left}",
            "1 thing was left behind and is undone",
        ]
        assert (left.exists(), alive.path.exists()) == (False, True)


def test_heal_prints_a_line_for_each_thing_and_a_summary_last(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However much was left: of what is gone, of what is still there, and of what nobody understands."""
    directories = [temporary / f"ackproof-{number}" for number in range(100)]
    with contextlib.closing(Journal(temporary / FILE_NAME)) as journal:
        for directory in directories:
            directory.mkdir()
            journal.intend("directory", {"path": str(directory)})
        journal.intend("from a newer version", {})
    rmtree = shutil.rmtree

    def refused(path: Path, **options: bool) -> None:
        if path.parent == temporary and path.name.endswith("7"):
            raise PermissionError("not yours")
        rmtree(path, **options)

    monkeypatch.setattr(shutil, "rmtree", refused)
    assert exit_code_of(["heal", str(temporary)]) == 70
    out, err = capsys.readouterr()
    kinds = Counter(line.partition(":")[0] for line in out.splitlines())
    assert kinds == {"healed": 90, "remains": 10, "doubt": 1}
    (summary,) = err.splitlines()
    assert summary.startswith("ackproof: 90 things are undone; 10 are still there: run `ackproof heal` again")
    assert len(summary) < 300


def test_one_thing_is_said_in_the_singular(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (left := temporary / "ackproof-left").mkdir()
    with contextlib.closing(Journal(temporary / FILE_NAME)) as journal:
        journal.intend("directory", {"path": str(left)})
    assert exit_code_of(["heal", str(temporary)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 thing was left behind and is undone"
