"""The disks of the simulated brokers: logs that stay when a process ends, and what can be done to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.broker.core.log import MemoryLog
from harness.broker.core.types import NONE, NodeId, Outside, TopicPartition
from nemesis.disk_parts import LOG_PARTS
from nemesis.evidence import DiskDamaged, DiskLied, PowerLost

#: The reason why these disks are never full or slow.
NO_DISKS: Final = "logs in memory take no room and no time; use another world"


class Disk:
    """The disk of one broker: logs by log partition, each in one of its log directories.

    While it ``lies``, it calls flushed what it only has cached. A directory that has failed stays so until it is
    replaced by an empty one. ``clean_shutdown`` is the broker epoch of the incarnation that stopped cleanly last, NONE
    without such a mark.
    """

    clean_shutdown: int
    lies: bool
    _make_log: Outside[Callable[[], MemoryLog]]
    _directories: list[dict[TopicPartition, MemoryLog]]
    _failed: list[int]

    def __init__(self, directories: int = 1, make_log: Callable[[], MemoryLog] = MemoryLog) -> None:
        self._make_log = make_log
        self._directories = [{} for _ in range(directories)]
        self._failed = []
        self.clean_shutdown = NONE
        self.lies = False

    def take_clean_shutdown(self) -> int:
        """The mark of a clean stop, as a starting broker finds it and takes it away: in every directory, or none."""
        taken, self.clean_shutdown = self.clean_shutdown, NONE
        return NONE if self._failed else taken

    @property
    def logs(self) -> dict[TopicPartition, MemoryLog]:
        """All of them, those in failed directories too."""
        return {partition: log for directory in self._directories for partition, log in directory.items()}

    def log(self, partition: TopicPartition) -> MemoryLog | None:
        """Give what it holds of a partition, None where that never was here."""
        for directory in self._directories:
            log = directory.get(partition)
            if log is not None:
                return log
        return None

    @property
    def offline(self) -> tuple[TopicPartition, ...]:
        """The partitions in failed directories."""
        return tuple(partition for number in self._failed for partition in self._directories[number])

    @property
    def works(self) -> bool:
        """Some directory has not failed."""
        return len(self._failed) < len(self._directories)

    def open(self, partition: TopicPartition) -> MemoryLog:
        """The log of a partition as a starting broker finds it: recovered (rule 25), or new.

        A new one goes to the good directory that has the fewest (KIP-112).
        """
        log = self.log(partition)
        if log is None:
            good = [directory for number, directory in enumerate(self._directories) if number not in self._failed]
            log = min(good, key=len)[partition] = self._make_log()
        if self.lies:
            log.lie()
        log.recover()
        return log

    def fail(self, partition: str) -> tuple[TopicPartition, ...]:
        """The directory that holds ``partition`` fails; the answer is all that it holds, nothing if it has failed."""
        for number, directory in enumerate(self._directories):
            if number not in self._failed and any(str(log_partition) == partition for log_partition in directory):
                self._failed.append(number)
                return tuple(directory)
        return ()

    def replace(self) -> dict[str, int]:
        """Put empty directories in the place of failed ones; the answer counts the records that are gone."""
        gone = {str(partition): _length(self.logs[partition]) for partition in self.offline}
        while self._failed:
            self._directories[self._failed.pop()].clear()
            self.clean_shutdown = NONE
        return gone

    def wipe(self) -> dict[str, int]:
        """Empty all of it; the answer counts the records that are gone."""
        self._failed = [*range(len(self._directories))]
        return self.replace()

    def lose_power(self) -> PowerLost:
        """Keep what is durable.

        The second is given only if the disk had lied about some of them.
        """
        logs = self.logs
        flushed = {str(partition): log.flushed_offset - log.durable_offset for partition, log in logs.items()}
        lost = {str(partition): log.lose_unflushed() for partition, log in logs.items()}
        return {"lost": lost, "lost_flushed": flushed} if any(flushed.values()) else {"lost": lost}


def _length(log: MemoryLog) -> int:
    return log.end_offset - log.start_offset


class Disks:
    """Implements :class:`nemesis.disk_parts.Files` and :class:`nemesis.disk_parts.WriteCaches` in memory.

    ``disks`` are those of every broker; ``dead`` says whether a broker's process has ended; ``damaged`` collects the
    brokers that lost something, in order; ``unread`` damaged batches of those that had stopped cleanly.
    """

    def __init__(
        self,
        disks: Mapping[int, Disk],
        dead: Callable[[int], bool],
        damaged: list[NodeId],
        unread: dict[tuple[NodeId, TopicPartition], set[int]],
    ) -> None:
        self._disks = disks
        self._dead = dead
        self._damaged = damaged
        self._unread = unread

    def wipe(self, node: int) -> DiskDamaged:
        """Empty the disk of a dead broker."""
        if not self._dead(node):
            return {}
        self._damaged.append(NodeId(node))
        return {"wiped": self._disks[node].wipe()}

    def corrupt(self, node: int, partition: str, pick: int) -> DiskDamaged:
        """Damage one batch of a dead broker's log."""
        disk = self._disks[node]
        log_partition, log = next((pair for pair in disk.logs.items() if str(pair[0]) == partition), (None, None))
        if log_partition is None or log is None or not log.batches or not self._dead(node):
            return {}
        position = len(log.batches) * pick // LOG_PARTS
        offset = log.batches[position].base_offset
        log.damage(position)
        self._damaged.append(NodeId(node))
        if disk.clean_shutdown != NONE:  # And not the log's word for it, which may be what is wrong.
            self._unread.setdefault((NodeId(node), log_partition), set()).add(offset)
        read_again = log.is_read_again
        return {
            "corrupted": {
                "partition": partition,
                "offset": offset,
                "recovery_point": log.start_offset,
                "read_again": read_again,
                "lost": read_again * (log.end_offset - offset),
            }
        }

    def lie(self, node: int) -> DiskLied:
        """Let the disk call flushed what it keeps in its cache."""
        disk = self._disks[node]
        if disk.lies:
            return {}
        disk.lies = True
        for log in disk.logs.values():
            log.lie()
        return {"lies": {str(partition): log.durable_offset for partition, log in disk.logs.items()}}

    def obey(self, node: int) -> DiskLied:
        """Let the disk write what is in its cache."""
        disk = self._disks[node]
        if not disk.lies:
            return {}
        disk.lies = False
        cached = {str(partition): log.flushed_offset - log.durable_offset for partition, log in disk.logs.items()}
        for log in disk.logs.values():
            log.obey()
        return {"cached": cached}
