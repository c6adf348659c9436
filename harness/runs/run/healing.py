"""Repairs what a dead harness left behind, from the undo journals of its runs."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers import counted
from harness.ground.errors import HEAL_AGAIN, HostError, NamedWronglyError, NotUndoneError, ResultsError
from harness.records.journal import FILE_NAME, Journal, not_undone, unreadable
from harness.worlds.hosts import NAME_PREFIX, undo_here, undo_machines
from workloads import reason_of

_MAY_REMAIN: Final = f"nodes' processes and what is named {NAME_PREFIX}... may remain"


class Healed(msgspec.Struct, kw_only=True):
    """The outcome of healing: a sentence for each thing.

    ``undone`` names what was there ("process 4711 (node 2)"), ``remaining`` what is still there, and ``doubts`` are
    journals and directories that cannot be read whole or understood.
    """

    undone: list[str]
    remaining: list[str]
    doubts: list[str]

    def summary(self) -> str:
        """Count each kind and say what to do, in one sentence."""
        if not self.remaining and not self.doubts:
            return undone_sentence(len(self.undone)) if self.undone else "nothing was left behind"
        parts = [f"{counted(len(self.undone), 'thing')} {_is(self.undone)} undone"]
        if self.remaining:
            parts.append(f"{len(self.remaining)} {_is(self.remaining)} still there: {HEAL_AGAIN}")
        if self.doubts:
            parts.append(f"{counted(len(self.doubts), 'thing')} {_is(self.doubts)} in doubt: {_MAY_REMAIN}")
        return "; ".join(parts)

    def refuse(self, sentence: str) -> None:
        """Raise what follows from this healing, with ``sentence``, unless everything is undone.

        Raises:
            HostError: something is still there.
            ResultsError: something is in doubt.
        """
        if self.remaining:
            raise HostError(sentence)
        if self.doubts:
            raise ResultsError(sentence)


def undone_sentence(number: int) -> str:
    """Say how many things a dead harness had left and this one has undone."""
    was, now = ("was", "is") if number == 1 else ("were", "are")
    return f"{counted(number, 'thing')} {was} left behind and {now} undone"


def _is(things: Sequence[str]) -> str:
    return "is" if len(things) == 1 else "are"


def heal(directory: Path) -> list[str]:
    """Undo everything that is still in the journals of a run, or of all runs below a campaign's directory.

    Newest actions first. The answer names what was still there; a second call finds nothing.

    Raises:
        NamedWronglyError: ``directory`` is not a directory.
        ResultsError: it cannot be listed whole, or a journal cannot be written or understood.
        HostError: something is still there.
            What can be undone was undone before either is raised.
    """
    healed = heal_all(directory)
    problems = [*healed.remaining, *([HEAL_AGAIN] if healed.remaining else []), *healed.doubts]
    doubt = f": {_MAY_REMAIN}" if healed.doubts else ""
    done = f"; undone: {', '.join(healed.undone)}" if healed.undone else ""
    healed.refuse(f"{'; '.join(problems)}{doubt}{done}")
    return healed.undone


def heal_all(directory: Path) -> Healed:
    """Do what :func:`heal` does, and answer with a list of each; what could not be undone raises nothing.

    Process ids that the kernel has given to others since are left alone (see :mod:`harness.worlds.hosts.processes`).

    Raises:
        NamedWronglyError: ``directory`` is not a directory.
    """
    if not directory.is_dir():
        raise NamedWronglyError(f"{directory} is not a directory; name a run or a campaign below results/")
    healed = Healed(undone=[], remaining=[], doubts=[])
    closed: list[OSError] = []
    journals = _journals(directory, closed.append)
    for path in journals:
        try:
            if not_undone(path):
                _heal_journal(path, healed)
            healed.doubts += _doubts(path)
        except ResultsError as error:
            healed.doubts.append(str(error))
        except OSError as error:
            healed.doubts.append(f"{path} cannot be read ({reason_of(error)})")
    healed.doubts += _unlisted(closed, journals)
    return healed


def is_left_behind(directory: Path) -> bool:
    """True where something is left, as far as can be read, in the journals at or below ``directory``."""
    for path in _journals(directory):
        with contextlib.suppress(OSError):
            if not_undone(path):
                return True
    return False


def to_heal(directory: Path) -> str:
    """A warning at the end of a message, "" where nothing is left behind in ``directory``."""
    return f"; some of it was not undone: ackproof heal {directory}" if is_left_behind(directory) else ""


@contextlib.contextmanager
def kept_until_undone(prefix: str) -> Iterator[Path]:
    """A temporary directory of a run, removed at its end, unless its journal names what must be undone yet.

    A scratch directory would not do: the next one of its kind, and `ackproof heal`, remove it after a kill.

    Raises:
        HostError: the block failed, and something is left behind: where, the text says.
        KeyboardInterrupt: likewise.
    """
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield directory
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"{str(error) or 'interrupted'}{to_heal(directory)}") from None
    except Exception as error:
        if left := to_heal(directory):
            raise HostError(f"{error}{left}") from error
        raise
    finally:
        if not is_left_behind(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _journals(directory: Path, onerror: Callable[[OSError], None] | None = None) -> list[Path]:
    """Journals at or below ``directory``; what goes away meanwhile, or may not be read, goes to ``onerror``."""
    return sorted(Path(top) / FILE_NAME for top, _, files in os.walk(directory, onerror=onerror) if FILE_NAME in files)


def _unlisted(closed: list[OSError], journals: list[Path]) -> Iterator[str]:
    """Directories that may hide a journal: not those of a run that has one, such as its nodes' disks."""
    for error in closed:
        inside = any(Path(error.filename).is_relative_to(journal.parent) for journal in journals)
        if error.errno != errno.ENOENT and not inside:
            yield f"{error.filename} cannot be listed ({error.strerror})"


def _doubts(path: Path) -> list[str]:
    """Name what cannot be understood in a journal that was healed."""
    garbage, strange = unreadable(path), sorted({action.kind for action in not_undone(path)})
    return [
        *([f"{counted(garbage, 'line')} of {path} cannot be read"] if garbage else []),
        *([f"{path} has actions of a kind that this version does not know ({', '.join(strange)})"] if strange else []),
    ]


def _heal_journal(path: Path, healed: Healed) -> None:
    try:
        journal = Journal(path)
    except OSError as error:
        raise ResultsError(
            f"{path} cannot be written ({reason_of(error)}); heal with the rights of the user who ran it"
        ) from error
    from harness.worlds.kafka.own_topic import undo_topics  # noqa: PLC0415 - talks to brokers, which few healings need

    try:
        for undo in (undo_here, undo_machines, undo_topics):  # none waits for another to succeed
            try:
                healed.undone += undo(journal)
            except NotUndoneError as error:
                healed.undone += error.undone
                healed.remaining += error.remaining
    finally:
        journal.close()
