"""The core's performances for the recorded traces, one in each schedule for all tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final

import pytest

from harness.ground.choices import Choices
from harness.lab.conform import RecordedTrace, comparing, read_trace
from harness.lab.conform.performing import CoreStep, performed_by_core
from harness.lab.conform.schedules import schedule
from harness.runs.stories import Story, known_stories
from scripts.reference.conformance import TRACES

NAMES: Final = sorted(path.stem for path in TRACES.glob("*.json"))
STORIES: Final = known_stories()


@cache
def read(name: str) -> RecordedTrace:
    return read_trace(TRACES / f"{name}.json")


@cache
def core_of(name: str, number: int) -> Sequence[CoreStep]:
    """The core's steps depend on the pace and the settings of a trace, and on nothing that it shows."""
    trace = read(name)
    return performed_by_core(STORIES[trace.story], trace, "none", schedule(number))


@contextmanager
def core_once() -> Iterator[None]:
    """Have comparisons take the core's steps from here."""
    numbers: list[int] = []

    def chosen(number: int) -> Choices:
        numbers.append(number)
        return schedule(number)

    def performed(_: Story, trace: RecordedTrace, __: str, ___: Choices) -> Sequence[CoreStep]:
        return core_of(trace.name.removesuffix(".json"), numbers[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "schedule", chosen)
        patch.setattr(comparing, "performed_by_core", performed)
        yield
