"""Completion of a command line by the shell, as docs/reference/commands.md has it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
#: As the page has it for bash, then what bash does at a tab.
BASH = """
{line}
COMP_WORDS=(ackproof {words} "{begun}"); COMP_CWORD={number}
_ackproof_completion ackproof
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(begun: str, *words: str, line: str = "") -> list[str]:
    """The words that bash offers for the one that was ``begun`` after ``words``."""
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    asked = BASH.format(line=line, words=" ".join(words), begun=begun, number=len(words) + 1)
    bash = ["bash", "--norc", "-c", asked]
    return subprocess.run(bash, env=os.environ | here, capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_with_the_line_of_the_page() -> None:
    lines = re.findall(r"`(eval [^`]*bash_source ackproof\)\")`", PAGE.read_text())
    assert [completed("camp", line=line) for line in lines] == [["campaign"]]


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [
        (("cluster",), "b", {"break"}),
        (("cluster", "break"), "pow", {"power", "powerloss"}),
        (("cluster", "break", "cut", "--shape"), "from", {"from-brokers", "from-controller", "from-clients"}),
        (("soak",), "--un", {"--until-finding"}),
        (("compare",), "", {""}),
    ],
)
def test_groups_words_and_options_are_completed(
    words: tuple[str, ...],
    begun: str,
    offered: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_ACKPROOF_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["ackproof", *words, begun]))
    monkeypatch.setenv("COMP_CWORD", str(len(words) + 1))
    with pytest.raises(SystemExit) as ended:
        exit_code_of([])
    assert ended.value.code == 0
    assert {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()} == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_lines_of_other_shells_are_there(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_ACKPROOF_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit):
        exit_code_of([])
    assert f"_ACKPROOF_COMPLETE={shell}_complete" in capsys.readouterr().out
    assert f"{shell}_source" in PAGE.read_text()
