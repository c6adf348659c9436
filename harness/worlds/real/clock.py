"""The run's clock in real time: a heap of calls and a queue of results, served by the one thread that drives."""

from __future__ import annotations

import heapq
import itertools
import queue
import time
from collections.abc import Callable
from typing import Final

Callback = Callable[[], None]

#: How often ``run`` looks at ``finished`` when nothing happens at all.
_IDLE_S: Final = 0.05


class RealClock:
    """Microseconds since it was made, on the monotonic clock. ``wall_begin_us`` is the epoch's time at 0.

    ``now_us`` and ``post`` may be called by any thread, the rest by the thread that drives.
    """

    def __init__(self) -> None:
        self._begin_ns = time.monotonic_ns()
        self.wall_begin_us: Final = time.time_ns() // 1_000
        self._calls: list[tuple[int, int, Callback]] = []
        self._order = itertools.count()
        # Holds at most one result per outstanding operation, and those are bounded by the clients.
        self._posted: queue.SimpleQueue[Callback] = queue.SimpleQueue()

    def now_us(self) -> int:
        """Now."""
        return (time.monotonic_ns() - self._begin_ns) // 1_000

    def call_at(self, time_us: int, callback: Callback) -> None:
        """Call ``callback`` once, at ``time_us`` or as soon after it as possible; equal times in order of the calls."""
        heapq.heappush(self._calls, (time_us, next(self._order), callback))

    def post(self, callback: Callback) -> None:
        """Call ``callback`` soon, on the driving thread."""
        self._posted.put(callback)

    def run(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Serve calls and results until ``finished()`` or ``limit_us``; the answer is ``finished()``."""
        while not finished():
            now_us = self.now_us()
            if now_us >= limit_us:
                return False
            wait_us = min(self._calls[0][0] if self._calls else limit_us, limit_us) - now_us
            if wait_us <= 0:
                heapq.heappop(self._calls)[2]()
            # After every call the results that are there, so that neither starves the other.
            self._serve_posted(min(max(wait_us, 0) / 1e6, _IDLE_S))
        return True

    def _serve_posted(self, wait_s: float) -> None:
        try:
            callback = self._posted.get(block=wait_s > 0, timeout=wait_s)
        except queue.Empty:
            return
        callback()
        for _ in range(self._posted.qsize()):
            self._posted.get_nowait()()
