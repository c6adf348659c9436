"""The commands of starts and guides are run as written, page by page, in an empty home; those that are not say why."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = {page.name: page for folder in ("start", "guides") for page in (ROOT / "docs" / folder).glob("*.md")}
BLOCK: Final = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FILE: Final = re.compile(r"# (\w[\w./-]*\.toml)\n")
COMMAND: Final = re.compile(r"^(?:\$ )?((?:sudo )?(?:\.venv/bin/)?ackproof .*)$")

#: Run by other tests: what they need, how the commands begin, and where they are run.
ELSEWHERE: Final = (
    ("a release of Kafka", r"(kafka install|upgrade |cluster up --world kafka)", "tests/harness/worlds/kafka"),
    ("two releases of Kafka, and forty minutes", r"release 4", "tests/harness/lab/releases"),
    ("the plan of a reader", r"(campaign|plan) (my-)?kafka", "tests/harness/worlds/kafka"),
    ("the campaigns before it", r"(compare|heal) results/(my-)?kafka", "tests/packaging"),
    (
        "Kafka and root",
        r"(campaign plans/(kafka|stories|drawn)|run plans/kafka|conform )",
        "tests/harness/worlds/kafka",
    ),
    ("a cluster that runs", r"(campaign existing|assess --bootstrap)", "tests/harness/worlds/kafka/theirs"),
    ("machines over SSH, and a release", r"campaign plans/ssh.toml", "tests/harness/worlds/hosts"),
    ("a Spark cluster", r"check --master", "tests/checkers/spark"),
    (
        "a cluster in another terminal",
        r"(cluster |(heal|campaign|assess --access) results/cluster)",
        "tests/harness/runs/cluster",
    ),
    ("Kafka and a night", r"soak plans/soak.toml --for 8h", "tests/harness/campaigns/soak"),
    ("a night with a finding", r"accept results/night", "tests/harness/cli/test_accept_command.py"),
    (
        "output beside it",
        r"(compare results/reference|accept results/reference|plan ackproof/pull-request|init ci)",
        "tests/packaging",
    ),
    ("minutes, in which every cell is performed", r"(stories|hunt --seconds 60)$", "tests/harness/runs/stories"),
    ("minutes, and a campaign", r"(explore killed|report results/default)", "tests/harness/lab/explore"),
)
#: Pages whose commands tests/test_starts.py runs, and compares with the output that they show.
COMPARED: Final = {"first-run.md", "your-settings.md"}
#: Long commands are shortened, and some exit codes are not 0.
SHORTER: Final = (
    ("--seconds 600", "--seconds 4"),
    ("--clean 1000", "--clean 20"),
    (" > last.json", ""),
    ("at-least-once -- ", "at-least-once --minutes 0.3 -- "),
)
CODES: Final = (
    (r"explore (moved --set|silent --bug)", {1}),
    (r"explore moved --constant", {2}),
    (r"hunt --settings missed.epoch", {0, 1, 2}),
    (r"application ", {0, 2}),
)


class Command(NamedTuple):
    """A command of a page, without its comment."""

    text: str

    @property
    def elsewhere(self) -> str:
        """The thing it needs that is not here, else ""."""
        return next((needs for needs, begins, _ in ELSEWHERE if re.match(begins, self.text)), "")


def commands_of(page: str) -> list[Command]:
    """The commands of ackproof in the blocks of a page; those of a console that are compared are left out."""
    commands = []
    for language, block in BLOCK.findall(PAGES[page].read_text(encoding="utf-8")):
        for line in [] if language == "console" and page in COMPARED else block.replace("\\\n", "").splitlines():
            if command := COMMAND.match(line.strip()):
                words = re.sub(r"\s+#.*", "", command[1])
                commands.append(Command(re.sub(r"^(sudo )?(\.venv/bin/)?ackproof ", "", words)))
    return commands


HERE: Final = {page: [command for command in commands_of(page) if not command.elsewhere] for page in PAGES}


@pytest.mark.system
@pytest.mark.parametrize("page", sorted(page for page, commands in HERE.items() if commands))
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    (work := tmp_path / "work").mkdir()
    for folder in ("plans", "examples"):
        (work / folder).symlink_to(ROOT / folder)
    (work / "topics.txt").write_bytes((ROOT / "docs/start/topics.txt").read_bytes())
    for language, block in BLOCK.findall(PAGES[page].read_text(encoding="utf-8")):
        if language == "toml" and ((name := FILE.match(block)) or "\nsteps = " in block):
            (work / (name[1] if name else "my.toml")).write_text(block)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in HERE[page]:
        text = command.text
        for long, short in SHORTER:
            text = text.replace(long, short)
        arguments = shlex.split(text)
        done = subprocess.run(
            [sys.executable, "-c", "from harness.cli import main; main()", *arguments],
            cwd=work,
            env={**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        codes = next((codes for begins, codes in CODES if re.match(begins, text)), {0})
        assert done.returncode in codes, f"{page}: ackproof {text}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        if text != command.text and " > " in command.text:
            (work / command.text.rpartition(" > ")[2]).write_text(done.stdout)


def test_what_runs_elsewhere_is_on_a_page_and_has_its_tests() -> None:
    texts = [command.text for page in PAGES for command in commands_of(page)]
    assert len(texts) > 60
    assert [needs for needs, begins, _ in ELSEWHERE if not any(re.match(begins, text) for text in texts)] == []
    assert [tests for _, _, tests in ELSEWHERE if not (ROOT / tests).exists()] == []


def test_most_commands_are_run_here() -> None:
    assert sum(map(len, HERE.values())) >= 20
