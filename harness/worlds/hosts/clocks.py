"""Sets the wall clocks of single nodes wrong, through libfaketime.

The library is put before a node's own (LD_PRELOAD) and adds the offset in a file of the node to what its
wall clock says. It reads that file again every second, so a new offset holds within two. The monotonic clock, by which
sessions and timeouts are measured, is left alone. Java lives with it, and so does asyncio; Python's ``time.sleep`` does
not (the kernel calls its moment invalid), and the reference broker never calls it.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import Final

from harness.ground.errors import HostError
from harness.ground.machine.durable_files import write_durably
from harness.worlds.hosts.processes import run
from nemesis.evidence import ClockSet

#: Paths at which distributions have the library for programs with threads.
LIBRARIES: Final = (
    f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)
#: After a node's number: the name of the file with the offsets that its clock had.
STEPS: Final = ".steps"
_PROBE_LIMIT_S: Final = 10.0
_PROBE_OFFSET_MS: Final = 3_600_000
#: A probe starts an interpreter, which takes a moment; a clock that is off by less than this is not known to be wrong.
_COARSE_MS: Final = 1_000


def faketime_library() -> str | None:
    """The path of the library, None if it is not installed."""
    return next((path for path in LIBRARIES if Path(path).is_file()), None)


class Clocks:
    """The clocks of a run's nodes; their files are in ``directory``, which is made.

    Raises:
        HostError: the library is not installed, or has no effect.
    """

    def __init__(self, directory: Path) -> None:
        library = faketime_library()
        if library is None:
            raise HostError("wrong clocks need libfaketime; install the package faketime")
        self._library = library
        self._directory = directory.absolute()
        self._directory.mkdir(parents=True, exist_ok=True)
        probe = self._directory / "probe"
        _write(probe, _PROBE_OFFSET_MS)
        offset_ms = self._offset_ms(probe)
        if abs(offset_ms - _PROBE_OFFSET_MS) > _COARSE_MS:
            raise HostError(
                f"{library} does not change the clock of a program as it should (by {offset_ms} ms instead of "
                f"{_PROBE_OFFSET_MS}); install the package faketime again"
            )

    def environment(self, node: int) -> dict[str, str]:
        """Variables that a node's process needs in its environment, so that its clock can be set."""
        file = self._file(node)
        if not file.exists():
            _write(file, 0)
        return self._variables(file)

    def set(self, node: int, offset_ms: int) -> ClockSet:
        """Set a node's wall clock wrong by ``offset_ms``."""
        file = self._file(node)
        with self._file(node).with_suffix(STEPS).open("a") as steps:
            steps.write(f"{offset_ms}\n")
        _write(file, offset_ms)
        return {"offset_ms": self._offset_ms(file)}

    def _file(self, node: int) -> Path:
        return self._directory / f"{node}.offset"

    def _variables(self, file: Path) -> dict[str, str]:
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            # The repair that the library makes by itself on newer C libraries keeps Java's timed waits from returning.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
        }

    def _offset_ms(self, file: Path) -> int:
        command = [sys.executable, "-S", "-c", "import time; print(time.time_ns())"]
        failure = f"no program runs with {self._library}"
        read = run(command, failure=failure, limit_s=_PROBE_LIMIT_S, env=os.environ | self._variables(file))
        return round((int(read) - time.time_ns()) / 1e6)


def steps_in(directory: Path) -> dict[int, list[int]]:
    """By node, every offset in milliseconds that its clock was ever off by, from the files of :class:`Clocks`."""
    files = directory.glob(f"*{STEPS}")
    return {int(path.stem): [int(line) for line in path.read_text().split()] for path in files}


def _write(file: Path, offset_ms: int) -> None:
    """Replace the file in one step, because a node may read it at any moment."""
    write_durably(file, f"{offset_ms / 1000:+.3f}\n".encode())
