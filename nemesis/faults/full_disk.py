"""Full disks: nothing more can be appended, and a broker may end over it."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import DiskFilled, Observed
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import START, Repair


class FullDisk(NodeFault, frozen=True):
    """Leave no room on the disks of the holders of ``role``; make room again at the end, and start those that ended.

    Kafka ends when the directory of its only log fails (rule 29). What was written before is there afterwards.
    """

    kind: ClassVar[str] = "fulldisk"
    verb: ClassVar[str] = "fill"
    in_a_script: ClassVar[str] = "Leave no room on its disk"
    undone_by: ClassVar[Repair[int]] = Repair(
        "free", Capability.DISK_SPACE, lambda target, node: require(target.disk_space).free(node), "Give the room back"
    )
    family: ClassVar[str] = "full-disk"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.DISK_SPACE, Capability.PROCESSES)
    #: At the next append; the budget counts the broker as if it did.
    may_end_process: ClassVar[bool] = True
    stops_brokers: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> DiskFilled:
        return require(target.disk_space).fill(node)

    def undo(self, target: Target, aim: Aim, node: int) -> Observed:
        """Make room. The evidence names how the process ended, if it did, and that it was started again."""
        return {**super().undo(target, aim, node), **START.do(target, node)}
