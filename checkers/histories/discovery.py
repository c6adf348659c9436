"""Finds histories, once: from the paths that a user names to one clustered file each.

:func:`find_histories` only looks, so that a mistake shows at once. :class:`Sources` then fetches, clusters and imports
the histories that cannot be checked as they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from checkers.errors import CheckError
from checkers.histories import HISTORY, RUN_FILE, VERDICTS_FILE, stores
from checkers.histories.scratch import Scratch, ScratchKind
from checkers.histories.stores import Place, StorePath
from workloads.history import (
    CLUSTERED,
    KINDS,
    LIVE_PATTERN,
    ORIGIN_FILE,
    DecodeAll,
    HistoryError,
    HistoryKind,
    Origin,
    decode_here,
    import_history,
    recognised,
    seal,
)

#: Endings of histories given as JSON lines.
JSON_LINES: Final = (".jsonl", ".ndjson", ".json")
#: The end of the name of Jepsen's histories.
_EDN: Final = "history.edn"
#: Environment variable with the directory in which histories are stored before they are checked.
SCRATCH: Final = "ACKPROOF_SCRATCH"
#: The reason of a run that left no history; its ``run.json`` may tell more.
NO_HISTORY: Final = "no history"
_NAME_WHAT: Final = "name runs, a campaign, or files of JSON lines"


class SourceKind(Enum):
    """The kinds of places: a run of ours (maybe without a history), a stored history, a file, or nothing to judge."""

    RUN = "run"
    STORED = "stored"
    FILE = "file"
    NOTHING = "nothing"
    UNREACHABLE = "unreachable"


class FoundHistory(NamedTuple):
    """A history at ``path``; ``files`` are the Parquet files of a stored one, ``problem`` says why it has no file."""

    path: Place
    kind: SourceKind
    files: tuple[Place, ...] = ()
    problem: str | None = None


class Source(msgspec.Struct, frozen=True):
    """One history ready to be checked: its name in the verdict, and its file, or why it has no file."""

    name: str
    file: Place | None
    problem: str | None = None

    def ww_deps(self, wanted: bool | None) -> bool:
        """Decide that overwrites count as dependencies in this history, or not.

        As ``wanted``, else as the history's own options say, else only in histories of other tools: in ours, writes of
        one process overlap, and a lost write's offset tells more than a cycle does.

        Raises:
            HistoryError: as :meth:`origin`.
        """
        if wanted is not None:
            return wanted
        origin = self._origin()
        return origin is not None and bool(origin.options.get("ww_deps", True))

    def origin(self) -> Origin:
        """The history's look in the tool that it comes from; empty for our own.

        Raises:
            HistoryError: the file with its look exists and cannot be read.
        """
        return self._origin() or Origin()

    def _origin(self) -> Origin | None:
        if self.file is None:
            return None
        path = self.file.parent / ORIGIN_FILE
        try:
            content = stores.read_bytes(path)
            return None if content is None else msgspec.json.decode(content, type=Origin)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HistoryError(f"{path} cannot be read ({error}); restore it, or import the history again") from error


def find_histories(paths: Iterable[Place]) -> list[FoundHistory]:
    """Find the histories at each of ``paths``, every place once.

    A file is one history. So is a directory that holds one (itself, or in ``history``) or that is a run. Any other
    directory gives all runs below it, or else all stored histories below it and the files of JSON lines in it.
    """
    return list({history.path: history for path in paths for history in _histories_at(path)}.values())


def _histories_at(path: Place) -> list[FoundHistory]:
    try:
        files = stores.files_at(path)
    except OSError as error:
        first_line = str(error).partition("\n")[0]  # a store's library may name dozens of places that it looked at
        return [FoundHistory(path, SourceKind.UNREACHABLE, problem=f"{path} cannot be listed: {first_line}")]
    if files == [path]:
        return [FoundHistory(path, SourceKind.FILE)]
    stored: dict[Place, tuple[Place, ...]] = {}
    for file in files:
        if file.name == CLUSTERED or file.match(LIVE_PATTERN):
            stored[file.parent] = (*stored.get(file.parent, ()), file)
    runs = [file.parent for file in files if file.name == RUN_FILE]
    mine = stored.get(path) or stored.get(path / HISTORY)
    if path in runs:
        return [FoundHistory(path, SourceKind.RUN, mine or ())]
    if mine:
        return [FoundHistory(path, SourceKind.STORED, mine)]
    below = [FoundHistory(run, SourceKind.RUN, stored.get(run / HISTORY, ())) for run in runs]
    below = below or [
        *(FoundHistory(_owner(directory), SourceKind.STORED, parts) for directory, parts in stored.items()),
        *(FoundHistory(file, SourceKind.FILE) for file in files if file.parent == path and _is_foreign(file)),
    ]
    absent = isinstance(path, Path) and not path.exists()
    why = f"{path} {'does not exist' if absent else 'holds no history'}; {_NAME_WHAT}"
    return sorted(below, key=lambda history: history.path) or [FoundHistory(path, SourceKind.NOTHING, problem=why)]


def _owner(directory: Place) -> Place:
    return directory.parent if directory.name == HISTORY else directory


def _is_foreign(file: Place) -> bool:
    """Tell by its name that a file in a directory is a history of another tool."""
    return (file.name.endswith(JSON_LINES[:2]) and file.name != VERDICTS_FILE) or file.name == _EDN


class Sources:
    """Histories made ready; a temporary directory with what had to be stored for that ends with this object.

    It is made in ``scratch``, else where ACKPROOF_SCRATCH says, else where temporary files are. The workers of a
    cluster read it, so there it must be in a directory that they share. ``decode_all`` decodes large files of JSON
    lines.

    Raises:
        CheckError: nothing can be written in ``scratch``.
    """

    def __init__(
        self, histories: Iterable[FoundHistory], scratch: Path | None = None, decode_all: DecodeAll = decode_here
    ) -> None:
        self._decode_all = decode_all
        chosen = scratch or os.environ.get(SCRATCH) or None
        try:
            self._scratch = Scratch(ScratchKind.CHECK, chosen)
        except OSError as error:
            raise CheckError(f"{chosen}: {error.strerror}; name a directory to write in with --scratch") from error
        self.ready = [self._source(history) for history in histories]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.close()

    def _source(self, history: FoundHistory) -> Source:
        if history.problem is not None:
            return Source(str(history.path), None, history.problem)
        for file in (history.path,) if history.kind is SourceKind.FILE else history.files:
            if isinstance(file, Path) and (why := stores.why_irregular(file)):
                return Source(str(history.path), None, f"{file} cannot be read: {why}; {_NAME_WHAT}")
        if history.kind is SourceKind.FILE:
            return self._of_file(history.path)
        if not history.files:
            return Source(str(history.path), None, NO_HISTORY)
        return self._stored(history.path, history.files)

    def _stored(self, path: Place, files: Sequence[Place]) -> Source:
        """A stored history. One that was cut off is clustered first: beside its live files, or here if in a store."""
        directory = files[0].parent
        clustered = directory / CLUSTERED
        local = [file for file in files if isinstance(file, Path)]
        if clustered in files and not (local and _is_stale(local)):
            return Source(str(path), clustered)
        target = Path(directory) if local else self._new_directory()

        def make() -> Path:
            for file in files:
                if isinstance(file, StorePath):
                    stores.fetch(file, target)
            return seal(target, complete=False)

        return _made(str(path), make, target, directory)

    def _of_file(self, file: Place) -> Source:
        """A file that is named by itself; one in a store is not opened here if its name says nothing."""
        if not _is_text(file):
            if not isinstance(file, Path):
                return Source(str(file), file)
            try:
                if (kind := recognised(file)) is HistoryKind.PARQUET:
                    return Source(str(file), file)
            except (HistoryError, OSError) as error:
                why = str(error) if isinstance(error, HistoryError) else f"{file} cannot be read: {error}"
                return Source(str(file), None, why)
            if kind is None:
                return Source(str(file), None, f"{file} is no history that can be read: {KINDS}")
        target = self._new_directory()

        def make() -> Path:
            local = file if isinstance(file, Path) else stores.fetch(file, target)
            import_history(local, target, self._decode_all)
            return target / CLUSTERED

        return _made(str(file), make, target, file.parent)

    def _new_directory(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._scratch.path))


def _made(name: str, make: Callable[[], Path], target: Path, named: Place) -> Source:
    """The source that ``make`` leaves in ``target``; errors speak of ``named``, the path that the user wrote."""
    try:
        return Source(name, make())
    except HistoryError as error:
        return Source(name, None, str(error).replace(str(target), str(named)))
    except OSError as error:
        return Source(name, None, f"{name} cannot be read: {error}".replace(str(target), str(named)))


def _is_stale(files: Sequence[Path]) -> bool:
    """Tell that live files are newer than the clustered one beside them: more was recorded since it was made."""
    age_ns = {file.name: file.stat().st_mtime_ns for file in files}
    return age_ns.pop(CLUSTERED) < max(age_ns.values(), default=0)


def _is_text(file: Place) -> bool:
    """Tell by its name that a file is no Parquet."""
    return file.name.endswith((*JSON_LINES, _EDN))
