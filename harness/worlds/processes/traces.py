"""What the nodes told of themselves, on the run's clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.worlds.contract import Observation


class TraceLine(msgspec.Struct, frozen=True):
    """One line of a node's trace; ``wall_us`` is microseconds since the epoch."""

    wall_us: int
    node: int
    what: str
    partition: str | None
    facts: dict[str, Any]


_DECODER = msgspec.json.Decoder(TraceLine)


def observations_in(traces: Iterable[Path], wall_begin_us: int) -> list[Observation]:
    """All lines of these files in order of time; time 0 is ``wall_begin_us``. Missing files say nothing."""
    found = [observation for path in traces for observation in _read(path, wall_begin_us)]
    return sorted(found, key=lambda observation: observation.time_us)


def _read(path: Path, wall_begin_us: int) -> Iterator[Observation]:
    if not path.exists():
        return
    for raw in path.read_bytes().split(b"\n"):
        try:
            line = _DECODER.decode(raw)
        except msgspec.DecodeError:  # torn by a kill, or the empty rest after the last newline
            continue
        yield Observation(line.wall_us - wall_begin_us, line.node, line.what, line.partition, line.facts)
