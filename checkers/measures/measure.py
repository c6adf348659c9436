"""The contract of a measure: counts of a history, as a struct that adds up over its log partitions.

A new one is a struct in a module of this folder, and a field of :class:`checkers.verdicts.verdict.Measures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec

from checkers.columns.log import Log
from checkers.columns.phases import RunMarks


class Measure(msgspec.Struct, kw_only=True):
    """Counts of one history, or of some of its log partitions."""

    @classmethod
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[Self]:
        """Measure each history of ``log``; ``phases`` are theirs."""
        raise NotImplementedError

    def add(self, other: Self) -> None:
        """Add the counts of other log partitions of the same history: every field that is a number."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if type(mine) is type(theirs) is int:
                setattr(self, name, mine + theirs)
