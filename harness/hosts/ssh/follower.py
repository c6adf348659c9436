"""A thread that brings home what a growing file on a machine gains, so that its reader need not know where it grows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from paramiko import SFTPClient, SSHException

from harness.errors import HostError

#: The view of the cluster is this much old; a look at a file that gained nothing is one message each way.
LOOK_EVERY_S: Final = 0.05
#: After a lost connection; the main thread tells of it if it stays away.
RETRY_EVERY_S: Final = 1.0
_READ_BYTES: Final = 1 << 18
_END_LIMIT_S: Final = 5.0


class Follower:
    """Appends to ``target`` what ``source`` has beyond the size of ``target``, until :meth:`close`."""

    def __init__(self, files: Callable[[], SFTPClient], source: str, target: Path) -> None:
        self._files = files
        self._source = source
        self._target = target
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"follow {target.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, also in the midst of a silence of the machine. Idempotent."""
        self._ended.set()
        self._thread.join(_END_LIMIT_S)

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                self._copy_growth()
            except (HostError, SSHException, EOFError, OSError):
                self._ended.wait(RETRY_EVERY_S)

    def _copy_growth(self) -> None:
        sftp = self._files()
        try:
            with sftp.open(self._source, "r") as source, self._target.open("ab") as target:
                source.seek(target.tell())
                while not self._ended.is_set():
                    gained = source.read(_READ_BYTES)
                    if self._ended.is_set():  # what came too late is fetched with the rest, over the same file
                        return
                    if gained:
                        target.write(gained)
                        target.flush()
                    else:
                        self._ended.wait(LOOK_EVERY_S)
        finally:
            sftp.close()
