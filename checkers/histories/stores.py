"""The places of histories: local files, and object stores or shared file systems that a URI names.

All reading of stored histories goes through this module. A local path is read as a file; ``s3://`` (or Spark's name
for it, ``s3a://``), ``gs://`` and ``hdfs://`` are read with Arrow's file systems, on the driver and on the workers
alike, so that Spark needs no connector of its own. Where a store is and who may read it is taken from its usual
environment variables (for S3: AWS_ENDPOINT_URL, AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).
"""

from __future__ import annotations

import os
import re
import socket
import stat
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as arrow_fs
import pyarrow.parquet as pq

from checkers.errors import CheckError
from workloads.history import HistoryError, check_metadata, open_file

#: What a user may write, and the name by which Arrow knows it.
SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "hdfs": "hdfs"}
_COLLAPSED: Final = re.compile(rf"^({'|'.join(SCHEMES)}):/")


class StorePath(PurePosixPath):
    """A path in a store, such as ``s3://bucket/campaign``. A path's own text would have one slash after the colon."""

    def __str__(self) -> str:
        return _COLLAPSED.sub(r"\1://", super().__str__())


#: Where something lies.
Place = Path | StorePath


def place_of(text: str) -> Place:
    """Read what a user named: a path, ``file://``, or a URI of a store.

    Raises:
        CheckError: the URI is of an unknown kind, names no bucket or host, or has a password, which is not repeated.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return Path(text)
    if scheme == "file":
        return Path(arrow_fs.FileSystem.from_uri(text)[1])
    if ":" in rest.partition("/")[0].rpartition("@")[0]:
        raise CheckError(
            "a URI with a password (NAME:PASSWORD@...) is refused, because places are written into results; give it in "
            "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
        )
    if scheme not in SCHEMES:
        raise CheckError(f"{text} cannot be read; name a path or one of {', '.join(SCHEMES)} and file, then ://")
    if rest.startswith("/") or not rest:
        raise CheckError(f"{text} names no bucket or host; write {scheme}://NAME/path")
    return StorePath(text)


def files_at(place: Place) -> list[Place]:
    """The file at ``place``, or every file at any depth below it, sorted; none if nothing is there.

    Raises:
        OSError: the directory or the store cannot be listed.
    """
    if isinstance(place, Path):
        return _local_files(place)
    system, path = _located(place)
    found = system.get_file_info(path)
    if found.type == arrow_fs.FileType.File:
        return [place]
    if found.type == arrow_fs.FileType.NotFound:
        return []
    below = system.get_file_info(arrow_fs.FileSelector(path, recursive=True))
    inside = [info.path.removeprefix(f"{path.rstrip('/')}/") for info in below if info.type == arrow_fs.FileType.File]
    return sorted(place / name for name in inside)


def why_irregular(file: Path) -> str:
    """Say why the file must not be read: a pipe lets its reader wait, a link may lead nowhere; "" of a regular one."""
    try:
        return "" if stat.S_ISREG(file.stat().st_mode) else "it is no regular file"
    except OSError as error:
        return error.strerror or str(error)


def _local_files(place: Path) -> list[Place]:
    if not place.is_symlink() and not place.exists():
        return []
    if not place.is_dir():
        return [place]
    next(place.iterdir(), None)  # raises; os.walk would pass over what it cannot list
    return sorted(Path(directory, name) for directory, _, names in os.walk(place) for name in names)


def size_of(place: Place) -> int:
    """Bytes of the file at ``place``.

    Raises:
        OSError: there is none.
    """
    if isinstance(place, Path):
        return place.stat().st_size
    system, path = _located(place)
    return int(system.get_file_info(path).size or 0)


def read_bytes(place: Place) -> bytes | None:
    """The whole content of a small file; None if there is none.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    try:
        if isinstance(place, Path):
            if not stat.S_ISREG(place.stat().st_mode):
                raise OSError(f"{place} is no regular file")
            return place.read_bytes()
        system, path = _located(place)
        with system.open_input_file(path) as file:
            content: bytes = file.read()
            return content
    except FileNotFoundError:
        return None


def fetch(place: StorePath, directory: Path) -> Path:
    """Copy the file at ``place`` into ``directory``, under its own name.

    Raises:
        OSError: it cannot be read, or not be written.
    """
    system, path = _located(place)
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / place.name
    arrow_fs.copy_files(path, str(target), source_filesystem=system, destination_filesystem=arrow_fs.LocalFileSystem())
    return target


def open_history(place: Place) -> pq.ParquetFile:
    """Open a history's Parquet file.

    Raises:
        workloads.history.HistoryError: it is not one, not there, or of a layout that this version does not know.
    """
    if isinstance(place, Path):
        if not place.exists():
            raise HistoryError(
                f"{place} is not there on {socket.gethostname()}; the workers of a cluster must share the directory of "
                "the histories, and for JSON lines the one that --scratch or ACKPROOF_SCRATCH names"
            )
        return open_file(place)
    try:
        system, path = _located(place)
        opened = pq.ParquetFile(path, filesystem=system, pre_buffer=True)
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{place} is not a readable Parquet file ({error})") from error
    check_metadata(str(place), opened.schema_arrow.metadata)
    return opened


def _located(place: StorePath) -> tuple[Any, str]:
    """The file system of ``place``, and the path there."""
    scheme, _, rest = str(place).partition("://")
    authority, _, key = rest.partition("/")
    system, root = _system(f"{SCHEMES[scheme]}://{authority}")
    return system, f"{root.rstrip('/')}/{key}".rstrip("/") or "/"


@cache
def _system(root: str) -> tuple[Any, str]:
    """Arrow's file system for a bucket or a host, once a process, and the path of its root there."""
    try:
        system, path = arrow_fs.FileSystem.from_uri(root)
    except pa.ArrowException as error:
        raise OSError(f"{root} cannot be opened: {error}") from error
    return system, path
