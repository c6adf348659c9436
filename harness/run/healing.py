"""Repairs what a dead harness left behind, from the undo journals of its runs."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.errors import HostError, NamedWronglyError, ResultsError
from harness.hosts import NAME_PREFIX, undo_here, undo_machines
from harness.records.journal import FILE_NAME, Journal, not_undone, unreadable
from harness.worlds.kafka.own_topic import undo_topics


def heal(directory: Path) -> list[str]:
    """Undo everything that still stands in the journals of a run, or of all runs below a campaign's directory.

    Newest actions first. The answer names what was still there ("process 4711 (node 2)"); a second call finds nothing.
    Process ids that the kernel has given to others since are left alone (see :mod:`harness.hosts.processes`).

    Raises:
        ResultsError: ``directory`` is none or cannot be listed whole, or a journal cannot be written; or a journal says
            what nobody understands.
        HostError: something is still there.
            What can be undone was undone before either is raised.
    """
    if not directory.is_dir():
        raise NamedWronglyError(f"{directory} is no directory; name a run or a campaign below results/")
    undone: list[str] = []
    doubts: list[str] = []
    failures: list[str] = []
    closed: list[OSError] = []
    journals = _journals(directory, closed.append)
    for path in journals:
        try:
            if not_undone(path):
                _heal_journal(path, undone, failures)
            doubts += _doubts(path)
        except ResultsError as error:
            doubts.append(str(error))
        except OSError as error:
            doubts.append(f"{path} cannot be read ({error})")
    doubts += _unlisted(closed, journals)
    done = f"; undone: {', '.join(undone)}" if undone else ""
    if failures:
        raise HostError("; ".join(failures + doubts) + done)
    if doubts:
        raise ResultsError(f"{'; '.join(doubts)}: nodes' processes and what is named {NAME_PREFIX}... may remain{done}")
    return undone


def is_left_behind(directory: Path) -> bool:
    """Whether something still stands, as far as can be read, in the journals at or below ``directory``."""
    for path in _journals(directory):
        with contextlib.suppress(OSError):
            if not_undone(path):
                return True
    return False


def _journals(directory: Path, onerror: Callable[[OSError], None] | None = None) -> list[Path]:
    """Journals at or below ``directory``; what goes away meanwhile, or may not be read, goes to ``onerror``."""
    return sorted(Path(at) / FILE_NAME for at, _, files in os.walk(directory, onerror=onerror) if FILE_NAME in files)


def _unlisted(closed: list[OSError], journals: list[Path]) -> Iterator[str]:
    """Directories that may hide a journal: not those of a run that has one, such as its nodes' disks."""
    for error in closed:
        inside = any(Path(error.filename).is_relative_to(journal.parent) for journal in journals)
        if error.errno != errno.ENOENT and not inside:
            yield f"{error.filename} cannot be listed ({error.strerror})"


def _doubts(path: Path) -> list[str]:
    """What a journal that was healed says and nobody understands."""
    garbage, strange = unreadable(path), sorted({action.kind for action in not_undone(path)})
    return [
        *([f"{garbage} lines of {path} cannot be read"] if garbage else []),
        *([f"{path} has actions of a kind that this version does not know ({', '.join(strange)})"] if strange else []),
    ]


def _heal_journal(path: Path, undone: list[str], failures: list[str]) -> None:
    try:
        journal = Journal(path)
    except OSError as error:
        raise ResultsError(
            f"{path} cannot be written ({error}); heal with the rights of the user who ran it"
        ) from error
    try:
        for undo in (undo_here, undo_machines, undo_topics):  # none waits for another to succeed
            try:
                undone += undo(journal)
            except HostError as error:
                failures.append(str(error))
    finally:
        journal.close()
