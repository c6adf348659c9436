"""The start with CI and the guide to comparing: every console block is run, and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from harness.campaigns.campaign import estimating
from harness.cli.app import COMMANDS, exit_code_of
from harness.plan import CI_FILES, parse_plan

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "start" / "ci.md", ROOT / "docs" / "guides" / "compare.md")
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
FENCED = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [dedent(content) for name, content in FENCED.findall(TEXT) if name == kind]


def commands() -> list[tuple[str, str]]:
    """Every command of the console blocks, and what it prints."""
    parts = [part for block in blocks("console") for part in block.split("$ ") if part]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def test_what_is_shown_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimating, "cores", lambda: 2)
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    Path("results/reference").symlink_to(ROOT / "results" / "reference")
    assert len(commands()) >= 3
    for command, shown in commands():
        program, *arguments = command.split()
        assert program == "ackproof"
        assert exit_code_of(arguments) in {0, 1}
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert printed == [line.rstrip() for line in shown.splitlines()], command


def test_other_commands_are_there() -> None:
    lines = [line.split() for block in blocks("sh") for line in block.splitlines()]
    script = (ROOT / "ci" / "run.sh").read_text()
    for program, command, *_ in lines:
        is_command = Path(program).name == "ackproof" and command in COMMANDS
        assert is_command or (Path(program).name == "run.sh" and f"\n    {command}/1) " in script)


def test_the_example_of_several_values_fits_into_the_starter() -> None:
    (example,) = blocks("toml")
    starting = (ROOT / CI_FILES["ackproof/nightly.toml"]).read_text()
    one_value = starting.replace('\nacks = "all"\nenable.idempotence = true\n', "\n")
    plan = parse_plan(one_value.replace("\n[workload]\n", f"\n{example}\n[workload]\n"), "nightly.toml")
    assert [choice.settings["acks"] for choice in plan.choices] == [1, "all"]


def test_every_file_of_continuous_integration_is_explained() -> None:
    assert [name for name in CI_FILES if f"`{name}`" not in TEXT] == []
