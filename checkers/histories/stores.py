"""The places of histories: local files, and object stores or shared file systems that a URI names.

All reading of stored histories goes through this module. A local path is read as a file; ``s3://`` (or Spark's name
for it, ``s3a://``), ``gs://`` and ``hdfs://`` are read with Arrow's file systems, on the driver and on the workers
alike, so that Spark needs no connector of its own. The address of a store and the right to read it come from its usual
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

#: Schemes that a user may write, each with Arrow's name for it.
SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "hdfs": "hdfs"}
_COLLAPSED: Final = re.compile(rf"^({'|'.join(SCHEMES)}):/")


class StorePath(PurePosixPath):
    """A path in a store, such as ``s3://bucket/campaign``. A path's own text would have one slash after the colon."""

    def __str__(self) -> str:
        return _COLLAPSED.sub(r"\1://", super().__str__())


#: A local path or one in a store.
Place = Path | StorePath


def place_of(text: str) -> Place:
    """Parse the text that a user wrote: a path, ``file://``, or a URI of a store.

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


def files_at(path: Place) -> list[Place]:
    """The file at ``path``, or every file at any depth below it, sorted; empty if nothing exists there.

    Raises:
        OSError: the directory or the store cannot be listed.
    """
    if isinstance(path, Path):
        return _local_files(path)
    system, key = _located(path)
    info = system.get_file_info(key)
    if info.type == arrow_fs.FileType.File:
        return [path]
    if info.type == arrow_fs.FileType.NotFound:
        return []
    below = system.get_file_info(arrow_fs.FileSelector(key, recursive=True))
    inside = [file.path.removeprefix(f"{key.rstrip('/')}/") for file in below if file.type == arrow_fs.FileType.File]
    return sorted(path / name for name in inside)


def why_irregular(file: Path) -> str:
    """Say why the file must not be read: a pipe would block, a link may lead nowhere; "" if it is a regular file."""
    try:
        return "" if stat.S_ISREG(file.stat().st_mode) else "it is not a regular file"
    except OSError as error:
        return error.strerror or str(error)


def _local_files(path: Path) -> list[Place]:
    if not path.is_symlink() and not path.exists():
        return []
    if not path.is_dir():
        return [path]
    next(path.iterdir(), None)  # raises; os.walk would pass over what it cannot list
    return sorted(Path(directory, name) for directory, _, names in os.walk(path) for name in names)


def size_of(path: Place) -> int:
    """The size in bytes of the file at ``path``.

    Raises:
        OSError: it does not exist.
    """
    if isinstance(path, Path):
        return path.stat().st_size
    system, key = _located(path)
    return int(system.get_file_info(key).size or 0)


def read_bytes(path: Place) -> bytes | None:
    """The whole content of a small file; None if it does not exist.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    try:
        if isinstance(path, Path):
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError(f"{path} is not a regular file")
            return path.read_bytes()
        system, key = _located(path)
        with system.open_input_file(key) as file:
            content: bytes = file.read()
            return content
    except FileNotFoundError:
        return None


def fetch(path: StorePath, directory: Path) -> Path:
    """Copy the file at ``path`` into ``directory``, under its own name.

    Raises:
        OSError: it cannot be read, or not be written.
    """
    system, key = _located(path)
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / path.name
    arrow_fs.copy_files(key, str(target), source_filesystem=system, destination_filesystem=arrow_fs.LocalFileSystem())
    return target


def open_history(path: Place) -> pq.ParquetFile:
    """Open a history's Parquet file.

    Raises:
        workloads.history.HistoryError: it does not exist, is not a history, or has a layout that this version does not
            know.
    """
    if isinstance(path, Path):
        if not path.exists():
            raise HistoryError(
                f"{path} does not exist on {socket.gethostname()}; the workers of a cluster must share the directory "
                "of the histories, and for JSON lines the one that --scratch or ACKPROOF_SCRATCH names"
            )
        return open_file(path)
    try:
        system, key = _located(path)
        opened = pq.ParquetFile(key, filesystem=system, pre_buffer=True)
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"{path} is not a readable Parquet file ({error}); remove it or restore it") from error
    check_metadata(str(path), opened.schema_arrow.metadata)
    return opened


def _located(location: StorePath) -> tuple[Any, str]:
    """The file system of ``location``, and the path in it."""
    scheme, _, rest = str(location).partition("://")
    authority, _, key = rest.partition("/")
    system, root = _system(f"{SCHEMES[scheme]}://{authority}")
    return system, f"{root.rstrip('/')}/{key}".rstrip("/") or "/"


@cache
def _system(root: str) -> tuple[Any, str]:
    """Arrow's file system for a bucket or a host, once a process, and the path of its root there."""
    try:
        system, path = arrow_fs.FileSystem.from_uri(root)
    except pa.ArrowException as error:
        raise OSError(
            f"{root} cannot be opened ({error}); look at its name and at the rights in the environment"
        ) from error
    return system, path
