"""Virtual time: one heap of what will happen, in the order of time and, at the same time, of asking."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from harness.ground.errors import HarnessError

#: A standard run of 30 virtual seconds takes some 10 to 20 thousand events; a run this far beyond is going in circles.
EVENTS_MAX: Final = 20_000_000


class Loop:
    """The clock of a simulated run (``workloads.client.Clock``). Nothing in the run consults real time.

    ``heap`` holds (time_us, sequence, function, argument); the network and the nodes push onto it directly, because
    this is the path that every message takes. ``time_us`` is now. ``on_step``, where there is one, is called after
    every event with its function and argument; what it raises ends the run. It is looked at when ``run`` begins.
    """

    __slots__ = ("heap", "next_sequence", "on_step", "time_us")

    def __init__(self) -> None:
        self.time_us = 0
        self.heap: list[tuple[int, int, Callable[[Any], object], Any]] = []
        self.next_sequence = count().__next__
        self.on_step: Callable[[Callable[[Any], object], Any], object] | None = None

    def now_us(self) -> int:
        """Microseconds of virtual time since the loop was made."""
        return self.time_us

    def call_at(self, time_us: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` once, at ``time_us`` or, if that is past, as soon as what is running now has returned."""
        self.push(time_us, _call, callback)

    def push(self, time_us: int, function: Callable[[Any], object], argument: Any) -> None:
        """As ``call_at``, for a function of one argument."""
        heappush(self.heap, (max(time_us, self.time_us), self.next_sequence(), function, argument))

    def run(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Let events happen until ``finished()``, asked after each of them, or until ``limit_us``.

        At the limit the clock reads ``limit_us`` and every event up to and including it has happened.

        Raises:
            HarnessError: events follow each other without end.
        """
        heap, on_step = self.heap, self.on_step
        while not finished():
            if not heap or heap[0][0] > limit_us:
                self.time_us = max(self.time_us, limit_us)
                return False
            self.time_us, sequence, function, argument = heappop(heap)
            if sequence > EVENTS_MAX:
                raise HarnessError(
                    f"the simulated run passed {EVENTS_MAX} events at {self.time_us} us; shorten it or lower its rate"
                )
            function(argument)
            if on_step is not None:
                on_step(function, argument)
        return True

    def __getstate__(self) -> tuple[Any, ...]:
        return self.time_us, self.heap, self.on_step, self.next_sequence()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.time_us, self.heap, self.on_step, sequence = state
        self.next_sequence = count(sequence).__next__


def _call(callback: Callable[[], None]) -> None:
    callback()
