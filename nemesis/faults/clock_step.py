"""Wall clocks that are wrong: a node's time jumps for a while. Nothing that is replicated depends on it."""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, Evidence, Target, require
from nemesis.faults.fault import Aim, NodeFault


class ClockStep(NodeFault, frozen=True):
    """Let the wall clocks of the holders of ``role`` be off by ``offset_ms``; set them right at the end."""

    kind: ClassVar[str] = "clockstep"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.CLOCKS,)
    may_end_process: ClassVar[bool] = True

    offset_ms: int

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Step."""
        return require(target.clocks).set(node, self.offset_ms)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Set right."""
        return require(target.clocks).set(node, 0)
