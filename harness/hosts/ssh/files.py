"""Files to and from a machine: pushed by SFTP, fetched as one archive."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from paramiko import SFTPClient


def push(sftp: SFTPClient, source: Path, target: str) -> None:
    """Copy one file, whole or not at all, and with its rights."""
    beside = f"{target}.part"
    sftp.put(str(source), beside)
    sftp.chmod(beside, source.stat().st_mode & 0o777)
    sftp.posix_rename(beside, target)


def push_missing(sftp: SFTPClient, source: Path, target: str) -> None:
    """Copy the files of one directory, without those below, that are not there in the same size."""
    there = {entry.filename: entry.st_size for entry in sftp.listdir_attr(target)}
    for path in sorted(source.iterdir()):
        if path.is_file() and there.get(path.name) != path.stat().st_size:
            push(sftp, path, f"{target}/{path.name}")


def unpack(stream: Any, names: Sequence[str], target: Path) -> None:
    """Write the directories ``names`` of a compressed archive below ``target``, over what is there; nothing else.

    Raises:
        OSError: it is none, or is cut short; what came so far stands.
    """
    archive_bytes: IO[bytes] = stream
    wanted = {(name,) for name in names}  # beside them stand this run's own files, the journal for one
    try:
        with tarfile.open(fileobj=archive_bytes, mode="r|gz") as archive:
            for member in archive:
                if PurePosixPath(member.name).parts[:1] in wanted:
                    _write(archive, member, target)
    except tarfile.TarError as error:
        raise OSError(f"no whole archive came ({error})") from error


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """A file or a directory, which never lands outside of ``target``: no links, no devices, no way up."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        return
    place = target / name
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
    elif member.isfile() and (content := archive.extractfile(member)) is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with content, place.open("wb") as file:
            shutil.copyfileobj(content, file)
