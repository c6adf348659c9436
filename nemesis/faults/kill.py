"""Death of nodes (SIGKILL): memory is gone, what the operating system holds is not."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import Killed
from nemesis.faults.fault import Aim, NodeFault


class Kill(NodeFault, frozen=True):
    """End the processes of the holders of ``role`` at once (SIGKILL); start them again on their old disks at the end.

    Memory is gone, what the operating system holds is not.
    """

    kind: ClassVar[str] = "kill"
    verb: ClassVar[str] = "kill"
    in_a_script: ClassVar[str] = "End its process (SIGKILL)"
    family: ClassVar[str] = "kill"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> Killed:
        return require(target.processes).kill(node)
