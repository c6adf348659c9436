"""``witnesses.json`` of a campaign: the run that shows each finding in each cell, the most interesting first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.records.files import WITNESSES_FILE, read_json, write_json


class Witnessed(msgspec.Struct, frozen=True, kw_only=True):
    """One cell (``world`` and ``cell``), and the ``run`` that shows its ``anomaly``, by its path in the campaign."""

    world: str
    cell: str
    run: str
    anomaly: str


def write_witnesses(directory: Path, witnesses: Sequence[Witnessed]) -> None:
    """Write the file of the campaign in ``directory``."""
    write_json(directory / WITNESSES_FILE, witnesses)


def read_witnesses(directory: Path) -> list[Witnessed]:
    """The witnesses of the campaign in ``directory``, in the order in which they were written.

    Raises:
        ResultsError: the file is missing or cannot be read.
    """
    return read_json(directory / WITNESSES_FILE, list[Witnessed], f"make it with: ackproof report {directory}")
