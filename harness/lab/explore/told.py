"""Dictionaries in the order in which a process has learnt their content, so that others are told the new part."""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Told(dict[K, V]):
    """A dictionary that grows, and knows which part of it the other processes have, too."""

    def __init__(self) -> None:
        super().__init__()
        self._told = 0

    def fresh(self) -> dict[K, V]:
        """The part that no other process was told yet; from now on all is told."""
        fresh = dict(islice(self.items(), self._told, None))
        self._told = len(self)
        return fresh
