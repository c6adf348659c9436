"""Calls that end exactly once, and one thread per library object, for adapters of clients with threads.

The library waits inside its constructor, inside a send (for metadata) and inside a poll; the run's clock must not. So
each client has one thread, which owns the library's object. Calls that may wait go there through a queue; results come
back through :meth:`ThreadedClock.post`.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from workloads import Clock

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Library = TypeVar("Library")

#: Outstanding calls of one client; an adapter refuses more. That is 50 s of silence at 200 writes a second.
OUTSTANDING_MAX: Final = 10_000
#: Later than any time of a clock.
NEVER: Final = 2**63 - 1
#: The pause between two attempts to make the library's object while no broker answers.
_CONNECT_PAUSE_S: Final = 0.1


class ThreadedClock(Clock, Protocol):
    """A clock to which other threads can hand over."""

    def post(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` soon, on the clock's thread. The one method that any thread may call; never blocks."""
        ...


class Pending(Generic[Answer]):
    """Calls that wait for their end. The first answer ends a call; later ones change nothing.

    One timer serves all calls: it goes off at the earliest limit. Everything but :meth:`waits` and :meth:`answer`
    belongs to the clock's thread.
    """

    def __init__(self, clock: ThreadedClock) -> None:
        self._clock = clock
        self._tickets = itertools.count()
        #: By ticket: the callback, the limit on the clock, and the answer at that limit.
        self._waiting: dict[int, tuple[Callable[[Answer], None], int, Answer]] = {}
        self._sweep_us = NEVER

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, done: Callable[[Answer], None], limit_ms: int, too_late: Answer) -> int:
        """Begin a call, which ends with ``too_late`` unless it is answered within ``limit_ms``."""
        ticket = next(self._tickets)
        limit_us = self._clock.now_us() + limit_ms * 1_000
        self._waiting[ticket] = done, limit_us, too_late
        if limit_us < self._sweep_us:
            self._sweep_by(limit_us)
        return ticket

    def waits(self, ticket: int) -> bool:
        """True while the call waits. Any thread may ask."""
        return ticket in self._waiting

    def answer(self, ticket: int, answer: Answer) -> None:
        """End a call soon, on the clock's thread. Any thread may call this."""
        self._clock.post(partial(self.end, ticket, answer))

    def end(self, ticket: int, answer: Answer) -> None:
        """End a call now, if it still waits."""
        call = self._waiting.pop(ticket, None)
        if call is not None:
            call[0](answer)

    def answer_all(self, answer: Answer) -> None:
        """End every call that waits, soon."""
        for ticket in tuple(self._waiting):
            self.answer(ticket, answer)

    def _sweep_by(self, limit_us: int) -> None:
        self._sweep_us = limit_us
        self._clock.call_at(limit_us, partial(self._sweep, limit_us))

    def _sweep(self, planned_us: int) -> None:
        """End the calls that are too late, unless an earlier sweep was planned since and replaces this one."""
        if planned_us != self._sweep_us:
            return
        self._sweep_us = NEVER
        now_us = self._clock.now_us()
        for ticket, (_, limit_us, too_late) in tuple(self._waiting.items()):
            if limit_us <= now_us:
                self.end(ticket, too_late)
        if self._waiting:
            self._sweep_by(min(limit_us for _, limit_us, _ in self._waiting.values()))


class Owner(Generic[Library]):
    """The one thread that makes and unmakes a library's object, and does the calls that may wait.

    ``make`` is tried until it works or the owner is stopped; ``unmake`` is called once at the end. Both have limits of
    their own. A job that raises is logged: its call ends by its time limit. ``submit``, ``idle`` and ``stop`` belong to
    the clock's thread.
    """

    def __init__(self, name: str, make: Callable[[], Library], unmake: Callable[[Library], None]) -> None:
        self._make = make
        self._unmake = unmake
        # Bounded by the callers: no more jobs than outstanding calls.
        self._jobs: queue.SimpleQueue[Callable[[Library], None] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._library: Library | None = None
        self._submitted = 0  # counted by the clock's thread; jobs that are done, by the owner's
        self._done = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[Library], None]) -> None:
        """Do ``job`` after those before it."""
        self._submitted += 1
        self._jobs.put(job)

    @property
    def idle(self) -> Library | None:
        """The library's object while no job waits or is under way, so that a call now keeps its order."""
        return self._library if self._done == self._submitted else None

    @property
    def library(self) -> Library | None:
        """The library's object, None until it is made."""
        return self._library

    def do(self, job: Callable[[Library], None], library: Library) -> None:
        """Do ``job`` on this thread; an exception is logged."""
        try:
            job(library)
        except Exception:
            log.exception("%s: a call failed with an error that its adapter does not expect", self._thread.name)

    def stop(self) -> None:
        """Begin no further job, and unmake the object. Returns at once."""
        self._stopped.set()
        self._jobs.put(None)

    def join(self, limit_s: float) -> str | None:
        """Wait for the end of the thread; return its name if it still lives."""
        self._thread.join(limit_s)
        return self._thread.name if self._thread.is_alive() else None

    def _work(self) -> None:
        library = self._connected()
        if library is None:
            return
        self._library = library
        while (job := self._jobs.get()) is not None and not self._stopped.is_set():
            self.do(job, library)
            self._done += 1
        try:
            self._unmake(library)
        except Exception:
            log.exception("%s: closing the client failed", self._thread.name)

    def _connected(self) -> Library | None:
        while not self._stopped.is_set():
            try:
                return self._make()
            except Exception as error:
                log.warning("%s: no broker answers yet: %s", self._thread.name, error)
            self._stopped.wait(_CONNECT_PAUSE_S)
        return None
