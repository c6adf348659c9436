"""Schedules of the core: in which order messages that are under way at the same time arrive.

Kafka may fence two brokers that died together in either order, or take two followers back in either. A state of Kafka
is right if the core can be in it, so another schedule of the core is tried where the first one does not explain it.
Schedule 0 has every message on its way for a millisecond; the others draw 0.2 to 2 ms. Nothing else is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from typing_extensions import override

from harness.ground.choices import Choices, Stream
from harness.worlds.simulated.steady import Steady

#: Draws below this are of messages that meet no queue.
_ORDINARY: Final = 16_000
#: Schedules that are tried.
SCHEDULES: Final = 9


def schedule(number: int) -> Choices:
    """The choices of the schedule with this number."""
    return _Jitter(number) if number else Steady(0)


class _Jitter(Choices):
    """Messages take different times; nothing else is drawn."""

    @override
    def stream(self, label: str) -> Stream:
        stream = super().stream(label)
        if not isinstance(stream, _JitterStream):
            stream = self._streams[label] = _JitterStream(label, self._fractions(label))
        return stream


class _JitterStream(Stream):
    """The delays of one wire; the most ordinary choice of anything else."""

    def __init__(self, label: str, fraction: Callable[[], float]) -> None:
        super().__init__(label, fraction)
        self._fraction = fraction

    @override
    def draw(self, bound: int) -> int:
        value = int(self._fraction() * min(bound, _ORDINARY)) if self.label.startswith("delay") else 0
        self._keep(value)
        return value
