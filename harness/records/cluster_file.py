"""``cluster.jsonl`` of a run: what was observed of its cluster, one fact a line, in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.ground.observations import Observation, from_lines, to_line
from harness.records.files import CLUSTER_FILE, write_file


def write_observations(run: Path, observations: Iterable[Observation]) -> None:
    """Write the file of the run in the directory ``run``, as a whole."""
    write_file(run / CLUSTER_FILE, b"".join(map(to_line, observations)))


def read_observations(run: Path) -> Iterator[Observation]:
    """The lines of the file, if there is one; without a last line that a killed harness tore."""
    path = run / CLUSTER_FILE
    if path.is_file():
        with path.open("rb") as file:
            yield from from_lines(file)
