"""Recording a history while a run goes on, and sealing it at the end."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import numpy as np

from workloads.history import files
from workloads.history.clustering import cluster, groups, joined, spread
from workloads.history.rows import Columns, Names, Rows, from_tables, to_table
from workloads.history.schema import META_COMPLETE, META_EVENTS, META_JOINED, META_RUN, META_SPREAD, SCHEMA
from workloads.operations import Event

#: A killed harness loses at most what happened since the last flush.
FLUSH_SECONDS: Final = 1.0
#: How long ``close`` waits for the flushing thread, which writes at most one second of rows to a local disk.
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
        """See :meth:`workloads.operations.Recorder.record`."""
        self._rows.add(event)

    @property
    def events(self) -> int:
        """Number of events recorded so far."""
        return self._rows.events

    def close(self) -> None:
        """Seal the history. Idempotent."""
        if not self._closed:
            self._closed = True
            columns = self._rows.take()
            write_clustered(self.directory, self.run, columns, self._rows.names, complete=True, durable=False)

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
        self._lock = threading.Lock()
        self._failure: OSError | None = None
        self._files = len(files.live_files(directory))
        self._ended = threading.Event()
        self._flusher = threading.Thread(
            target=self._flush_regularly, args=(flush_seconds,), name="history-flusher", daemon=True
        )
        self._flusher.start()

    def record(self, event: Event) -> None:
        """See :meth:`workloads.operations.Recorder.record`.

        Raises:
            OSError: what was recorded before could not be written; nothing is recorded any more.
        """
        if self._failure is not None:
            raise self._failure
        with self._lock:
            self._rows.add(event)

    def flush(self) -> None:
        """Write what was recorded since the last flush. Called by the writer's own thread and by ``close``."""
        with self._lock:
            columns = self._rows.take()
            names: Names = {name: list(texts) for name, texts in self._rows.names.items()}
        if len(columns["index"]):
            table = to_table(columns, names)
            path = self.directory / files.live_name(self._files)
            files.write(path, [table], {META_RUN: self.run.encode()}, durable=True)
            self._files += 1

    def close(self) -> None:
        """Flush, seal, remove the live files. Idempotent.

        Raises:
            OSError: a flush failed, so the history is not whole.
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
            except OSError as error:
                self._failure = error
                return


def seal(directory: Path, *, complete: bool, run: str | None = None) -> Path:
    """Cluster the live files of ``directory`` into ``clustered.parquet``.

    ``complete`` is False for a history whose writer was not closed; its live files stay, in case it is still at work.
    ``run`` names the history, by default as its live files do.

    Raises:
        files.HistoryError: there is nothing to seal, or a live file cannot be read.
    """
    live = files.live_files(directory)
    if not live and run is None:
        raise files.HistoryError(f"{directory} holds no history; name the directory of a run")
    name = run if run is not None else files.open_file(live[0]).schema_arrow.metadata.get(META_RUN, b"").decode()
    columns, names = from_tables([SCHEMA.empty_table(), *map(files.read_table, live)])
    path = write_clustered(directory, name, *empty_key_first(columns, names), complete=complete, durable=True)
    if complete:
        for file in files.live_files(directory):
            file.unlink()
    return path


def empty_key_first(columns: Columns, names: Names) -> tuple[Columns, Names]:
    """Renumber keys so that the empty one is 0, whatever the files began with."""
    keys = ["", *(key for key in names["key"] if key)]
    places = {key: place for place, key in enumerate(keys)}
    table = np.array([places[key] for key in names["key"]], dtype=np.int64)
    return {**columns, "key": table[columns["key"]] if len(table) else columns["key"]}, {**names, "key": keys}


def write_clustered(
    directory: Path, run: str, columns: Columns, names: Names, *, complete: bool, durable: bool
) -> Path:
    """Write unclustered rows as ``clustered.parquet``. The empty key must have code 0."""
    rows = cluster(columns)
    events = int(columns["index"].max(initial=-1)) + 1
    metadata = {
        META_RUN: run.encode(),
        META_COMPLETE: str(complete).lower().encode(),
        META_SPREAD: str(spread(rows)).lower().encode(),
        META_JOINED: str(joined(rows)).lower().encode(),
        META_EVENTS: str(events).encode(),
    }
    path = directory / files.CLUSTERED
    files.write(path, [to_table(part, names) for part in groups(rows)], metadata, durable=durable)
    return path
