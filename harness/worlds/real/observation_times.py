"""Brings observations onto the run's clock, corrects wrong wall clocks, and adds the crashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.observations import NodeCrashed, Observation, from_lines
from harness.records.files import CLOCK_FILE
from harness.worlds.contract import NodeCrash
from harness.worlds.hosts import steps_in

#: Longer than any run; clocks are wrong by more than this, or by seconds.
RUN_US: Final = 3_600_000_000


class _Begin(msgspec.Struct, frozen=True):
    wall_begin_us: int


def keep_begin(directory: Path, wall_begin_us: int) -> None:
    """Write down when the clock of the run in ``directory`` began, in microseconds since the epoch."""
    (directory / CLOCK_FILE).write_bytes(msgspec.json.encode(_Begin(wall_begin_us)))


def kept_begin_us(directory: Path) -> int | None:
    """The begin of the clock of the run in ``directory``, in microseconds since the epoch; None if it is not known."""
    try:
        return msgspec.json.decode((directory / CLOCK_FILE).read_bytes(), type=_Begin).wall_begin_us
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def trace_path(directory: Path, node: int) -> Path:
    """The file in which ``node`` of the run in ``directory`` writes its observations, by its wall clock."""
    return directory / "logs" / f"trace-{node}.jsonl"


def traced(directory: Path, wall_begin_us: int) -> list[Observation]:
    """The observations in the traces of the nodes of the run in ``directory``; time 0 is ``wall_begin_us``."""
    return [
        msgspec.structs.replace(seen, time_us=seen.time_us - wall_begin_us)
        for path in sorted((directory / "logs").glob("trace-*.jsonl"))
        for seen in from_lines(path.read_bytes().split(b"\n"))
    ]


def rightly_timed(observations: Iterable[Observation], directory: Path) -> list[Observation]:
    """The observations with right times: a node whose wall clock was wrong wrote down a wrong time.

    ``directory`` holds the files of the run's clocks. A time far outside the run is corrected by the node's offset that
    explains it best; an error of seconds cannot be recognised, and stays.
    """
    steps = steps_in(directory)
    return [
        msgspec.structs.replace(seen, time_us=seen.time_us - _wrong_by_us(seen, steps.get(seen.node, [])))
        for seen in observations
    ]


def _wrong_by_us(seen: Observation, offsets_ms: Sequence[int]) -> int:
    if abs(seen.time_us) < RUN_US:
        return 0
    return min((0, *(offset * 1_000 for offset in offsets_ms)), key=lambda offset_us: abs(seen.time_us - offset_us))


def with_crashes(observations: Iterable[Observation], crashes: Iterable[NodeCrash]) -> list[Observation]:
    """The observations with the crashes, which no node can write down itself, in order of time."""
    ends = [
        Observation(crash.time_us, crash.node, NodeCrashed(exit=crash.exit, words=crash.words)) for crash in crashes
    ]
    return sorted([*observations, *ends], key=lambda seen: seen.time_us)
