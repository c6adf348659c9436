"""The shell around a core: gives it messages and the time, and does what it asks for."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count

from harness.broker.core.effects import Core, Deliver, Effect, Observed, Timer
from harness.broker.core.messages import Message
from harness.broker.core.types import NodeId
from harness.broker.server.trace import TraceFile


class NodeFailure(Exception):  # noqa: N818 - not an error of the caller
    """The core or its disk failed. Nothing of it can be trusted any more: the node has to end."""


def now_us() -> int:
    """Microseconds on a clock that only goes forward."""
    return time.monotonic_ns() // 1000


class Timers:
    """Reminders in a heap, so that thousands of them cost the event loop a single one."""

    def __init__(self, fire: Callable[[Timer], None]) -> None:
        self._fire = fire
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, at_us: int, timer: Timer) -> None:
        """Call ``fire`` with ``timer`` at ``at_us`` or as soon after it as possible."""
        heapq.heappush(self._heap, (at_us, next(self._order), timer))
        if self._heap[0][0] == at_us:
            self._schedule()

    def close(self) -> None:
        """No reminder comes any more."""
        self._heap.clear()
        self._schedule()

    def _schedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        if self._heap:
            delay_s = max(self._heap[0][0] - now_us(), 0) / 1e6
            self._handle = asyncio.get_running_loop().call_later(delay_s, self._run)

    def _run(self) -> None:
        self._handle = None
        while self._heap and self._heap[0][0] <= now_us():
            self._fire(heapq.heappop(self._heap)[2])
        if self._handle is None:
            self._schedule()


class Runtime:
    """Runs one core. ``send`` delivers a message or drops it; ``settle`` is called before anything is sent or armed."""

    def __init__(
        self,
        core: Core,
        send: Callable[[NodeId, Message], None],
        trace: TraceFile,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._core = core
        self._send = send
        self._trace = trace
        self._settle = settle
        self._timers = Timers(self._on_timer)

    def start(self) -> None:
        """Start the core."""
        self.do(self._core.start)

    def deliver(self, sender: NodeId, message: Message) -> None:
        """Give the core a message."""
        self.do(lambda now: self._core.on_message(now, sender, message))

    def do(self, step: Callable[[int], list[Effect]]) -> None:
        """Let the core take one step at the present time and do what it asks for, in its order.

        Raises:
            NodeFailure: the step or what makes it durable raised something.
        """
        try:
            effects = step(now_us())
            self._settle()
        except Exception as error:
            raise NodeFailure(str(error)) from error
        for effect in effects:
            if isinstance(effect, Deliver):
                self._send(effect.target, effect.message)
            elif isinstance(effect, Observed):
                self._trace.write(effect.fact)
            else:
                self._timers.arm(effect.at_us, effect.timer)

    def close(self) -> None:
        """No timer comes any more."""
        self._timers.close()

    def _on_timer(self, timer: Timer) -> None:
        self.do(lambda now: self._core.on_timer(now, timer))
