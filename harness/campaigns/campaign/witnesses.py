"""The stage of witnesses: the runs whose losses the report explains, and traces of their clusters.

Reads ``matrix.json``, writes ``witnesses.json``, and leaves a ``cluster.jsonl`` in each of those runs that has none: a
simulated run is done again for it, of a real one it is in the nodes' own files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from checkers import STRONGEST_FIRST, Cell, Outcome
from harness.campaigns.campaign.replaying import trace_missing
from harness.ground.errors import AckproofError
from harness.ground.progress import Progress
from harness.records.verdict_lines import read_matrix
from harness.records.witness_file import Witnessed, write_witnesses
from workloads import spelled

#: Losing cells that have an account at all: twelve settings, three families and two worlds are 72 cells, and then some.
WITNESSES_MAX: Final = 100


def witness(directory: Path, progress: Progress) -> None:
    """Do the whole stage for the campaign in ``directory``; it can be repeated, and does again only what is missing.

    Raises:
        ResultsError: there is no matrix yet, or a file cannot be written.
    """
    with progress.phase("choosing witnesses", None):
        chosen = choose_witnesses(directory)
    # Verdicts may come from elsewhere: what they name outside of the campaign is not written to.
    runs = [directory / witnessed.run for witnessed in chosen]
    trace_runs([run for run in runs if run.resolve().is_relative_to(directory.resolve())], progress)


def choose_witnesses(directory: Path) -> list[Witnessed]:
    """Write ``witnesses.json``: of the cells that have a witness, broken promises first, then the strongest settings.

    What acks=0 loses needs no account to be believed, and would hide the others.
    """
    cells = sorted((cell for cell in read_matrix(directory).cells if cell.witness is not None), key=_interest)
    witnesses = [
        Witnessed(world=cell.world, cell=cell.cell, run=cell.witness.run, anomaly=cell.witness.anomaly)
        for cell in cells[:WITNESSES_MAX]
        if cell.witness is not None
    ]
    write_witnesses(directory, witnesses)
    return witnesses


def trace_runs(runs: Sequence[Path], progress: Progress) -> None:
    """Give the runs in these directories the ``cluster.jsonl`` that they lack.

    One that cannot be had is a message, and no more: an account without the brokers' side is better than none.
    """
    if not runs:
        return
    with progress.phase("tracing witnesses", len(runs)):
        for run in runs:
            try:
                trace_missing(run)
            except AckproofError as error:
                progress.say(f"{run}: what its brokers did is not known: {error}")
            progress.advance()


def _interest(cell: Cell) -> tuple[bool, int]:
    """Small for what a reader wants to see first."""
    return cell.outcome is not Outcome.BROKEN_PROMISE, STRONGEST_FIRST.index(spelled(cell.settings["acks"]))
