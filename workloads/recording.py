"""Where a workload says what it asked and saw."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Protocol

from workloads.operations import EventType, Function, MicroOperation


class Recorder(Protocol):
    """Writes a history as the run goes. It gives every event the next index, in the order of the calls."""

    def record(
        self,
        *,
        time_us: int,
        process: int,
        type: EventType,  # noqa: A002 (the field's own name)
        function: Function,
        micro: tuple[MicroOperation, ...] = (),
        partitions: tuple[str, ...] = (),
        offset: int | None = None,
        node: int | None = None,
        error: str | None = None,
        detail: str | None = None,
    ) -> None:
        """One event; the fields are those of :class:`workloads.operations.Event`."""
        ...


def process_numbers() -> Callable[[], int]:
    """Hands out the process ids of one run, each once, from 0."""
    return count().__next__
