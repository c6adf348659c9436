"""Chance: one recorded sequence of bounded, labelled draws.

Everything that a run leaves to chance is drawn here, so that a seed is a whole run, a recorded run can be repeated draw
by draw, and a shrinker can ask which draws mattered. There is no second source of chance in the program. Draw 0 stands
for the most ordinary choice wherever there is one (the shortest delay, no fault), so that smaller recordings are tamer
runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

#: What logic takes instead of a tape: (label, bound) to a whole number from 0 to bound - 1.
Draw = Callable[[str, int], int]


class Drawn(NamedTuple):
    """One draw, as recorded."""

    label: str
    bound: int
    value: int


class Tape:
    """Draws from ``seed``, or first from ``replayed`` values.

    A replayed value at or above the bound asked for is taken modulo that bound, and after the last one every draw is 0,
    so that an edited recording is still a run. ``bound`` is at least 1 and at most 2**53.
    """

    __slots__ = ("_entries", "_random", "_replayed", "seed")

    def __init__(self, seed: int, replayed: Sequence[int] | None = None) -> None:
        self.seed = seed
        self._random = random.Random(seed).random  # noqa: S311 (repeatable on purpose)
        self._replayed = replayed
        self._entries: list[tuple[str, int, int]] = []

    def draw(self, label: str, bound: int) -> int:
        """A number from 0 to ``bound`` - 1; ``label`` says what for."""
        if self._replayed is None:
            value = int(self._random() * bound)
        else:
            position = len(self._entries)
            value = self._replayed[position] % bound if position < len(self._replayed) else 0
        self._entries.append((label, bound, value))
        return value

    def recorded(self) -> list[Drawn]:
        """Every draw so far, in order."""
        return [Drawn(*entry) for entry in self._entries]

    def values(self) -> list[int]:
        """The values alone: what another tape can replay."""
        return [value for _, _, value in self._entries]
