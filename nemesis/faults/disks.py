"""Disks that are full, slow, emptied, or that give back other bytes than were written."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from nemesis.cluster import Capability, ClusterView, Evidence, Files, Target, present
from nemesis.faults.fault import Aim, NodeFault
from nemesis.roles import partition_of


class FullDisk(NodeFault, frozen=True):
    """Leave no room on the disks of the holders of ``role``; make room again at the end, and start who ended over it.

    Kafka ends when the directory of its only log fails (rule 29). What was written before is there afterwards.
    """

    kind: ClassVar[str] = "fulldisk"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.DISK_SPACE, Capability.PROCESSES)
    #: At the next append; the budget counts the broker as if it did.
    may_end_process: ClassVar[bool] = True
    stops_brokers: ClassVar[bool] = True

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Fill."""
        return present(target.disk_space).fill(node)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Make room. The evidence names how the process ended, if it did, and that it was started again."""
        return {**present(target.disk_space).free(node), **super().undo(target, aim, node)}


class SlowDisk(NodeFault, frozen=True):
    """Let the disks of the holders of ``role`` write slowly, until the end.

    Only what is forced to the disk waits (rule 24): with flush.messages=1 every append, otherwise hardly anything.
    """

    kind: ClassVar[str] = "slowdisk"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.DISK_SPEED,)
    spares_process: ClassVar[bool] = True
    #: It ends nobody; a broker that waits too long for its disk may give up by itself.
    may_end_process: ClassVar[bool] = True

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Slow down."""
        return present(target.disk_speed).slow(node)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """As fast as before."""
        return present(target.disk_speed).restore(node)


class DiskFault(NodeFault, frozen=True):
    """Ends the processes of its nodes at once and does something to what they have on their disks."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.FILES, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    may_end_process: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True
    #: Where there was nothing to lose.
    degraded_to: ClassVar[str] = "kill"

    def damage(self, files: Files, aim: Aim, node: int) -> Evidence:
        """Do it to the disk of a dead node. Evidence: what the fault ``shows``, if something was there."""
        raise NotImplementedError

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """See :meth:`NodeFault.hit`."""
        return {**present(target.processes).kill(node), **self.damage(present(target.files), aim, node)}


class WipeDisk(DiskFault, frozen=True):
    """End the processes of the holders of ``role`` at once and empty their disks; start them again at the end.

    Nothing that a broker flushed survives it (rule 24 does not help), and it registers under its old number (rule 29).
    """

    kind: ClassVar[str] = "wipedisk"
    empties_disk: ClassVar[bool] = True
    shows: ClassVar[str] = "wiped"

    def damage(self, files: Files, aim: Aim, node: int) -> Evidence:
        """Empty it."""
        return files.wipe(node)


class CorruptRecord(DiskFault, frozen=True):
    """End the processes of the holders of ``role`` at once and change one byte of a record in their logs.

    Started again at the end, they recover (rule 25): a log ends where its checksum is wrong for the first time. Or
    nobody finds the byte. ``pick`` says how far into the log the record is, in parts of LOG_PARTS.
    """

    kind: ClassVar[str] = "corruptrecord"
    returns: ClassVar[str] = "read its log again and ended it before the damaged record, at offset"
    shows: ClassVar[str] = "corrupted"

    pick: int = 0

    def aim(self, view: ClusterView) -> Aim:
        """The machines with the bad disk block, and the log it is in."""
        return replace(super().aim(view), partition=partition_of(self.role, view))

    def damage(self, files: Files, aim: Aim, node: int) -> Evidence:
        """Change the byte; an empty log has none."""
        return files.corrupt(node, aim.partition, self.pick)
