"""The short starts: every console block of a page is run, one after the other, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.plan import parse_plan

ROOT: Final = Path(__file__).parent.parent
STARTS: Final = ROOT / "docs" / "start"
#: A block with its language; a plan says in its first line to which file it belongs.
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE: Final = re.compile(r"# (\w[\w./-]*\.toml)\n")
#: A line of a page that stands for lines which it leaves out.
LEFT_OUT: Final = "..."


def shown(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block with the lines that it prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.splitlines()


def same(printed: list[str], expected: list[str]) -> bool:
    """The lines are equal but for their numbers, with any lines in place of ``...``."""
    alternatives = (".*" if line.strip() == LEFT_OUT else re.escape(without_numbers(line)) for line in expected)
    pattern = "\n".join(alternatives)
    return re.fullmatch(pattern, "\n".join(map(without_numbers, printed)), re.DOTALL) is not None


def without_numbers(line: str) -> str:
    """Its words; how long something takes has another unit on a busy machine."""
    words = " ".join(re.sub(r"\d[\d,.]*", "#", line).split())
    return re.sub(r"about # (s|min|h)$", "about #", words)


def run(command: str, directory: Path) -> list[str]:
    program, *arguments = shlex.split(command)
    assert program == "ackproof", command
    words = [sys.executable, "-c", "from harness.cli import main; main()", *arguments]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout.splitlines()


@pytest.mark.system
@pytest.mark.parametrize("page", ["first-run.md", "your-settings.md"])
def test_every_command_of_a_start_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    (tmp_path / "plans").symlink_to(ROOT / "plans")
    for language, block in BLOCK.findall((STARTS / page).read_text(encoding="utf-8")):
        if language == "toml" and (name := FILE.match(block)):
            (tmp_path / name[1]).write_text(block)
        for command, output in shown(block) if language == "console" else ():
            printed = run(command, tmp_path)
            assert same(printed, output), f"{page}: {command} prints\n" + "\n".join(printed)


@pytest.mark.parametrize("page", sorted(path.name for path in STARTS.glob("*.md")))
def test_plans_of_a_start_can_be_read(page: str) -> None:
    for language, block in BLOCK.findall((STARTS / page).read_text(encoding="utf-8")):
        if language == "toml" and (name := FILE.match(block)):
            assert parse_plan(block, name[1]).runs()


def test_the_tables_for_your_cluster_fit_into_the_plan_that_init_writes(tmp_path: Path) -> None:
    world, security = (
        block
        for language, block in BLOCK.findall((STARTS / "your-cluster.md").read_text(encoding="utf-8"))
        if language == "toml"
    )
    for path in re.findall(r'= "([^"]*\.(?:pem|key))"', security):
        (tmp_path / Path(path).name).touch()
        security = security.replace(path, str(tmp_path / Path(path).name))
    before = (ROOT / "plans" / "existing.toml").read_text(encoding="utf-8").partition("[worlds.kafka]")[0]
    runs = parse_plan(f"{before}{world}\n{security}", "existing.toml").runs()
    assert {run.family for run in runs} == {"move", "reassign"}


def test_the_schedule_by_hand_of_the_guide_to_shrinking_can_be_read() -> None:
    text = (ROOT / "docs" / "guides" / "shrink.md").read_text(encoding="utf-8")
    (plan,) = (block for language, block in BLOCK.findall(text) if language == "toml")
    assert len(parse_plan(plan, "by-hand.toml").runs()) == 1


def test_numbers_and_what_is_left_out_may_differ_and_nothing_else() -> None:
    assert same(["a 12,000.5 b", "x", "y", "end 7"], ["a 9 b", "...", "end 10"])
    assert same(["runs, about 1.7 h"], ["runs, about 9 min"])
    assert not same(["a 1 b"], ["a 1 c"])
    assert not same(["a 1 b", "more"], ["a 1 b"])
    assert list(shown("$ ackproof plan x\nline\n$ ackproof run y\n")) == [
        ("ackproof plan x", ["line"]),
        ("ackproof run y", []),
    ]
