"""Frozen nodes (SIGSTOP): silent, with open sockets that fill."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import ProcessSeen
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import Repair


class Pause(NodeFault, frozen=True):
    """Freeze the processes of the holders of ``role`` (SIGSTOP); let them run at the end.

    They are silent meanwhile, and their sockets stay open and fill.
    """

    kind: ClassVar[str] = "pause"
    verb: ClassVar[str] = "pause"
    in_a_script: ClassVar[str] = "Freeze its process (SIGSTOP); messages to it wait until it goes on"
    family: ClassVar[str] = "pause"
    undone_by: ClassVar[Repair[int]] = Repair(
        "resume",
        Capability.PROCESSES,
        lambda target, node: require(target.processes).resume(node),
        "Let it go on (SIGCONT)",
    )
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True
    spares_process: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> ProcessSeen:
        return require(target.processes).pause(node)
