"""Slow disks: whoever waits for a disk waits long.

Only what is forced to the disk waits (rule 24): with flush.messages=1 every append, otherwise hardly anything.
"""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, Evidence, Target, require
from nemesis.faults.fault import Aim, NodeFault


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
        return require(target.disk_speed).slow(node)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """As fast as before."""
        return require(target.disk_speed).restore(node)
