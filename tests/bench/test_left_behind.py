"""A measured cluster that ends too early leaves its journal where `ackproof heal` finds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from harness.cli.app import exit_code_of
from harness.ground.errors import HostError
from harness.records.journal import FILE_NAME
from tests.harness.left_behind import announce_namespace


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt("interrupted"), 130), (HostError("a process is still there"), 70)]
)
@pytest.mark.parametrize("undone", [False, True])
def test_the_directory_stays_and_is_named_only_where_something_was_not_undone(
    error: BaseException,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    undone: bool,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failed_in: list[Path] = []

    def failing(directory: Path) -> Any:
        failed_in.append(directory)
        announce_namespace(directory, undone=undone)
        raise error

    monkeypatch.setattr(bench, "measure_cluster", failing)
    assert exit_code_of(["cluster"], bench.bench, "python -m bench") == code
    (directory,) = failed_in
    named = re.search(r"; some of it was not undone: ackproof heal (\S+)", capsys.readouterr().err)
    assert (named is None) == undone
    assert directory.exists() != undone
    if named:
        assert named[1] == str(directory)
        assert exit_code_of(["heal", named[1]]) == 0
        assert (directory / FILE_NAME).exists(), "healing removes temporary directories of killed processes, not this"
