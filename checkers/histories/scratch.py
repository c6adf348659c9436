"""Temporary directories that do not outlive their makers for long.

A process that is killed cannot tidy up. So each of these directories holds a file that its maker keeps locked, and the
maker of the next one removes those whose lock is free. A lock ends with its process in every case. A process id could
be another process's by then.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

_LOCK: Final = ".in-use"


class ScratchKind(StrEnum):
    """Purposes of these directories: the begins of their names."""

    CHECK = "ackproof-check-"
    SPARK = "ackproof-spark-"
    RUN = "ackproof-run-"
    NIGHT = "ackproof-night-"
    REPLAY = "ackproof-replay-"
    BENCH = "ackproof-bench-"
    RELEASE = "ackproof-release-"


class Scratch:
    """A temporary directory at ``path``, gone with :meth:`close` or with the next one of its prefix after a kill.

    Args:
        prefix: begin of its name; nothing else in ``parent`` has that.
        parent: directory to make it in, by default that of temporary files.

    Raises:
        OSError: nothing can be written there.
    """

    def __init__(self, prefix: str, parent: str | Path | None = None) -> None:
        self.path: Final = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        beside = self.path / f"{_LOCK}.new"
        self._lock = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: then it is never taken for abandoned either
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        beside.rename(self.path / _LOCK)  # under its own name it is locked already
        _remove_all_abandoned(self.path.parent, prefix)

    def close(self) -> None:
        """Remove it; a second call does nothing."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove_abandoned() -> list[Path]:
    """Remove the directories that killed processes left among temporary files; the answer names them."""
    parent = Path(tempfile.gettempdir())
    return [directory for kind in ScratchKind for directory in _remove_all_abandoned(parent, kind)]


def _remove_all_abandoned(parent: Path, prefix: str) -> list[Path]:
    return [directory for directory in parent.glob(f"{prefix}*") if _remove_abandoned(directory)]


def _remove(directory: Path) -> None:
    """Remove a directory; one that Java still writes into, as it ends, stays with a free lock for the next maker."""
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):
        (directory / _LOCK).touch()


def _remove_abandoned(directory: Path) -> bool:
    """Remove a directory whose maker is dead; true if it is gone. Without a lock, or of another user, it stays."""
    try:
        lock = os.open(directory / _LOCK, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # its maker lives, or locks do not work here
    else:
        _remove(directory)
        return not directory.exists()
    finally:
        os.close(lock)
