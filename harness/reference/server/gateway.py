"""The way of a client's request into the core and of the answer back, by a correlation of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.reference.core.messages import Message
from harness.reference.core.types import NodeId


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

    def give_up(self, correlation: int) -> bool:
        """Wait no more for an answer; whether it was still waited for."""
        return self._pending.pop(correlation, None) is not None

    def answered(self, message: Any) -> None:
        """The core answers; an answer that nobody waits for is dropped."""
        waiting = self._pending.pop(message.correlation, None)
        if waiting is not None:
            waiting(message)

    @property
    def pending(self) -> int:
        """How many answers are waited for."""
        return len(self._pending)


class Gather:
    """Collects a known number of answers, by place, and hands them over together."""

    def __init__(self, size: int, done: Callable[[Sequence[Any]], None]) -> None:
        self._answers: list[Any] = [None] * size
        self._missing = size
        self._done = done
        if not size:
            done(())

    def put(self, place: int, answer: Any) -> None:
        """The answer at ``place``; the last one calls ``done``."""
        self._answers[place] = answer
        self._missing -= 1
        if not self._missing:
            self._done(self._answers)

    def at(self, place: int) -> Callable[[Any], None]:
        """A function that puts its argument at ``place``."""
        return lambda answer: self.put(place, answer)
