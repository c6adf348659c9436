"""Full disks: one file that takes all the room of a file system, and is removed again.

The file is allocated and never written, so what is behind the file system (an image, sparse on the machine's own disk)
does not grow. It is gone with the file system; nothing outlives the harness.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from nemesis.cluster import Evidence

#: Beside a node's own files. Kafka looks at directories only, the reference broker at names that it gave.
FILL_NAME: Final = "ackproof-fill"
#: Allocations become smaller until not even one block is to be had.
_FIRST_STEP_BYTES: Final = 64 * 2**20


def fill(place: Path) -> Evidence:
    """Leave no room in the file system at ``place``. Evidence: ``filled_bytes``, and ``free_bytes`` that are left.

    Idempotent: what became free since the last call is taken too. Files can still grow in blocks that they have.

    Raises:
        OSError: the file system refuses for another reason than lack of room.
    """
    descriptor = os.open(place / FILL_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        size, step = os.fstat(descriptor).st_size, _FIRST_STEP_BYTES
        while step >= os.fstatvfs(descriptor).f_bsize:
            if _allocate(descriptor, size, step):
                size += step
            else:
                step //= 2
        left = os.fstatvfs(descriptor)
        return {"filled_bytes": size, "free_bytes": left.f_bavail * left.f_frsize}
    finally:
        os.close(descriptor)


def free(place: Path) -> Evidence:
    """Give it back. Evidence: ``freed_bytes``; nothing if nothing was taken."""
    file = place / FILL_NAME
    if not file.exists():
        return {}
    size = file.stat().st_size
    file.unlink()
    return {"freed_bytes": size}


def _allocate(descriptor: int, offset: int, length: int) -> bool:
    try:
        os.posix_fallocate(descriptor, offset, length)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True
