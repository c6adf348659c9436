"""Temporary directories go, whatever happens to them meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checkers.histories.scratch import Scratch


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
