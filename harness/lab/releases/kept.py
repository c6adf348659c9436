"""The files of judged releases: what each try observed, and the record and pages of a release.

::

    results/releases/4.4.0/plays/finding-008-commit.json   the tries of one entry, written whole after each
    results/releases/4.4.0/release.json, .md, .html        what follows from them
    results/releases/4.4.0/work/                           what a try needs while it is played
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import harness
from harness.lab.releases.harms import KnownHarm
from harness.records.files import files_of, read_file, read_json, write_file, write_json
from harness.records.release_file import ReleasePlay, ReleaseRecord

RECORD_FILE: Final = "release.json"
_AGAIN: Final = "remove it, and the harm is played again"


class Kept(NamedTuple):
    """The directory of one release, patched or not."""

    directory: Path

    @classmethod
    def of(cls, root: Path, release: str, patch: Path | None = None) -> Kept:
        """The directory of a release below ``root``; one with other classes has one of its own."""
        return cls(root / (release if patch is None else f"{release}-{patch.name}"))

    def plays(self, harm: KnownHarm) -> tuple[ReleasePlay, ...]:
        """The tries of a harm, as far as they were played.

        Raises:
            ResultsError: its file cannot be read.
        """
        path = self._file(harm)
        return () if read_file(path, _AGAIN) is None else read_json(path, tuple[ReleasePlay, ...], _AGAIN)

    def keep(self, harm: KnownHarm, plays: tuple[ReleasePlay, ...]) -> None:
        """Write the tries of a harm: whole, or not at all."""
        path = self._file(harm)
        with files_of(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, plays)

    def write(self, record: ReleaseRecord, markdown: str, page: str) -> Path:
        """Write the record and its pages; the path of the Markdown."""
        with files_of(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        write_json(self.directory / RECORD_FILE, record)
        write_file(self.directory / "release.html", page.encode())
        path = self.directory / "release.md"
        write_file(path, markdown.encode())
        return path

    def _file(self, harm: KnownHarm) -> Path:
        return self.directory / "plays" / harm.file


def judged_releases(root: Path) -> set[str]:
    """The releases that were judged, unpatched: by this project, and below ``root``."""
    package = Path(harness.__file__).parent
    roots = (package / "releases", package.parent / "results" / "reference" / "releases", root)
    records = (path for each in roots for path in each.glob(f"*/{RECORD_FILE}"))
    read = (read_json(path, ReleaseRecord, "judge the release again") for path in records)
    return {record.release for record in read if not record.patch}
