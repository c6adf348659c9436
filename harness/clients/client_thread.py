"""What every adapter of a client with threads needs: calls that end exactly once, and one thread per library object.

The library waits inside its constructor, inside a send (for metadata) and inside a poll; the run's clock must not. So
each client has one thread, which owns the library's object; calls go there through a queue, and results come back
through :meth:`ThreadedClock.post`.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from workloads import Clock

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Library = TypeVar("Library")

#: Outstanding calls of one client; an adapter refuses more. At 200 writes a second, 50 s of silence.
OUTSTANDING_MAX: Final = 10_000
#: Between two attempts to make the library's object while no broker answers.
_CONNECT_PAUSE_S: Final = 0.1


class ThreadedClock(Clock, Protocol):
    """A clock to which other threads can hand over."""

    def post(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` soon, on the clock's thread. The one method that any thread may call; never blocks."""
        ...


class Pending(Generic[Answer]):
    """Calls that wait for their end. The first answer ends a call; later ones change nothing.

    Everything but :meth:`stands` and :meth:`answer` belongs to the clock's thread.
    """

    def __init__(self, clock: ThreadedClock) -> None:
        self._clock = clock
        self._tickets = itertools.count()
        self._waiting: dict[int, Callable[[Answer], None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, done: Callable[[Answer], None], limit_ms: int, too_late: Answer) -> int:
        """A new call, which ends with ``too_late`` unless it is answered within ``limit_ms``."""
        ticket = next(self._tickets)
        self._waiting[ticket] = done
        self._clock.call_at(self._clock.now_us() + limit_ms * 1_000, lambda: self.end(ticket, too_late))
        return ticket

    def stands(self, ticket: int) -> bool:
        """True while the call waits. Any thread may ask."""
        return ticket in self._waiting

    def answer(self, ticket: int, answer: Answer) -> None:
        """End a call soon, on the clock's thread. Any thread may do that."""
        self._clock.post(lambda: self.end(ticket, answer))

    def end(self, ticket: int, answer: Answer) -> None:
        """End a call now, if it still waits."""
        done = self._waiting.pop(ticket, None)
        if done is not None:
            done(answer)

    def answer_all(self, answer: Answer) -> None:
        """End every call that waits, soon."""
        for ticket in tuple(self._waiting):
            self.answer(ticket, answer)


class Owner(Generic[Library]):
    """The one thread that makes, uses and unmakes a library's object.

    ``make`` is tried until it works or the owner is stopped; ``unmake`` is called once at the end. Both have limits of
    their own. A job that raises is logged: its call ends by its time limit.
    """

    def __init__(self, name: str, make: Callable[[], Library], unmake: Callable[[Library], None]) -> None:
        self._make = make
        self._unmake = unmake
        # Bounded by the callers: no more jobs than outstanding calls.
        self._jobs: queue.SimpleQueue[Callable[[Library], None] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[Library], None]) -> None:
        """Do ``job`` after those before it."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Begin no further job; unmake. Returns at once."""
        self._stopped.set()
        self._jobs.put(None)

    def join(self, limit_s: float) -> str | None:
        """Wait for the end; the thread's name if it lives on."""
        self._thread.join(limit_s)
        return self._thread.name if self._thread.is_alive() else None

    def _work(self) -> None:
        library = self._connected()
        if library is None:
            return
        while (job := self._jobs.get()) is not None and not self._stopped.is_set():
            try:
                job(library)
            except Exception:
                log.exception("%s: a call failed in a way that its adapter does not know", self._thread.name)
        try:
            self._unmake(library)
        except Exception:
            log.exception("%s: could not be closed in order", self._thread.name)

    def _connected(self) -> Library | None:
        while not self._stopped.is_set():
            try:
                return self._make()
            except Exception as error:
                log.warning("%s: no broker to begin with: %s", self._thread.name, error)
            self._stopped.wait(_CONNECT_PAUSE_S)
        return None
