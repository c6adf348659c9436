"""`ackproof client check`: its exit codes, its table and its JSON; the points have tests of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.cli import client
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.lab.client_check import CheckedProgram, PointResult

HOLDS = PointResult(name="sends", tries="Every send is answered once.", holds=True)
LACKS = PointResult(name="transactions", tries="A commit counts.", holds=None, problem="it has no transactions")
BREAKS = PointResult(name="crash", tries="It drops all.", holds=False, problem="flushes in a crash [what waited]")


def checked_as(*points: PointResult, patch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Let the check end with these points; the answer gets the commands that are checked."""
    asked: list[Sequence[str]] = []

    def check(command: Sequence[str], _directory: Path, _progress: Progress) -> CheckedProgram:
        asked.append(command)
        said = {"name": "fake", "version": "1.0", "capabilities": ("commits",), "protocols": ("classic",)}
        return CheckedProgram(command=tuple(command), points=points, **said)  # type: ignore[arg-type]

    patch.setattr(client, "check_program", check)
    return asked


def test_a_program_that_keeps_to_the_protocol_is_0_and_its_options_are_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = checked_as(HOLDS, LACKS, patch=monkeypatch)
    assert exit_code_of(["client", "check", "node", "--inspect", "-h", "client.js"]) == 0
    assert asked == [("node", "--inspect", "-h", "client.js")]
    shown = capsys.readouterr().out
    assert "sends         yes  Every send is answered once." in shown
    assert "transactions  -    it has no transactions" in shown
    assert shown.splitlines()[-1] == "fake 1.0 keeps to the protocol"


def test_a_program_that_breaks_a_point_is_1_with_the_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checked_as(HOLDS, BREAKS, LACKS, patch=monkeypatch)
    assert exit_code_of(["client", "check", "node"]) == 1
    shown = capsys.readouterr().out
    assert "crash         no   flushes in a crash [what waited]" in shown
    assert shown.splitlines()[-1] == "fake 1.0 breaks 1 of 2 points"


def test_json_has_every_point(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    checked_as(BREAKS, LACKS, patch=monkeypatch)
    assert exit_code_of(["client", "check", "--json", "node"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["version"], told["command"]) == ("fake", "1.0", ["node"])
    assert [(point["name"], point["holds"]) for point in told["points"]] == [("crash", False), ("transactions", None)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["/bin/no-such-client", "--fast"], "there is no program /bin/no-such-client that can be started"),
        ([], "Missing argument 'COMMAND...'"),
    ],
)
def test_a_command_that_is_wrong_is_64(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["client", "check", *words]) == 64
    assert problem in capsys.readouterr().err
