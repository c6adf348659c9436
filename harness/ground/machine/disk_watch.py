"""Notices when this machine's disk hardly serves.

A broker that forces its files to the disk sends no heartbeats meanwhile. If each of them takes longer than a moment,
brokers are fenced again and again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from harness.ground.machine.watch import Watch


class DiskWatch(Watch):
    """Forces a byte in ``directory`` to the disk."""

    #: A disk that works forces a byte in milliseconds, a busy one in tens of them.
    slow_s: ClassVar[float] = 0.2
    pause_s: ClassVar[float] = 0.25
    hindrance: ClassVar[str] = f"its disk took longer than {slow_s} s to force a byte"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        super().__init__()

    @override
    def _tries(self) -> Generator[bool]:
        with tempfile.TemporaryFile(dir=self._directory, buffering=0) as file:
            while True:
                os.pwrite(file.fileno(), b".", 0)
                os.fsync(file.fileno())
                yield True
