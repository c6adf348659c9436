"""The trace of one node: what its core observed, one JSON line a fact, written at once so that a kill loses nothing.

Facts of every record (``append``, ``acknowledged``) are left out and the high watermark is thinned, so that the file
stays small however long the node runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import msgspec

from harness.reference.core.effects import Observed
from harness.reference.core.types import NodeId, TopicPartition

_PER_RECORD: Final = frozenset({"append", "acknowledged"})
_THINNED: Final = "high-watermark"


class Trace:
    """Appends to ``path``."""

    def __init__(self, path: Path, node: NodeId, high_watermark_ms: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._node = node
        self._interval_us = high_watermark_ms * 1000
        self._last_us: dict[TopicPartition | None, int] = {}

    def write(self, fact: Observed) -> None:
        """One line, unless this kind of fact is left out."""
        if fact.what in _PER_RECORD:
            return
        wall_us = time.time_ns() // 1000
        if fact.what == _THINNED:
            if wall_us - self._last_us.get(fact.partition, 0) < self._interval_us:
                return
            self._last_us[fact.partition] = wall_us
        line = {
            "wall_us": wall_us,
            "node": self._node,
            "what": fact.what,
            "partition": None if fact.partition is None else str(fact.partition),
            "facts": fact.facts,
        }
        os.write(self._fd, msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Nothing may be written afterwards."""
        os.close(self._fd)
