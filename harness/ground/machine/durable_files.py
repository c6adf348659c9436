"""Files and names that are still there after a loss of power."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Make creations, renames and deletions in ``directory`` durable: a name is on disk only when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``; durable when this returns. A reader sees the old content or the new."""
    beside = path.with_name(path.name + ".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.rename(path)
    sync_directory(path.parent)


def remove_durably(path: Path) -> None:
    """Delete ``path``; durable when this returns. Nothing happens if it is not there."""
    if path.exists():
        path.unlink()
        sync_directory(path.parent)
