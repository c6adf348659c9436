"""Choices of a run in which nothing is left to chance: scripted stories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from typing_extensions import override

from harness.ground.choices import Choices, Stream
from harness.worlds.simulated.wires import DELAYS_US

_ONE_MS: Final = min(range(len(DELAYS_US)), key=lambda choice: abs(DELAYS_US[choice] - 1_000))
#: Time of every message on its way where nothing is left to chance.
STEADY_DELAY_US: Final = DELAYS_US[_ONE_MS]


class Steady(Choices):
    """Every message takes a millisecond and no cut retransmits, until ``scattered``."""

    scattered = False

    def reseed(self, seed: int) -> None:
        """See :meth:`Choices.reseed`: from now on chance decides."""
        self.scattered = True
        super().reseed(seed)

    @override
    def stream(self, label: str) -> Stream:
        stream = super().stream(label)
        if not isinstance(stream, SteadyStream):
            stream = self._streams[label] = SteadyStream(label, self._fractions(label), self)
        return stream


class SteadyStream(Stream):
    """The draws of :class:`Steady` on one subject."""

    def __init__(self, label: str, fraction: Callable[[], float], choices: Steady) -> None:
        super().__init__(label, fraction)
        self._choices = choices

    @override
    def draw(self, bound: int) -> int:
        if self._choices.scattered:
            return super().draw(bound)
        value = _ONE_MS if self.label.startswith("delay") else 0
        self._keep(value)
        return value
