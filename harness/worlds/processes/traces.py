"""What the nodes told of themselves, on the run's clock."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.observations import Observation, from_lines


def observations_in(traces: Iterable[Path], wall_begin_us: int) -> list[Observation]:
    """All lines of these files in order of time; time 0 is ``wall_begin_us``. Missing files say nothing."""
    found = [
        msgspec.structs.replace(seen, time_us=seen.time_us - wall_begin_us)
        for path in traces
        if path.exists()
        for seen in from_lines(path.read_bytes().split(b"\n"))
    ]
    return sorted(found, key=lambda observation: observation.time_us)
