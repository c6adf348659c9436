"""Shows how far long work is: bars on a terminal, plain lines every few seconds anywhere else."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from typing_extensions import override

from harness.ground.progress import Progress

#: Seconds between two plain lines of one phase: readable in the log of a CI server, and well below its silence limits.
LINE_EVERY_S: Final = 10.0


#: Control characters but the tab and the end of a line.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """``text`` without control characters: names and errors may come from files and brokers of others."""
    return _CONTROL.sub("\ufffd", text)


class BarProgress(Progress):
    """Shows work on terminals, as bars."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
        )
        self._task: TaskID | None = None

    @contextlib.contextmanager
    @override
    def phase(self, name: str, total: int | None) -> Iterator[None]:
        task = self._task = self._bars.add_task(name, total=total, note="")
        with self._bars:
            yield
            if self._bars.tasks[task].total is None:
                self._bars.update(task, total=1, completed=1)

    @override
    def advance(self, note: str = "") -> None:
        if self._task is not None:
            self._bars.update(self._task, advance=1, note=note)

    @override
    def reach(self, done: int, total: int, unit: str) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=total, note=unit)

    @override
    def say(self, text: str) -> None:
        self._bars.console.print(printable(text), markup=False, emoji=False, highlight=False, soft_wrap=True)


class LineProgress(Progress):
    """Shows work in logs: a line when a phase begins and ends, and every ``LINE_EVERY_S`` seconds between."""

    def __init__(self, console: Console, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock_s = clock_s
        self._name, self._note, self._unit, self._done, self._began = "", "", "", 0, 0.0
        self._total: int | None = None

    @contextlib.contextmanager
    @override
    def phase(self, name: str, total: int | None) -> Iterator[None]:
        self._name, self._total, self._unit = name, total, ""
        self._done, self._note, self._began = 0, "", self._clock_s()
        over = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(over,), daemon=True)
        self.say(f"{name} ..." if total is None else f"{name}: {total} to do")
        ticker.start()
        try:
            yield
        finally:
            over.set()
            ticker.join()
            self._line()

    @override
    def advance(self, note: str = "") -> None:
        self._done += 1
        self._note = note

    @override
    def reach(self, done: int, total: int, unit: str) -> None:
        self._done, self._total, self._unit = done, total, f" {unit}"

    @override
    def say(self, text: str) -> None:
        self._console.print(printable(text), markup=False, emoji=False, highlight=False, soft_wrap=True)

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(LINE_EVERY_S):
            self._line()

    def _line(self) -> None:
        counted = "" if self._total is None else f" {self._done}/{self._total}{self._unit}"
        note = f" ({self._note})" if self._note else ""
        self.say(f"{self._name}:{counted} after {self._clock_s() - self._began:.0f} s{note}")


def progress_for(console: Console) -> Progress:
    """Give bars if ``console`` is a terminal, lines if not."""
    return BarProgress(console) if console.is_terminal else LineProgress(console)
