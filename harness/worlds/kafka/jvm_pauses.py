"""When a node's Java stood still: garbage collection and other safepoints, from the logs that it keeps of them.

A pause of a few hundred milliseconds looks to everybody else like a slow network, and explains time-outs that no fault
of the schedule does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from harness.observations import JVM_PAUSE_MIN_MS, JvmPaused, Observation

#: Both forms that HotSpot has written since Java 17; reaching the safepoint is part of the pause.
_SAFEPOINT: Final = re.compile(
    rb'^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4})\].*\] Safepoint "(\w+)".* Total: +(\d+) ns'
)
_NODE: Final = re.compile(r"gc-(\d+)\.log(\.\d+)?")


def pauses_in(logs: Path, wall_begin_us: int) -> list[Observation]:
    """The long pauses of all nodes in the directory ``logs``, in order of time; time 0 is ``wall_begin_us``.

    ``time_us`` is the begin of a pause. A node that was started again has a file for each time.
    """
    found = [
        Observation(end_us - pause_us - wall_begin_us, node, JvmPaused(pause_ms=pause_us // 1000, cause=cause))
        for path in sorted(logs.glob("gc-*"))
        if (named := _NODE.fullmatch(path.name)) is not None
        for node in [int(named[1])]
        for end_us, pause_us, cause in _safepoints(path)
        if pause_us >= JVM_PAUSE_MIN_MS * 1000 and end_us >= wall_begin_us
    ]
    return sorted(found, key=lambda seen: seen.time_us)


def _safepoints(path: Path) -> Iterator[tuple[int, int, str]]:
    """(end in microseconds since the epoch, microseconds of pause, cause); the log line is written at the end."""
    with path.open("rb") as file:
        for line in file:
            if (found := _SAFEPOINT.match(line)) is not None:
                end = datetime.strptime(found[1].decode(), "%Y-%m-%dT%H:%M:%S.%f%z")
                yield round(end.timestamp() * 1_000) * 1_000, int(found[3]) // 1000, found[2].decode()
