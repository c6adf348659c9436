"""The parts of a target that do things to the disks of nodes; :mod:`nemesis.cluster` says what holds of every part."""

from __future__ import annotations

from typing import Final, Protocol

from nemesis.evidence import DirectoryFailed, DiskDamaged, DiskFilled, DiskLied, DiskSlowed

#: The number of parts into which a log is divided when a record is chosen in it.
LOG_PARTS: Final = 1000


class Files(Protocol):
    """The files on the nodes' disks."""

    def wipe(self, node: int) -> DiskDamaged:
        """Empty the disk of a dead node; its next start finds nothing, as after a new machine."""

    def corrupt(self, node: int, partition: str, pick: int) -> DiskDamaged:
        """Change one byte of a record that a dead node keeps of ``partition``.

        ``pick``, from 0 up to LOG_PARTS, is how far into the log the record is.
        """


class LogDirectories(Protocol):
    """The directories on several disks among which a node's logs are spread (log.dirs)."""

    def fail(self, node: int, partition: str) -> DirectoryFailed:
        """Let the directory fail in which a running node keeps ``partition``; with the last of them the node ends."""

    def replace(self, node: int) -> DirectoryFailed:
        """Put empty directories in the place of the failed ones of a dead node."""


class WriteCaches(Protocol):
    """The caches inside the nodes' disks, which a loss of power empties."""

    def lie(self, node: int) -> DiskLied:
        """Let the node's disk call everything flushed that is written to it, and keep it in its cache only.

        A loss of power (:class:`nemesis.cluster.Power`) takes it from then on, and its evidence has ``lost_flushed``.
        """

    def obey(self, node: int) -> DiskLied:
        """Let it write what is in its cache, and flush again when it is asked to."""


class DiskSpace(Protocol):
    """The room on the nodes' disks."""

    def fill(self, node: int) -> DiskFilled:
        """Leave no room on the node's disk."""

    def free(self, node: int) -> DiskFilled:
        """Give back what :meth:`fill` took."""


class DiskSpeed(Protocol):
    """The speed at which the nodes' disks write."""

    def slow(self, node: int) -> DiskSlowed:
        """Let the node's disk write slowly."""

    def restore(self, node: int) -> DiskSlowed:
        """Let it write as fast as it can again."""
