"""``witnesses.json`` of a campaign: which run shows what was found in which cell, the most interesting first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.errors import ResultsError
from harness.records.files import WITNESSES_FILE, read_json, write_file


class Witnessed(msgspec.Struct, frozen=True, kw_only=True):
    """One cell (``world`` and ``cell``), and the ``run`` that shows its ``anomaly``, by its place in the campaign."""

    world: str
    cell: str
    run: str
    anomaly: str


def write_witnesses(directory: Path, witnesses: Sequence[Witnessed]) -> None:
    """Write the file of the campaign in ``directory``."""
    write_file(directory / WITNESSES_FILE, msgspec.json.format(msgspec.json.encode(witnesses), indent=1) + b"\n")


def read_witnesses(directory: Path) -> list[Witnessed]:
    """The witnesses of the campaign in ``directory``, in the order in which they were written.

    Raises:
        ResultsError: the file is missing or cannot be read.
    """
    path = directory / WITNESSES_FILE
    advice = f"make it with: ackproof report {directory}"
    if not path.is_file():
        raise ResultsError(f"{directory} holds no {WITNESSES_FILE}; {advice}")
    return read_json(path, list[Witnessed], advice)
