"""Messages between nodes, noted down as they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from harness.reference.core import messages
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.wires import Wire


class SeenMessage(NamedTuple):
    """A message that arrived, at ``time_us`` of the run's clock. Nodes are those of :mod:`nemesis.cluster`."""

    time_us: int
    source: int
    target: int
    message: messages.Message


class Arrivals:
    """Every message between nodes, or between one and a client, as it arrives; from the first look on."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._next: Callable[[Callable[[Any], object], Any], object] | None = None
        self._begun = False
        self.seen: Final[list[SeenMessage]] = []
        self._taken = 0

    def take(self) -> list[SeenMessage]:
        """What arrived since the last call; nothing at the first, with which the watching begins."""
        if not self._begun:
            self._begun, self._next, self._loop.on_step = True, self._loop.on_step, self._step
        arrived, self._taken = self.seen[self._taken :], len(self.seen)
        return arrived

    def _step(self, function: Callable[[Any], object], argument: Any) -> None:
        wire = getattr(function, "__self__", None)
        # What comes to a cut on its way does not arrive.
        if type(wire) is Wire and wire.cut is None and isinstance(argument, messages.Message):
            self.seen.append(SeenMessage(self._loop.time_us, wire.source, wire.target, argument))
        if self._next is not None:
            self._next(function, argument)
