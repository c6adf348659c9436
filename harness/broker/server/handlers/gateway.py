"""The way of a client's request into the core and of the answer back, by a correlation of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from harness.broker.core.messages import Message
from harness.broker.core.types import NodeId
from harness.broker.server.codec.wire import Fields, Header


class Call(NamedTuple):
    """One request of a client, as :mod:`harness.broker.server.codec` reads it, and the way back.

    ``reply`` takes the fields of the response; it is called once, at once or later.
    """

    sender: NodeId
    header: Header
    client_host: str
    request: Any
    reply: Callable[[Fields], None]


class Gateway:
    """Asks the core. ``deliver`` hands it a message; the code that performs its effects calls :meth:`answered`."""

    def __init__(self, deliver: Callable[[NodeId, Message], None]) -> None:
        self._deliver = deliver
        self._pending: dict[int, Callable[[Any], None]] = {}
        self._correlation = 0

    def ask(self, sender: NodeId, question: Any, answered: Callable[[Any], None]) -> int:
        """Give the core ``question`` under a correlation of this gateway's own, which is returned.

        ``answered`` gets the core's answer, maybe before this returns.
        """
        self._correlation += 1
        correlation = self._correlation
        self._pending[correlation] = answered
        self._deliver(sender, replace(question, correlation=correlation))
        return correlation

    def ask_within(
        self,
        limit_s: float,
        sender: NodeId,
        question: Any,
        answered: Callable[[Any], None],
        late: Callable[[], None],
    ) -> None:
        """The same with a limit: where the answer has not come by then, ``late`` is called instead."""

        def in_time(answer: Any) -> None:
            timer.cancel()
            answered(answer)

        def over() -> None:
            if self.give_up(correlation):
                late()

        timer = asyncio.get_running_loop().call_later(limit_s, over)
        correlation = self.ask(sender, question, in_time)

    def give_up(self, correlation: int) -> bool:
        """Wait no more for an answer; True if it was still waited for."""
        return self._pending.pop(correlation, None) is not None

    def answered(self, message: Any) -> None:
        """Hand on an answer of the core; one that no call waits for is dropped."""
        waiting = self._pending.pop(message.correlation, None)
        if waiting is not None:
            waiting(message)

    @property
    def pending(self) -> int:
        """The number of answers that are waited for."""
        return len(self._pending)


class Gather:
    """Collects the answers to the ``size`` parts of a request and gives ``done`` all of them, in the parts' order."""

    def __init__(self, size: int, done: Callable[[list[Any]], None]) -> None:
        self._answers: list[Any] = [None] * size
        self._missing = size
        self._done = done
        if not size:
            done([])

    def put(self, index: int, answer: Any) -> None:
        """Keep the answer to the part at ``index``; the last one completes the response."""
        self._answers[index] = answer
        self._missing -= 1
        if not self._missing:
            self._done(self._answers)

    def put_at(self, index: int) -> Callable[[Any], None]:
        """A function that puts its argument at ``index``."""
        return partial(self.put, index)
