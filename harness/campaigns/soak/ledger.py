"""The ledger of a soak: what became of each turn, so that a soak that was killed at any moment can go on.

``ledger.jsonl`` has one JSON object a line, each on disk before the next thing is done. A turn is in exactly one state,
which the last entry that names it says: planned, performed, judged or dropped. The verdicts themselves are in
``verdicts.jsonl``: lines are written there first, and count from the moment when an entry ``judged`` says how long the
file is; what lies beyond is cut off when the soak is resumed, and those turns are judged again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers import VerdictLine
from harness.campaigns.soak.resources import Memory
from harness.records.files import LEDGER_FILE, VERDICTS_FILE, files_of, understanding
from harness.records.verdict_lines import read_line


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="entry"):
    """Every entry has its time: ``at_s`` are seconds of work of this soak, without the time that it lay dead."""

    at_s: float = 0.0


class Began(_Entry, frozen=True, kw_only=True, tag="began"):
    """A session began, at ``utc``; the first one of a soak, or one that resumed it."""

    utc: str


class Planned(_Entry, frozen=True, kw_only=True, tag="planned"):
    """The turn has been drawn: the run of a cell with this ``seed``; or one more try of the run of turn ``again``."""

    turn: int
    world: str
    choice: str
    family: str
    seed: int
    again: int | None = None

    @property
    def cell(self) -> str:
        """The name of the turn's cell, as :attr:`harness.plan.RunSpec.cell`."""
        return f"{self.choice}/{self.family}"

    @property
    def directory(self) -> str:
        """The run's directory, relative to the soak's."""
        if self.again is not None:
            return f"tries/{self.turn}"
        return f"runs/{self.world}/{self.cell}/{self.seed}"


class Performed(_Entry, frozen=True, kw_only=True, tag="performed"):
    """The run is over, and its files are whole: what it left is to be judged. They take ``left_bytes``."""

    turn: int
    status: str
    wall_ms: int
    left_bytes: int


class Tried(msgspec.Struct, frozen=True):
    """The outcome of one more try: the finding of turn ``again`` was ``shown`` by turn ``turn``, or not.

    ``shown`` is None of a try that could not be judged: its run failed in the harness, or its history says too little.
    """

    turn: int
    again: int
    shown: bool | None


class Judged(_Entry, frozen=True, kw_only=True, tag="judged"):
    """These ``turns`` have their lines, in this order, at the end of the first ``verdicts_bytes`` of the verdicts.

    ``tries`` are judged too, and have no line: what was tried because it had failed says nothing of how often it fails.
    """

    turns: tuple[int, ...]
    verdicts_bytes: int
    tries: tuple[Tried, ...] = ()


class Dropped(_Entry, frozen=True, kw_only=True, tag="dropped"):
    """The files of these judged turns are deleted, or about to be; their verdicts stay."""

    turns: tuple[int, ...]


class Failed(_Entry, frozen=True, kw_only=True, tag="failed"):
    """The harness failed, and what the soak says is worth less for it; ``why`` is a sentence.

    One that ``ended_session``, or its use of a world, such as a full disk, is over where a later session goes on.
    """

    why: str
    ended_session: bool = False


class Sampled(_Entry, frozen=True, kw_only=True, tag="sampled"):
    """Memory and disk in use at some time: resident bytes of memory, bytes of the disk; ``runs`` had been judged."""

    memory: Memory
    disk_bytes: int
    runs: int


Entry = Began | Planned | Performed | Judged | Dropped | Failed | Sampled


class AppendOnly:
    """A file of lines that only grows; each call of :meth:`append` is whole on disk, or not there for readers.

    Raises:
        ResultsError: it cannot be written.
    """

    def __init__(self, path: Path, kept_bytes: int | None = None) -> None:
        self.path: Final = path
        with files_of(path.parent):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            os.ftruncate(self._file, _whole_bytes(path) if kept_bytes is None else kept_bytes)
            self.size_bytes = os.fstat(self._file).st_size

    def append(self, lines: Iterable[bytes]) -> None:
        """Add ``lines``, without their line feeds; durable when this returns. Nothing is left of lines that failed."""
        content = b"".join(line + b"\n" for line in lines)
        with files_of(self.path.parent):
            try:
                self._write(content)
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, self.size_bytes)
                raise
        self.size_bytes += len(content)

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._file, content) :]

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _whole_bytes(path: Path) -> int:
    """The length of a file's whole lines: a harness that is killed tears the last one at most."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        while size:
            step = min(size, 65_536)
            file.seek(size - step)
            if (line_end := file.read(step).rfind(b"\n")) >= 0:
                return size - step + line_end + 1
            size -= step
    return 0


class LedgerFiles:
    """The ledger and the verdicts of the soak in ``directory``, open for writing.

    Raises:
        ResultsError: one of them cannot be read or written.
    """

    def __init__(self, directory: Path) -> None:
        self._entries = AppendOnly(directory / LEDGER_FILE)
        judged = (entry for entry in read_ledger(directory) if isinstance(entry, Judged))
        self._verdicts = AppendOnly(
            directory / VERDICTS_FILE, max((entry.verdicts_bytes for entry in judged), default=0)
        )

    def write(self, entry: Entry) -> None:
        """Add ``entry`` to the ledger, on disk."""
        self._entries.append([msgspec.json.encode(entry)])

    def add_verdicts(self, at_s: float, lines: Sequence[tuple[int, VerdictLine]], tries: Sequence[Tried]) -> Judged:
        """Add the verdicts of these turns, and then the entry by which they count."""
        if lines:
            self._verdicts.append(msgspec.json.encode(line) for _, line in lines)
        turns = tuple(turn for turn, _ in lines)
        entry = Judged(at_s=at_s, turns=turns, verdicts_bytes=self._verdicts.size_bytes, tries=tuple(tries))
        self.write(entry)
        return entry

    def close(self) -> None:
        """Close both files. Idempotent."""
        self._entries.close()
        self._verdicts.close()


def read_ledger(directory: Path) -> Iterator[Entry]:
    """The entries of the soak in ``directory``, oldest first, without a last line that was torn.

    Raises:
        ResultsError: the ledger is missing, or an entry cannot be understood.
    """
    path = directory / LEDGER_FILE
    decode = msgspec.json.Decoder(Entry).decode
    with files_of(directory), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            with understanding(f"line {number} of {path}", "begin a new soak"):
                entry = decode(line)
            yield entry


def read_verdicts(directory: Path) -> Iterator[VerdictLine]:
    """The verdicts of the soak in ``directory``, in the order of the entries, one in memory at a time.

    Raises:
        ResultsError: one cannot be read.
    """
    path = directory / VERDICTS_FILE
    with files_of(directory), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield read_line(line, f"line {number} of {path}", "begin a new soak")
