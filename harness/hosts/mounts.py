"""Ending mounts: unmounting, and turning a mounted file into an ordinary directory."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from harness.hosts.full_disk import FILL_NAME

_UNMOUNT_LIMIT_S: Final = 3.0
_COMMAND_LIMIT_S: Final = 10.0
_PAUSE_S: Final = 0.01


def unmount(place: Path) -> None:
    """Unmount what is mounted there, if anything is.

    Files of a process that has just been killed are closed a moment after its end, hence several attempts; one that
    nobody closes is detached from the tree, and ends with its last user.
    """
    limit = time.monotonic() + _UNMOUNT_LIMIT_S
    while place.is_mount():
        lazily = ["-l"] if time.monotonic() > limit else []
        subprocess.run(  # noqa: S603 - a place in a run's directory
            ["umount", *lazily, str(place)],  # noqa: S607 - umount stands in /bin or /usr/bin, by distribution
            check=False,
            capture_output=True,
            timeout=_COMMAND_LIMIT_S,
        )
        if place.is_mount():
            time.sleep(_PAUSE_S)


def keep_files(place: Path, image: Path) -> bool:
    """Turn the file system of ``image``, mounted at ``place``, into a directory with the same files.

    Whether there was one. The image is removed; files that cannot be read are left out, and what only took room.
    """
    if not image.is_file():
        return False
    kept = place.with_name(f"{place.name}.kept")
    shutil.rmtree(kept, ignore_errors=True)
    if place.is_mount():
        try:
            shutil.copytree(place, kept, symlinks=True, ignore=shutil.ignore_patterns(FILL_NAME))
        except (OSError, shutil.Error):  # without power there is nothing to read
            kept.mkdir(exist_ok=True)
        unmount(place)
        place.rmdir()
        kept.rename(place)
    image.unlink()
    return True
