"""History files: names, atomic writing, reading. The only module of this package that touches a disk."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workloads.history.schema import META_VERSION, NONE, SCHEMA, VERSION, VERSIONS_READ

CLUSTERED: Final = "clustered.parquet"
LIVE_PATTERN: Final = "live-*.parquet"

#: Sorted or slowly growing numbers shrink to a few bits a row as differences.
_DELTA = dict.fromkeys(
    ("index", "time_us", "invoke_index", "invoke_us", "waited_us", "offset", "value"), "DELTA_BINARY_PACKED"
)
_DICTIONARY = [name for name in SCHEMA.names if name not in _DELTA and name not in ("folded", "tombstone")]
#: The columns of later layouts, with what files of earlier ones mean: instance is of layout 3, isolation of layout 6,
#: the others of layout 4.
_ADDED: Final[Mapping[str, int | bool]] = {
    "instance": NONE, "record_key": NONE, "tombstone": False, "isolation": NONE,
}  # fmt: skip


class HistoryError(ValueError):
    """A stored history cannot be read. The text names the file and says what to do."""


def live_files(directory: Path) -> list[Path]:
    """The files of an unsealed history, in the order in which they were written."""
    return sorted(directory.glob(LIVE_PATTERN))


def live_name(number: int) -> str:
    """The name of the ``number``-th live file."""
    return f"live-{number:05d}.parquet"


def write(path: Path, group: pa.Table, metadata: Mapping[bytes, bytes], *, durable: bool) -> None:
    """Write a file with one row group, see :func:`writing`."""
    with writing(path, metadata, durable=durable) as writer:
        writer.write_table(group, row_group_size=max(1, group.num_rows))


@contextmanager
def writing(path: Path, metadata: Mapping[bytes, bytes], *, durable: bool) -> Iterator[pq.ParquetWriter]:
    """Open a writer of history rows into ``path``, which is either absent or whole at any time.

    ``durable`` also asks the operating system to put it on the disk before the name appears.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two checks of one history that was cut off may write at once.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as sink:
            with open_writer(sink, metadata) as writer:
                yield writer
            if durable:
                sink.flush()
                os.fsync(sink.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def open_writer(sink: object, metadata: Mapping[bytes, bytes]) -> pq.ParquetWriter:
    """A writer of history rows into an open file."""
    schema = SCHEMA.with_metadata({META_VERSION: VERSION.encode(), **metadata})
    return pq.ParquetWriter(
        sink,
        schema,
        compression="lz4",
        use_dictionary=_DICTIONARY,
        column_encoding=_DELTA,
        write_statistics=["key"],
        data_page_size=1 << 20,
    )


def open_file(path: Path) -> pq.ParquetFile:
    """Open a history file.

    Raises:
        HistoryError: it is not a history, or has a layout that this version does not know.
    """
    try:
        opened = pq.ParquetFile(path, memory_map=True, pre_buffer=False)
    except OSError as error:
        raise HistoryError(f"{path} cannot be opened ({error.strerror or error})") from error
    except pa.ArrowException as error:
        raise HistoryError(f"{path} is not a readable Parquet file ({error}); remove it or restore it") from error
    check_metadata(str(path), opened.schema_arrow.metadata)
    return opened


def read_table(path: Path, names: Sequence[str] = SCHEMA.names) -> pa.Table:
    """All rows of a history file, in columns of this version's layout.

    Raises:
        HistoryError: it is not a history, has a layout that this version does not know, or is damaged.
    """
    try:
        with open_file(path) as file:
            stored = frozenset(file.schema_arrow.names)
            return completed(file.read([name for name in names if name in stored]), names).select(names)
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path} is damaged ({error}); remove it or restore it") from error


def completed(table: pa.Table, names: Collection[str] = SCHEMA.names) -> pa.Table:
    """Add the columns that an older layout lacks."""
    for name, nothing in _ADDED.items():
        if name in names and name not in table.column_names:
            field = SCHEMA.field(name)
            column = pa.array(np.full(table.num_rows, nothing), field.type)
            table = table.append_column(field, column)
    return table


def check_metadata(name: str, metadata: Mapping[bytes, bytes] | None) -> None:
    """Refuse a file that is not a history of a layout that this version reads.

    Raises:
        HistoryError: it is not.
    """
    version = (metadata or {}).get(META_VERSION)
    if version is None:
        raise HistoryError(f"{name} is a Parquet file but not a history; name a run directory or a JSON lines file")
    layout = version.decode(errors="replace")
    if layout not in VERSIONS_READ:
        why = f"has history layout {layout}, and this version reads {', '.join(VERSIONS_READ)}"
        raise HistoryError(f"{name} {why}; check it with the version of ackproof that wrote it")
