"""Damaged records: one byte of a log changes while its broker is down."""

from __future__ import annotations

from typing import ClassVar, Self

from msgspec.structs import replace
from typing_extensions import override

from nemesis.cluster import ClusterView
from nemesis.disk_parts import LOG_PARTS, Files
from nemesis.evidence import DiskDamaged
from nemesis.faults.fault import Aim, DiskFault, Draw
from nemesis.roles import Role, partition_of
from nemesis.topology import Shape


class CorruptRecord(DiskFault, frozen=True):
    """End the processes of the holders of ``role`` at once and change one byte of a record in their logs.

    Started again at the end, they recover (rule 25): a log ends before its first wrong checksum, unless the start does
    not read that far back. ``pick``, in a plan ``record``, says how far into the log the record is, in thousandths.
    """

    kind: ClassVar[str] = "corruptrecord"
    verb: ClassVar[str] = "corrupt"
    operands: ClassVar[str] = "RECORD:record on NODE:nodes"
    in_a_script: ClassVar[str] = "Change a byte of the record on the disk of a dead broker"
    family: ClassVar[str] = "corrupt"
    returns: ClassVar[str] = "read its log again and ended it before the damaged record, at offset"
    shows: ClassVar[str] = "corrupted"

    pick: int = 0

    @classmethod
    @override
    def drawn(cls, role: Role, shape: Shape, draw: Draw) -> Self:
        return cls(role, draw("record", LOG_PARTS))

    def aim(self, view: ClusterView) -> Aim:
        """The machines with the bad disk block, and the log it is in."""
        return replace(super().aim(view), partition=partition_of(self.role, view))

    def damage(self, files: Files, aim: Aim, node: int) -> DiskDamaged:
        """Change the byte; an empty log has none."""
        return files.corrupt(node, aim.partition, self.pick)
