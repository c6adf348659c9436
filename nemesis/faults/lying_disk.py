"""Disks that lie: they answer that a flush is done, and what was flushed is in a cache that needs power."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import DiskLied
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import Repair


class LyingDisk(NodeFault, frozen=True):
    """Let the disks of the holders of ``role`` acknowledge flushes that they do not do (fsync), until the end.

    By itself it takes nothing. A loss of power meanwhile takes what was flushed (rule 24 does not help), and has it in
    its own receipt.
    """

    kind: ClassVar[str] = "lyingdisk"
    verb: ClassVar[str] = "lie"
    in_a_script: ClassVar[str] = "Let its disk answer every flush without doing it"
    undone_by: ClassVar[Repair[int]] = Repair(
        "obey",
        Capability.WRITE_CACHES,
        lambda target, node: require(target.write_caches).obey(node),
        "Let its disk write what it kept, and tell the truth",
    )
    family: ClassVar[str] = "lying-disk"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.WRITE_CACHES,)
    spares_process: ClassVar[bool] = True
    spares_cluster: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> DiskLied:
        return require(target.write_caches).lie(node)
