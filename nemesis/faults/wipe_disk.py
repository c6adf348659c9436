"""Emptied disks: the broker returns as on a new machine, with its old number."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.disk_parts import Files
from nemesis.evidence import DiskDamaged
from nemesis.faults.fault import Aim, DiskFault


class WipeDisk(DiskFault, frozen=True):
    """End the processes of the holders of ``role`` at once and empty their disks; start them again at the end.

    Nothing that a broker flushed survives it (rule 24 does not help), and it registers under its old number (rule 29).
    """

    kind: ClassVar[str] = "wipedisk"
    verb: ClassVar[str] = "wipe"
    in_a_script: ClassVar[str] = "Empty the disk of a dead broker"
    family: ClassVar[str] = "wipe"
    empties_disk: ClassVar[bool] = True
    shows: ClassVar[str] = "wiped"

    @override
    def damage(self, files: Files, aim: Aim, node: int) -> DiskDamaged:
        return files.wipe(node)
