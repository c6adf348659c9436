"""The run's clock in real time: a heap of calls and a queue of results, served by the one thread that drives."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Final

Callback = Callable[[], None]

#: Pause between calls of ``finished`` by ``run`` while nothing happens.
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
        self._posted: deque[Callback] = deque()
        # Locked while the driving thread sleeps; who posts unlocks it. ``SimpleQueue.get`` with a time limit may wait
        # for ever in CPython 3.11: its time left, once negative, is taken for none.
        self._sleeping = Lock()

    def now_us(self) -> int:
        """The time now, in microseconds since this clock was made."""
        return (time.monotonic_ns() - self._begin_ns) // 1_000

    def call_at(self, time_us: int, callback: Callback) -> None:
        """Call ``callback`` once, at ``time_us`` or as soon after it as possible; equal times in order of the calls."""
        heapq.heappush(self._calls, (time_us, next(self._order), callback))

    def post(self, callback: Callback) -> None:
        """Call ``callback`` soon, on the driving thread."""
        self._posted.append(callback)
        if self._sleeping.locked():
            with suppress(RuntimeError):  # another thread was faster
                self._sleeping.release()

    def run(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Serve calls and results until ``finished()`` or ``limit_us``; the answer is ``finished()``."""
        calls, posted = self._calls, self._posted
        while not finished():
            now_us = self.now_us()
            if now_us >= limit_us:
                return False
            due_us = calls[0][0] if calls else limit_us
            if due_us <= now_us:
                heapq.heappop(calls)[2]()
            # After every call the results that have come, so that neither starves the other.
            if ready := len(posted):
                for _ in range(ready):
                    posted.popleft()()
            elif due_us > now_us:
                self._sleep((min(due_us, limit_us) - now_us) / 1e6)
        return True

    def _sleep(self, limit_s: float) -> None:
        """Sleep until a result is posted, but not longer than ``limit_s``."""
        self._sleeping.acquire(blocking=False)
        if not self._posted:
            self._sleeping.acquire(timeout=min(limit_s, _IDLE_S))
