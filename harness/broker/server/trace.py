"""The trace of one node: what its core observed, one JSON line a fact, written at once so that a kill loses nothing.

Facts of every record (``append``, ``acknowledged``) are left out and the high watermark is thinned, so that the file
stays small however long the node runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from harness.broker.core.types import NodeId
from harness.ground.observations import Acknowledged, Fact, HighWatermarkMoved, Observation, RecordsAppended, to_line

_PER_RECORD: Final = (RecordsAppended, Acknowledged)


class TraceFile:
    """Appends to ``path``."""

    def __init__(self, path: Path, node: NodeId, high_watermark_ms: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._node = node
        self._interval_us = high_watermark_ms * 1000
        self._last_us: dict[str, int] = {}

    def write(self, fact: Fact) -> None:
        """One line, unless this kind of fact is left out; its time is the wall clock's."""
        if isinstance(fact, _PER_RECORD):
            return
        wall_us = time.time_ns() // 1000
        if isinstance(fact, HighWatermarkMoved):
            if wall_us - self._last_us.get(fact.partition, 0) < self._interval_us:
                return
            self._last_us[fact.partition] = wall_us
        os.write(self._fd, to_line(Observation(wall_us, self._node, fact)))

    def close(self) -> None:
        """Nothing may be written afterwards."""
        os.close(self._fd)
