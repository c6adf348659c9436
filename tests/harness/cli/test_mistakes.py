"""Mistakes of users have one answer in every command: 64 or 69 with a sentence, and nothing is begun."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkers import SilentMasterError, WrongMasterError
from checkers.histories import stores
from harness.cli.app import exit_code_of
from harness.worlds.hosts.ports import Ports
from harness.worlds.kafka import reaching

COMMANDS = {
    "run": ["run", "{plan}", "--out", "{out}"],
    "campaign": ["campaign", "{plan}", "--out", "{out}"],
    "soak": ["soak", "{plan}", "--for", "1m", "--out", "{out}"],
    "assess": ["assess", "--access", "{plan}"],
}
PLAN = """families = ["move"]
[worlds.kafka]
runs = 1
host = "existing"
bootstrap = ["{server}"]
faults = {{ count = 1 }}
"""
SASL = """[worlds.kafka.security]
protocol = "SASL_PLAINTEXT"
mechanism = "PLAIN"
username = "u"
password_env = "AK_NEVER_SET"
"""
HISTORY = """{"type": "invoke", "process": 0, "f": "send", "value": [["send", 0, 1]]}
{"type": "ok", "process": 0, "f": "send", "value": [["send", 0, [0, 1]]]}
"""
TLS = '[worlds.kafka.security]\nprotocol = "SSL"\n'


def answer_of(name: str, plan: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, bool]:
    """The exit code, the last line, and whether anything was begun."""
    file, out = directory / "plan.toml", directory / "out"
    file.write_text(plan)
    code = exit_code_of([word.format(plan=file, out=out) for word in COMMANDS[name]])
    return code, capsys.readouterr().err.splitlines()[-1], out.exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_where_no_server_answers_the_code_is_69(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaching, "FAR_ASK_LIMIT_S", 0.2)
    server = f"127.0.0.1:{ports.take('127.0.0.1').port}"
    code, said, begun = answer_of(name, PLAN.format(server=server), tmp_path, capsys)
    assert (code, begun) == (69, False)
    assert f"no server answers: {server} refuses connections" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_a_password_whose_variable_is_not_set_is_a_mistake_in_the_plan(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, begun = answer_of(name, PLAN.format(server="127.0.0.1:1") + SASL, tmp_path, capsys)
    assert (code, begun) == (64, False)
    assert "the environment variable AK_NEVER_SET is not set" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_tls_with_a_server_of_plain_text_is_a_mistake_in_the_plan(
    name: str, plain_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, begun = answer_of(name, PLAN.format(server=plain_server) + TLS, tmp_path, capsys)
    assert (code, begun) == (64, False)
    assert "refuses this client (" in said


@pytest.mark.parametrize("error", [(WrongMasterError, 64), (SilentMasterError, 69)])
@pytest.mark.parametrize("words", [["check", "."], ["stories", "S01"], ["hunt", "--clean", "1"]])
def test_a_wrong_or_silent_spark_master_is_not_our_failure(
    words: list[str], error: tuple[type[Exception], int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(master: str | None = None) -> None:
        assert master == "spark://gone:7077"
        raise error[0]("it does not answer")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.jsonl").write_text(HISTORY)
    for user in ("harness.ground.machine.spread", "checkers.spark.pipeline"):
        monkeypatch.setattr(f"{user}.spark_context", refuse)
    assert exit_code_of([*words, "--master", "spark://gone:7077"]) == error[1]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("beside", ["plan.toml", "accepted.toml"])
def test_a_pipe_is_no_plan_and_nobody_waits_for_it(
    name: str, beside: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(server="127.0.0.1:1"))
    (tmp_path / beside).unlink(missing_ok=True)
    os.mkfifo(tmp_path / beside)
    words = [word.format(plan=tmp_path / "plan.toml", out=tmp_path / "out") for word in COMMANDS[name]]
    assert exit_code_of(words) == 64
    assert "it is not a regular file" in capsys.readouterr().err


def test_a_store_that_cannot_be_asked_is_out_of_reach_and_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_library(directory: object) -> None:
        raise OSError("Unable to load libjvm\ndlopen(/usr/lib/jvm) failed\ndlopen(/usr/java) failed")

    monkeypatch.setattr(stores, "files_at", no_library)
    assert exit_code_of(["check", "hdfs://host:1/runs", "--out", str(tmp_path / "verdicts.jsonl")]) == 69
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "ackproof: hdfs://host:1/runs cannot be listed: Unable to load libjvm"


@pytest.mark.parametrize("words", [["campaign", "{plan}"], ["import", "{history}"], ["cluster", "up"]])
@pytest.mark.parametrize("out", ["plan.toml", "plan.toml/x", "/proc/x"])
def test_a_directory_that_can_never_be_is_named_wrongly(words: list[str], out: str, tmp_path: Path) -> None:
    (plan := tmp_path / "plan.toml").write_text('families = ["kill"]\n[worlds.simulated]\n')
    (history := tmp_path / "h.jsonl").write_text(HISTORY)
    given = [word.format(plan=plan, history=history) for word in words]
    assert exit_code_of([*given, "--out", str(tmp_path / out)]) == 64


@pytest.mark.parametrize("command", ["replay", "shrink", "explain"])
def test_a_file_is_no_run(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").touch()
    assert exit_code_of([command, str(tmp_path / "plan.toml")]) == 64
    assert "plan.toml holds no run.json; name a run directory" in capsys.readouterr().err


def test_a_pipe_is_no_trace_and_a_file_no_scratch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "trace.json")
    assert exit_code_of(["conform", str(tmp_path / "trace.json")]) == 64
    assert "is no recorded trace (it is not a regular file)" in capsys.readouterr().err
    (history := tmp_path / "h.jsonl").write_text(HISTORY)
    assert exit_code_of(["check", str(history), "--scratch", str(history)]) == 64
    assert "is not a directory; name a directory" in capsys.readouterr().err
