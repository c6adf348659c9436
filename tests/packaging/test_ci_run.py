"""``.ci/run``: what it makes, in which order, and in whose home."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Stands for make: notes the target and what its home holds, leaves a file there, and fails where it is told to.
MAKE = """#!/bin/sh
echo "$1 $(ls -A "$HOME" | tr '\\n' ' ')$MAVEN_OPTS $XDG_CACHE_HOME" >> "$NOTES"
echo "$HOME" > "$NOTES.home"
touch "$HOME/left-by-$1"
[ "$1" != "$FAILS" ]
"""


@pytest.mark.parametrize("fails", ["", "test"])
def test_it_works_in_an_empty_home_that_is_gone_afterwards(tmp_path: Path, fails: str) -> None:
    make, notes, own = tmp_path / "bin" / "make", tmp_path / "notes", tmp_path / "own"
    make.parent.mkdir()
    make.write_text(MAKE)
    make.chmod(0o755)
    own.mkdir()
    (own / "mine").touch()
    environment = {
        "PATH": f"{make.parent}:{os.environ['PATH']}",
        "HOME": str(own),
        "XDG_CACHE_HOME": str(own),
        "TMPDIR": str(tmp_path),
        "NOTES": str(notes),
        "FAILS": fails,
    }
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, timeout=240, check=False)
    assert done.returncode == bool(fails)
    home = (tmp_path / "notes.home").read_text().strip()
    targets = ["check", "test", "canary", "soak-smoke", "kafka"]
    made = targets[: targets.index(fails) + 1] if fails else targets
    left = [" ".join(sorted(f"left-by-{target}" for target in made[:count])) for count in range(len(made))]
    assert notes.read_text().splitlines() == [
        f"{target} {f'{files} ' if files else ''}-Duser.home={home}  " for target, files in zip(made, left, strict=True)
    ]
    assert not Path(home).exists()
    assert [file.name for file in own.iterdir()] == ["mine"]
