"""The way of a client's request into the core and of the answer back, by a correlation of this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from harness.reference.core.messages import Message
from harness.reference.core.types import NodeId

#: Takes the response to a request, or a part of one; called once, at once or later.
Reply = Callable[[Any], None]


class Gateway:
    """Asks the core. ``deliver`` hands it a message; whoever interprets its effects calls :meth:`answered`."""

    def __init__(self, deliver: Callable[[NodeId, Message], None]) -> None:
        self._deliver = deliver
        self._pending: dict[int, Callable[[Any], None]] = {}
        self._correlation = 0

    def ask(self, sender: NodeId, question: Callable[[int], Message], answered: Callable[[Any], None]) -> int:
        """Give the core ``question(correlation)``; ``answered`` gets its answer, maybe before this returns."""
        self._correlation += 1
        correlation = self._correlation
        self._pending[correlation] = answered
        self._deliver(sender, question(correlation))
        return correlation

    def ask_numbered(self, sender: NodeId, question: Any, answered: Callable[[Any], None]) -> int:
        """Give the core ``question`` under a correlation of this gateway's own; otherwise as :meth:`ask`."""
        return self.ask(sender, lambda correlation: replace(question, correlation=correlation), answered)

    def give_up(self, correlation: int) -> bool:
        """Wait no more for an answer; True if it was still waited for."""
        return self._pending.pop(correlation, None) is not None

    def answered(self, message: Any) -> None:
        """Hand on an answer of the core; one that nobody waits for is dropped."""
        waiting = self._pending.pop(message.correlation, None)
        if waiting is not None:
            waiting(message)

    @property
    def pending(self) -> int:
        """The number of answers that are waited for."""
        return len(self._pending)


class Gather:
    """Collects the answers to the ``size`` parts of a request and replies with all of them, as one ``response``."""

    def __init__(self, size: int, response: Callable[[tuple[Any, ...]], Any], reply: Reply) -> None:
        self._answers: list[Any] = [None] * size
        self._missing = size
        self._response = response
        self._reply = reply
        if not size:
            reply(response(()))

    def put(self, place: int, answer: Any) -> None:
        """Keep the answer to the part at ``place``; the last one completes the response."""
        self._answers[place] = answer
        self._missing -= 1
        if not self._missing:
            self._reply(self._response(tuple(self._answers)))

    def at(self, place: int) -> Reply:
        """A function that puts its argument at ``place``."""
        return partial(self.put, place)
