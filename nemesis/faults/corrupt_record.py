"""Damaged records: one byte of a log changes while its broker is down."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults.fault import Aim, NodeFault
from nemesis.roles import partition_of


class CorruptRecord(NodeFault, frozen=True):
    """End the processes of the holders of ``role`` at once and change one byte of a record in their logs.

    Started again at the end, they recover (rule 25): a log ends where its checksum is wrong for the first time. Or
    nobody finds the byte. ``pick`` says how far into the log the record is, in parts of LOG_PARTS.
    """

    kind: ClassVar[str] = "corruptrecord"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.FILES, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    may_end_process: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True
    returns: ClassVar[str] = "read its log again and ended it before the damaged record, at offset"
    #: An empty log has no record to damage; then this was a kill.
    shows: ClassVar[str] = "corrupted"
    degraded_to: ClassVar[str] = "kill"

    pick: int = 0

    def aim(self, view: ClusterView) -> Aim:
        """The machines with the bad disk block, and the log it is in."""
        return replace(super().aim(view), partition=partition_of(self.role, view))

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Kill, then change the byte."""
        killed = present(target.processes).kill(node)
        return {**killed, **present(target.files).corrupt(node, aim.partition, self.pick)}
