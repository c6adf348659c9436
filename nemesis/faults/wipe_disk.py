"""Emptied disks: the broker returns as on a new machine, with its old number."""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, Evidence, Target, present
from nemesis.faults.fault import Aim, NodeFault


class WipeDisk(NodeFault, frozen=True):
    """End the processes of the holders of ``role`` at once and empty their disks; start them again at the end.

    Nothing that a broker flushed survives it (rule 24 does not help), and it registers under its old number (rule 29).
    """

    kind: ClassVar[str] = "wipedisk"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.FILES, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    may_end_process: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True
    empties_disk: ClassVar[bool] = True
    shows: ClassVar[str] = "wiped"
    degraded_to: ClassVar[str] = "kill"

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:  # noqa: ARG002
        """Kill, then empty."""
        return {**present(target.processes).kill(node), **present(target.files).wipe(node)}
