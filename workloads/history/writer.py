"""Records a history while a run goes on, and seals it at the end."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from typing_extensions import override

from workloads.history import files
from workloads.history.rows import Rows, to_table
from workloads.history.schema import META_RUN
from workloads.history.sealing import UnsealedPart, seal, write_clustered
from workloads.operations import Event

#: A killed harness loses at most what happened since the last flush.
FLUSH_SECONDS: Final = 1.0
#: Longest wait of ``close`` for the flushing thread, which writes at most one second of rows to a local disk.
FLUSHER_END_SECONDS: Final = 60.0


class HistoryWriter(AbstractContextManager["HistoryWriter"]):
    """Records events in memory and writes ``clustered.parquet`` once, at ``close``: for runs in virtual time.

    Raises:
        OSError: the directory cannot be written.
    """

    def __init__(self, directory: Path, run: str) -> None:
        self.directory = directory
        self.run = run
        self._rows = Rows()
        self._closed = False

    def record(self, event: Event) -> None:
        """Take one event, as a :class:`workloads.operations.Recorder` does."""
        self._rows.add(event)

    @property
    def events(self) -> int:
        """Number of events recorded so far."""
        return self._rows.events

    def close(self) -> None:
        """Seal the history; a second call does nothing."""
        if not self._closed:
            self._closed = True
            part = UnsealedPart.of_rows(self._rows)
            write_clustered(self.directory, self.run, [part], complete=True, durable=False)

    def __exit__(self, *_: object) -> None:
        self.close()


class LiveHistoryWriter(HistoryWriter):
    """Records events and puts them on disk at least once a second: for runs in real time.

    A thread of its own writes ``live-NNNNN.parquet``, each readable alone, so that recording never waits for a disk.
    ``close`` seals the history and removes the live files. Safe to use from one recording thread.
    """

    def __init__(self, directory: Path, run: str, *, flush_seconds: float = FLUSH_SECONDS) -> None:
        super().__init__(directory, run)
        directory.mkdir(parents=True, exist_ok=True)
        self._failure: Exception | None = None
        self._files = len(files.live_files(directory))
        self._ended = threading.Event()
        self._flusher = threading.Thread(
            target=self._flush_regularly, args=(flush_seconds,), name="history-flusher", daemon=True
        )
        self._flusher.start()

    @override
    def record(self, event: Event) -> None:
        """Take one event, to be on disk within a second.

        Raises:
            Exception: earlier events could not be written (OSError: the disk's reason), and no later ones will be.
        """
        if self._failure is not None:
            raise self._failure
        self._rows.add(event)

    def flush(self) -> None:
        """Write the events since the last flush. Called by the writer's own thread and by ``close``."""
        columns = self._rows.take()
        if len(columns["index"]):
            table = to_table(columns, self._rows.names)
            path = self.directory / files.live_name(self._files)
            files.write(path, table, {META_RUN: self.run.encode()}, durable=True)
            self._files += 1

    def close(self) -> None:
        """Flush, seal, remove the live files; a second call does nothing.

        Raises:
            Exception: a flush failed, so the history is not whole (OSError: the disk's reason).
        """
        if self._closed:
            return
        self._closed = True
        self._ended.set()
        self._flusher.join(FLUSHER_END_SECONDS)
        if self._failure is not None:
            raise self._failure
        self.flush()
        seal(self.directory, complete=True, run=self.run)

    def _flush_regularly(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            try:
                self.flush()
            except Exception as error:
                self._failure = error
                return
