"""Notices when this machine's disk hardly serves: then the nodes of a run had no chance either.

A broker that forces its files to the disk sends no heartbeats meanwhile. If each of them takes longer than a moment,
brokers are fenced again and again, whatever their log could do.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Final

#: A disk that works forces a byte in milliseconds, a busy one in tens of them.
SLOW_S: Final = 0.2
#: Between two tries: a disk that hardly serves has little more to do.
PAUSE_S: Final = 0.25


class DiskWatch:
    """Forces a byte in ``directory`` to the disk now and then, on a thread of its own, until it is closed."""

    def __init__(self, directory: Path) -> None:
        self._closed = Event()
        self._began_s: float | None = None
        self._took_s = 0.0
        Thread(target=self._watch, args=(directory,), name="disk-watch", daemon=True).start()

    @property
    def serves(self) -> bool:
        """True if the last try ended in time, and the one under way, if any, is not late yet."""
        began_s = self._began_s
        return self._took_s <= SLOW_S and (began_s is None or time.monotonic() - began_s <= SLOW_S)

    def close(self) -> None:
        """Try no more, and wait for no try that is under way."""
        self._closed.set()

    def _watch(self, directory: Path) -> None:
        try:
            with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
                while not self._closed.wait(PAUSE_S):
                    self._began_s = began_s = time.monotonic()
                    os.pwrite(file.fileno(), b".", 0)
                    os.fsync(file.fileno())
                    self._took_s, self._began_s = time.monotonic() - began_s, None
        except OSError:  # such as a full disk: no question of time
            self._took_s, self._began_s = 0.0, None
