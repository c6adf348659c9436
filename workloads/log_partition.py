"""A log partition as a value, and the name by which files, messages and people know it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class LogPartition(NamedTuple):
    """One log partition of a topic. As text it is ``topic-0``, which :meth:`named` reads."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

    @staticmethod
    @lru_cache(maxsize=4_096)
    def named(name: str) -> LogPartition:
        """Read a log partition from its name.

        Raises:
            ValueError: the name does not end with a hyphen and a number.
        """
        topic, hyphen, number = name.rpartition("-")
        if not (hyphen and number.isdecimal()):
            raise ValueError(f'"{name}" does not name a log partition; write topic-number')
        return LogPartition(topic, int(number))
