"""A story that ends too early on a real cluster leaves its journal where `ackproof heal` finds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import HostError
from harness.lab.conform import performing
from harness.records.journal import FILE_NAME
from tests.harness.left_behind import announce_namespace


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def ends_with(error: BaseException, monkeypatch: pytest.MonkeyPatch, *, undone: bool) -> None:
    """A world that announces a namespace in its journal, and then fails."""

    def failing(_: object, directory: Path, __: object) -> Any:
        announce_namespace(directory, undone=undone)
        raise error

    monkeypatch.setattr(performing, "world_for", failing)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt("interrupted"), 130),
        (HostError("a namespace is still there"), 70),
        (RuntimeError("what"), 70),
    ],
)
def test_the_directory_stays_and_is_named_where_something_was_not_undone(
    error: BaseException,
    code: int,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ends_with(error, monkeypatch, undone=False)
    assert exit_code_of(["conform", "S01", "S12", "--world", "processes"]) == code
    complaint = capsys.readouterr().err
    match = re.search(rf"{error}; some of it was not undone: ackproof heal (\S+)", complaint)
    assert match, complaint
    (kept,) = temporary.glob("ackproof-conform-*")
    assert str(kept) == match[1]
    assert exit_code_of(["heal", str(kept)]) == 0
    assert (kept / FILE_NAME).exists(), "healing removes temporary directories of killed processes, and not this one"


def test_the_directory_is_removed_where_all_was_undone(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends_with(KeyboardInterrupt(), monkeypatch, undone=True)
    assert exit_code_of(["conform", "S01", "--world", "processes"]) == 130
    assert capsys.readouterr().err.strip() == "ackproof: interrupted"
    assert not [*temporary.glob("ackproof-conform-*")]
