"""Slow disks: a write that is forced to a disk waits long.

Only what is forced to the disk waits (rule 24): with flush.messages=1 every append, otherwise hardly anything.
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import DiskSlowed
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import Repair


class SlowDisk(NodeFault, frozen=True):
    """Let the disks of the holders of ``role`` write slowly, until the end.

    Only what is forced to the disk waits (rule 24): with flush.messages=1 every append, otherwise hardly anything.
    """

    kind: ClassVar[str] = "slowdisk"
    verb: ClassVar[str] = "throttle"
    in_a_script: ClassVar[str] = "Let its disk write slowly"
    undone_by: ClassVar[Repair[int]] = Repair(
        "unthrottle",
        Capability.DISK_SPEED,
        lambda target, node: require(target.disk_speed).restore(node),
        "Let it write as fast as before",
    )
    family: ClassVar[str] = "slow-disk"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.DISK_SPEED,)
    spares_process: ClassVar[bool] = True
    #: It ends no process; a broker that waits too long for its disk may give up by itself.
    may_end_process: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> DiskSlowed:
        return require(target.disk_speed).slow(node)
