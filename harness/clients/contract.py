"""What an adapter of a real client gets from a world, and what a world gets from it, besides ``workloads.client``.

A real client has threads of its own; a run has one clock with one thread. An adapter talks to its client on other
threads and hands every result over with :meth:`ThreadedClock.post`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workloads.client import Clients, Clock


class ThreadedClock(Clock, Protocol):
    """A clock to which other threads can hand over."""

    def post(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` soon, on the clock's thread. The one method that any thread may call; never blocks."""
        ...


class RealClients(Clients, Protocol):
    """Clients with connections and threads."""

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """What the client library really works with, by role (``producer``, ``consumer``), defaults included."""
        ...

    def close(self, limit_s: float) -> list[str]:
        """Close every client and wait for its threads; the answer names those that live on after ``limit_s``."""
        ...
