"""Wall clocks that are wrong: a node's time jumps for a while. Nothing that is replicated depends on it."""

from __future__ import annotations

from typing import ClassVar, Self

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import ClockSet
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import Repair
from nemesis.roles import Role
from nemesis.topology import Shape


class ClockStep(NodeFault, frozen=True):
    """Let the wall clocks of the holders of ``role`` be off by ``offset_ms``; set them right at the end."""

    kind: ClassVar[str] = "clockstep"
    verb: ClassVar[str] = "skew"
    operands: ClassVar[str] = ""
    undone_by: ClassVar[Repair[int]] = Repair(
        "unskew", Capability.CLOCKS, lambda target, node: require(target.clocks).set(node, 0)
    )
    family: ClassVar[str] = "clock"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.CLOCKS,)
    may_end_process: ClassVar[bool] = True

    offset_ms: int

    @classmethod
    def around(cls, role: Role, shape: Shape) -> Self:  # noqa: ARG003
        """An hour ahead."""
        return cls(role, 3_600_000)

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> ClockSet:
        return require(target.clocks).set(node, self.offset_ms)
