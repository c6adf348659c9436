"""Copies files to and from a machine: by SFTP, as one archive, or while they grow."""

from __future__ import annotations

import shutil
import tarfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from paramiko import SFTPClient, SSHException

from harness.ground.errors import HostError

#: The view of the cluster may be this old; a look at a file that did not grow costs one message each way.
LOOK_EVERY_S: Final = 0.05
#: The pause after a lost connection; the main thread reports one that stays lost.
RETRY_EVERY_S: Final = 1.0
_READ_BYTES: Final = 1 << 18
_END_LIMIT_S: Final = 5.0


def push(sftp: SFTPClient, source: Path, target: str) -> None:
    """Copy one file, whole or not at all, and with its rights."""
    beside = f"{target}.part"
    sftp.put(str(source), beside)
    sftp.chmod(beside, source.stat().st_mode & 0o777)
    sftp.posix_rename(beside, target)


def push_missing(sftp: SFTPClient, source: Path, target: str) -> None:
    """Copy the files of one directory, without its subdirectories, that are missing there or have another size."""
    sizes = {entry.filename: entry.st_size for entry in sftp.listdir_attr(target)}
    for path in sorted(source.iterdir()):
        if path.is_file() and sizes.get(path.name) != path.stat().st_size:
            push(sftp, path, f"{target}/{path.name}")


def unpack(stream: Any, names: Sequence[str], target: Path) -> None:
    """Write only the directories ``names`` of a compressed archive below ``target``, over existing files.

    Raises:
        OSError: it is not an archive, or not a complete one; the files that came are written.
    """
    archive_bytes: IO[bytes] = stream
    wanted = {(name,) for name in names}  # other names would overwrite this run's own files, such as the journal
    try:
        with tarfile.open(fileobj=archive_bytes, mode="r|gz") as archive:
            for member in archive:
                if PurePosixPath(member.name).parts[:1] in wanted:
                    _write(archive, member, target)
    except tarfile.TarError as error:
        raise OSError(f"the archive that came is not complete ({error})") from error


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write a file or a directory, never outside of ``target``: no links, no devices, no ``..``."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        return
    path = target / name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.isfile() and (content := archive.extractfile(member)) is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)


class RemoteTail:
    """A thread that appends the growth of the remote file ``source`` to ``target``, until :meth:`close`."""

    def __init__(self, files: Callable[[], SFTPClient], source: str, target: Path) -> None:
        self._files = files
        self._source = source
        self._target = target
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"follow {target.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, even while the machine is silent. Idempotent."""
        self._ended.set()
        self._thread.join(_END_LIMIT_S)

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                self._copy_growth()
            except (HostError, SSHException, EOFError, OSError):
                self._ended.wait(RETRY_EVERY_S)

    def _copy_growth(self) -> None:
        sftp = self._files()
        try:
            with sftp.open(self._source, "r") as source, self._target.open("ab") as target:
                source.seek(target.tell())
                while not self._ended.is_set():
                    gained = source.read(_READ_BYTES)
                    if self._ended.is_set():  # growth that came too late is fetched at the end, over the same file
                        return
                    if gained:
                        target.write(gained)
                        target.flush()
                    else:
                        self._ended.wait(LOOK_EVERY_S)
        finally:
            sftp.close()
