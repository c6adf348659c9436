"""Finding histories: from what a user names to one clustered file each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from checkers.errors import CheckError
from checkers.spark import stores
from checkers.spark.scratch import Scratch
from checkers.spark.stores import Place, StorePath
from workloads.history import HistoryError, import_jsonl, seal
from workloads.history.files import CLUSTERED, LIVE_PATTERN, live_files
from workloads.history.origin import NAME, Origin

#: Endings of histories given as JSON lines.
JSON_LINES: Final = (".jsonl", ".ndjson", ".json")
_PARQUET: Final = b"PAR1"
#: JSON lines that we wrote and that are no history.
VERDICTS: Final = "verdicts.jsonl"
#: Where a run directory keeps its history.
HISTORY: Final = "history"
#: Environment variable with the directory in which histories are stored before they are checked.
SCRATCH: Final = "ACKPROOF_SCRATCH"


class Source(msgspec.Struct, frozen=True):
    """One history: its name in the verdict, and its file, or why there is none."""

    name: str
    file: Place | None
    problem: str | None = None

    def ww_deps(self, wanted: bool | None) -> bool:
        """Whether overwrites count as dependencies in this history.

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
        """What the history looked like in the tool that it comes from; empty for our own.

        Raises:
            HistoryError: the file that says so is there and cannot be read.
        """
        return self._origin() or Origin()

    def _origin(self) -> Origin | None:
        if self.file is None:
            return None
        place = self.file.parent / NAME
        try:
            content = stores.read_bytes(place)
            return None if content is None else msgspec.json.decode(content, type=Origin)
        except (OSError, msgspec.DecodeError) as error:
            raise HistoryError(f"{place} cannot be read ({error}); restore it, or import the history again") from error


class Sources:
    """Histories ready to be checked; foreign ones are stored in a temporary directory that ends with this object.

    It is made in ``scratch``, else where ACKPROOF_SCRATCH says, else where temporary files are. The workers of a
    cluster read it, so there it must be in a directory that they share.

    Raises:
        CheckError: nothing can be written in ``scratch``.
    """

    def __init__(self, paths: Sequence[Place], scratch: Path | None = None) -> None:
        chosen = scratch or os.environ.get(SCRATCH) or None
        try:
            self._scratch = Scratch("ackproof-check-", chosen)
        except OSError as error:
            raise CheckError(f"{chosen}: {error.strerror}; name a directory to write in with --scratch") from error
        self.found = [source for path in paths for source in self._at(path)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.close()

    def _at(self, path: Place) -> list[Source]:
        if isinstance(path, StorePath):
            return self._in_store(path)
        try:
            if path.is_file():
                return [self._foreign(path) if path.name.endswith(JSON_LINES) else _parquet(path)]
            stored = _stored_in(path)
            if stored is not None:
                return [_clustered(path, stored)]
            below = _below(path)
        except (HistoryError, OSError) as error:
            return [Source(str(path), None, _told(path, error))]
        if not below:
            return [Source(str(path), None, f"{path} holds no history; name a run directory or a file of JSON lines")]
        return [source for found in below for source in self._at(found)]

    def _in_store(self, path: StorePath) -> list[Source]:
        try:
            files = stores.files_at(path)
        except OSError as error:
            return [Source(str(path), None, f"{path} cannot be listed: {error}")]
        if files == [path] and not path.name.endswith(JSON_LINES):
            return [Source(str(path), path)]
        found = [self._stored(directory, files) for directory in histories_among(files)]
        found += [self._foreign(file) for file in files if file == path or (file.parent == path and is_foreign(file))]
        return found or [Source(str(path), None, f"{path} holds no history; name a run or a file of JSON lines")]

    def _stored(self, directory: StorePath, files: Sequence[StorePath]) -> Source:
        """A history in a store. One that was cut off is fetched and clustered here."""
        name = str(directory.parent if directory.name == HISTORY else directory)
        if directory / CLUSTERED in files:
            return Source(name, directory / CLUSTERED)
        target = Path(tempfile.mkdtemp(dir=self._scratch.path))
        try:
            for file in files:
                if file.parent == directory and file.match(LIVE_PATTERN):
                    stores.fetch(file, target)
            return Source(name, seal(target, complete=False))
        except (HistoryError, OSError) as error:
            return Source(name, None, str(error).replace(str(target), str(directory)))

    def _foreign(self, path: Place) -> Source:
        target = Path(tempfile.mkdtemp(dir=self._scratch.path))
        try:
            local = path if isinstance(path, Path) else stores.fetch(path, target)
            import_jsonl(local, target)
        except (HistoryError, OSError) as error:
            return Source(str(path), None, str(error).replace(str(target / path.name), str(path)))
        return Source(str(path), target / CLUSTERED)


def histories_among(files: Sequence[StorePath]) -> list[StorePath]:
    """The directories in a store that hold a history's Parquet files."""
    return sorted({file.parent for file in files if file.name == CLUSTERED or file.match(LIVE_PATTERN)})


def is_foreign(file: Place) -> bool:
    """Whether a file in a directory is by its name a history of JSON lines."""
    return file.name.endswith(JSON_LINES[:2]) and file.name != VERDICTS


def _stored_in(path: Path) -> Path | None:
    """The directory with the Parquet files of the history at ``path``, if there is one."""
    for directory in (path, path / HISTORY):
        if (directory / CLUSTERED).exists() or live_files(directory):
            return directory
    return None


def _clustered(path: Path, directory: Path) -> Source:
    """The clustered file of a stored history. One that was cut off is clustered first, its live files stay."""
    file = directory / CLUSTERED
    live = live_files(directory)
    newest = max((live_file.stat().st_mtime_ns for live_file in live), default=0)
    if not file.exists() or file.stat().st_mtime_ns < newest:
        seal(directory, complete=False)
    return Source(str(path), file)


def _parquet(path: Path) -> Source:
    """A file that is named by itself and does not have the name of JSON lines."""
    with path.open("rb") as file:
        if file.read(len(_PARQUET)) == _PARQUET:
            return Source(str(path), path)
    kinds = ", ".join(JSON_LINES)
    why = f"{path} is neither Parquet nor has the name of JSON lines ({kinds}); name a run, a campaign or such a file"
    return Source(str(path), None, why)


def _told(path: Path, error: HistoryError | OSError) -> str:
    return str(error) if isinstance(error, HistoryError) else f"{path} cannot be read: {error}"


def _below(path: Path) -> list[Path]:
    """Histories below a directory: run directories at any depth, and files of JSON lines in it."""
    runs = {file.parent for pattern in (CLUSTERED, "live-*.parquet") for file in path.rglob(pattern)}
    foreign = {file for file in path.iterdir() if file.is_file() and is_foreign(file)}
    return sorted(runs | foreign) if path.is_dir() else []
