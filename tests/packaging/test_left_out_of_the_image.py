"""The image copies what the project has, and ``scripts/bootstrap.sh`` leaves nothing where others may write."""

from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from tests.packaging.conftest import ROOT

IGNORED = (ROOT / "ci" / "Containerfile.dockerignore").read_text().splitlines()
#: Whoever makes packages ready: one that says what was asked of it.
APT_GET = '#!/bin/sh\necho "$@" >> "$CALLS"\n'


def as_the_image_has_it(pattern: str) -> str:
    """A line of .gitignore in the spelling of the image: without a slash it is of any depth."""
    sign, path = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    anchored = "/" in path.rstrip("/")
    return sign + ("" if anchored else "**/") + path.strip("/")


def test_the_image_leaves_out_what_git_does() -> None:
    kinds = [line for line in (ROOT / ".gitignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ".venv/" in kinds
    assert [as_the_image_has_it(kind) for kind in kinds if as_the_image_has_it(kind) not in IGNORED] == []


def test_the_image_leaves_out_what_the_script_makes() -> None:
    defaults = re.findall(r"\$\{ACKPROOF_(?:VENV|NIGHTS|RESULTS):-([^}]+)\}", (ROOT / "ci" / "run.sh").read_text())
    assert len(defaults) == 3
    assert [name for name in defaults if f"**/{name}" not in IGNORED] == []


def copied(tree: Path) -> set[str]:
    """The files below ``tree`` that the image copies; a later line of what it leaves out outweighs an earlier one."""
    kept = set()
    for file in (path for path in tree.rglob("*") if path.is_file()):
        parts, left_out = file.relative_to(tree).parts, False
        for line in (entry for entry in IGNORED if entry and not entry.startswith("#")):
            pattern = line.removeprefix("!").removeprefix("**/")
            begins = range(len(parts)) if "**/" in line else (0,)
            paths = ("/".join(parts[begin:end]) for begin in begins for end in range(begin + 1, len(parts) + 1))
            if any(fnmatchcase(path, pattern) for path in paths):
                left_out = not line.startswith("!")
        if not left_out:
            kept.add("/".join(parts))
    return kept


def test_the_image_copies_what_it_runs_and_neither_virtual_environments_nor_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["init", "ci"]) == 0
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    made = (".venv", "sub/.venv", ".ackproof-venv", "ackproof-nights", "ackproof-results", "results/demo")
    for name in made:
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "file").touch()
    assert copied(tmp_path) == written
    image = (tmp_path / "ackproof" / "Containerfile").read_text()
    scripts = set(re.findall(r"ackproof/[\w.]+\.sh", image))
    assert scripts == {"ackproof/run.sh"}
    assert scripts < written
    lines = re.findall(r"^(?:RUN|CMD) (.*)$", image, re.MULTILINE)
    commands = {word for line in lines for word in re.findall(r'(?:run\.sh |^\[")([\w-]+)', line)}
    assert commands == {"install", "kafka", "pull-request"}
    offered = re.findall(r"^ +([\w-]+)/1\)", (tmp_path / "ackproof" / "run.sh").read_text(), re.MULTILINE)
    assert commands <= set(offered)


def install(checkout: Path, shared: Path, packages: str) -> list[str]:
    """The requests of the script's own function to apt-get, as root; for a shell each call."""
    programs = checkout / "programs"
    programs.mkdir(exist_ok=True)
    for name, text in {"apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = (ROOT / "scripts" / "bootstrap.sh").read_text()
    begin = script[: script.index("\nfind_python")].replace('cd "$(dirname "$0")/.."', "")
    calls = checkout / "calls"
    calls.write_text("")
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(shared), "CALLS": str(calls)}
    shell = ["bash", "-c", f"{begin}\n{packages}"]
    subprocess.run(shell, cwd=checkout, env=os.environ | variables, check=True, capture_output=True)
    return [call.split()[0] for call in calls.read_text().splitlines()]


def test_package_lists_are_refreshed_once_and_nothing_is_left_where_others_write(tmp_path: Path) -> None:
    checkout, shared = tmp_path / "checkout", tmp_path / "shared"
    for directory in (checkout, shared):
        directory.mkdir()
    assert install(checkout, shared, "apt_install a; apt_install b") == ["update", "install", "install"]
    (checkout / ".venv").mkdir()
    assert install(checkout, shared, "apt_install c") == ["update", "install"]
    assert install(checkout, shared, "apt_install d") == ["install"]
    os.utime(checkout / ".venv" / ".apt-updated", (0, 0))
    assert install(checkout, shared, "apt_install e") == ["update", "install"]
    assert list(shared.iterdir()) == []
