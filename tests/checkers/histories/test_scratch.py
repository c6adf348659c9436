"""Temporary directories go, whatever happens to them meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from checkers.histories.scratch import Scratch, ScratchKind, remove_abandoned

#: Makes such a directory, says where, and waits.
MAKER: Final = """
import sys
from checkers.histories.scratch import Scratch
print(Scratch(sys.argv[1]).path, flush=True)
sys.stdin.read()
"""


def test_what_java_writes_while_its_directory_is_removed_goes_with_the_next_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = Scratch("spark-", tmp_path)

    def remove_beside_java(directory: Path, **_: object) -> None:
        for path in directory.iterdir():
            path.unlink()
        (directory / "late").touch()

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", remove_beside_java)
        scratch.close()
    assert (scratch.path / "late").exists()
    Scratch("spark-", tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_heal_removes_what_a_killed_maker_left_and_nothing_of_the_living() -> None:
    with Scratch(ScratchKind.RUN) as alive:
        killed = subprocess.Popen(
            [sys.executable, "-c", MAKER, ScratchKind.RUN], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )
        assert killed.stdout is not None
        left = Path(killed.stdout.readline().strip())
        remove_abandoned()
        assert left.is_dir()
        killed.kill()
        killed.wait()
        remove_abandoned()
        assert not left.exists()
        assert alive.path.is_dir()
