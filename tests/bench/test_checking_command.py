"""`python -m bench check` as a command: what it is given wrong."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bench.checking_speed import main


def test_a_directory_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["1e3", "--directory", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "does not exist" in result.output
