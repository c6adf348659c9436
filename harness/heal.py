"""Repairs what a dead harness left behind, from the undo journals of its runs."""

from __future__ import annotations

from pathlib import Path

from harness.errors import ResultsError
from harness.hosts.undo import undo_all
from nemesis.journal import FILE_NAME, Journal, standing


def heal(directory: Path) -> list[str]:
    """Undo everything that still stands in the journals of a run, or of all runs below a campaign's directory.

    Newest deeds first. The answer names what was still there ("process 4711 (node 2)"); a second call finds nothing.
    Process ids that the kernel has given to others since are left alone (see :mod:`harness.hosts.processes`).

    Raises:
        ResultsError: ``directory`` is none, or a journal cannot be written.
    """
    if not directory.is_dir():
        raise ResultsError(f"{directory} is no directory; name a run or a campaign below results/")
    undone: list[str] = []
    for path in sorted(directory.rglob(FILE_NAME)):
        if standing(path):
            undone += _heal_journal(path)
    return undone


def _heal_journal(path: Path) -> list[str]:
    try:
        journal = Journal(path)
    except OSError as error:
        raise ResultsError(
            f"{path} cannot be written ({error}); heal with the rights of the user who ran it"
        ) from error
    try:
        return undo_all(journal)
    finally:
        journal.close()
