"""Each figure of `python -m bench` has the yardstick of its machine beside it."""

from __future__ import annotations

import json

import pytest

from bench import __main__ as bench
from bench.yardstick import Yardstick, measure_yardstick
from harness.cli.app import exit_code_of


def test_the_yardstick_takes_time_on_any_machine() -> None:
    measured = measure_yardstick()
    assert measured.loop_s > 0
    assert measured.sort_s > 0


def test_a_figure_is_printed_with_the_yardstick(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "measure_yardstick", lambda: Yardstick(loop_s=0.25, sort_s=0.5))
    assert exit_code_of(["simulated", "--schedules", "1"], bench.bench, "python -m bench") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "yardstick: 5,000,000 additions in Python 0.250 s, 2,000,000 numbers sorted 0.500 s" in lines
    assert any(line.startswith("simulated schedules per second") for line in lines)
    assert exit_code_of(["simulated", "--schedules", "1", "--json"], bench.bench, "python -m bench") == 0
    assert json.loads(capsys.readouterr().out)["yardstick"] == {"loop_s": 0.25, "sort_s": 0.5}
