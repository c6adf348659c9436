"""Progress: a log gets lines, also while nothing can be counted; a terminal gets bars."""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable

import pytest
from rich.console import Console

from harness.cli import shown_progress
from harness.cli.shown_progress import BarProgress, LineProgress, progress_for


def clock_of(*seconds: float) -> Callable[[], float]:
    """A clock that shows these seconds, one after the other, and then the last for ever."""
    return itertools.chain(seconds, itertools.repeat(seconds[-1])).__next__


def test_a_log_gets_a_line_at_the_begin_and_the_end() -> None:
    log = io.StringIO()
    lines = LineProgress(Console(file=log), clock_of(100.0, 107.0))
    with lines.phase("simulated runs", 2):
        lines.advance()
        lines.advance("1 failed")
    assert log.getvalue().splitlines() == ["simulated runs: 2 to do", "simulated runs: 2/2 after 7 s (1 failed)"]


def test_what_somebody_else_counts_has_its_unit_and_the_next_phase_has_not() -> None:
    log, shown = io.StringIO(), io.StringIO()
    lines = LineProgress(Console(file=log), clock_of(0.0))
    bars = BarProgress(Console(file=shown, force_terminal=True, width=120))
    for reported in (lines, bars):
        with reported.phase("checking 3636 histories", None):
            reported.reach(0, 15, "Spark tasks")
            reported.reach(15, 15, "Spark tasks")
        with reported.phase("tracing witnesses", 1):
            reported.advance()
    assert log.getvalue().splitlines()[1] == "checking 3636 histories: 15/15 Spark tasks after 0 s"
    assert log.getvalue().splitlines()[-1] == "tracing witnesses: 1/1 after 0 s"
    assert "Spark tasks" in shown.getvalue()


def test_a_log_hears_of_work_that_nobody_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_progress, "LINE_EVERY_S", 0.001)
    heard = threading.Event()

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            if "checking: after 0 s" in text:
                heard.set()
            return super().write(text)

    lines = LineProgress(Console(file=Log()), clock_of(0.0))
    with lines.phase("checking", None):
        assert heard.wait(60)


def test_a_failure_inside_a_phase_goes_on_to_its_handler() -> None:
    for shown in (LineProgress(Console(file=io.StringIO())), BarProgress(Console(file=io.StringIO()))):
        with pytest.raises(ZeroDivisionError), shown.phase("x", 1):
            raise ZeroDivisionError


def test_terminals_get_bars_and_files_do_not() -> None:
    assert isinstance(progress_for(Console(file=io.StringIO(), force_terminal=True)), BarProgress)
    assert isinstance(progress_for(Console(file=io.StringIO())), LineProgress)


def test_a_bar_counts_and_notes() -> None:
    shown = io.StringIO()
    bars = BarProgress(Console(file=shown, force_terminal=True, width=120))
    with bars.phase("simulated runs", 2):
        bars.advance("1 failed")
        bars.say("runs/x failed: why")
    with bars.phase("checking", None):
        pass
    assert "1/2" in shown.getvalue()
    assert "1 failed" in shown.getvalue()
    assert "runs/x failed: why" in shown.getvalue()
