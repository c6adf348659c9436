"""Finding histories: from what a user names to one clustered file each."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from workloads.history import HistoryError, import_jsonl, seal
from workloads.history.files import CLUSTERED, live_files
from workloads.history.origin import NAME, Origin

#: Endings of histories given as JSON lines.
JSON_LINES: Final = (".jsonl", ".ndjson", ".json")
#: Where a run directory keeps its history.
HISTORY: Final = "history"


class Source(msgspec.Struct, frozen=True):
    """One history: its name in the verdict, and its file, or why there is none."""

    name: str
    file: Path | None
    problem: str | None = None

    def ww_deps(self, wanted: bool | None) -> bool:
        """Whether overwrites count as dependencies in this history.

        As ``wanted``, else as the history's own options say, else only in histories of other tools: in ours, writes of
        one process overlap, and a lost write's offset tells more than a cycle does.
        """
        if wanted is not None:
            return wanted
        if self.file is None or not (self.file.parent / NAME).exists():
            return False
        return bool(Origin.load(self.file.parent).options.get("ww_deps", True))


class Sources:
    """Histories ready to be checked; foreign ones are stored in a temporary directory that ends with this object."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="ackproof-check-")
        self.found = [source for path in paths for source in self._at(path)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.cleanup()

    def _at(self, path: Path) -> list[Source]:
        if path.is_file():
            return [self._foreign(path) if path.name.endswith(JSON_LINES) else Source(str(path), path)]
        stored = _stored_in(path)
        if stored is not None:
            return [_clustered(path, stored)]
        below = _below(path)
        if not below:
            return [Source(str(path), None, f"{path} holds no history; name a run directory or a file of JSON lines")]
        return [source for found in below for source in self._at(found)]

    def _foreign(self, path: Path) -> Source:
        target = Path(tempfile.mkdtemp(dir=self._scratch.name))
        try:
            import_jsonl(path, target)
        except (HistoryError, OSError) as error:
            return Source(str(path), None, str(error))
        return Source(str(path), target / CLUSTERED)


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
        try:
            seal(directory, complete=False)
        except (HistoryError, OSError) as error:
            return Source(str(path), None, str(error))
    return Source(str(path), file)


def _below(path: Path) -> list[Path]:
    """Histories below a directory: run directories at any depth, and files of JSON lines in it."""
    runs = {file.parent for pattern in (CLUSTERED, "live-*.parquet") for file in path.rglob(pattern)}
    foreign = {file for file in path.iterdir() if file.is_file() and file.name.endswith(JSON_LINES[:2])}
    return sorted(runs | foreign) if path.is_dir() else []
