"""The matrix on a terminal: it tells apart what was promised and what only did not happen, as its verdict does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from checkers.verdict import Verdict
from harness.cli.outcome import read_matrix, tell_cells
from harness.cli.terminal import State
from harness.report import write
from workloads.settings import Settings


def test_silence_without_a_promise_is_not_called_held(
    campaign: tuple[Path, Callable[..., Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, make = campaign
    make(Settings(acks=-1, min_insync_replicas=2))
    make(Settings(acks=1, min_insync_replicas=2))
    write(directory)
    tell_cells(State(out=Console(width=200, soft_wrap=True)), read_matrix(directory).cells)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["simulated kill", "acks=-1,isr=2 held 0/1", "acks=1,isr=2 none 0/1"]
    assert "held: none lost, as promised; none: none lost, though the settings permit it" in lines[-1]
