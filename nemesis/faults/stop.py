"""Clean stops: what an operator does (SIGTERM).

A broker that is asked to end hands over what it leads, writes everything to disk and says so; nothing of it is lost.
Writes with acks=1 that its successor had not fetched are lost even so, without any accident.
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import ProcessSeen
from nemesis.faults.fault import Aim, NodeFault


class Stop(NodeFault, frozen=True):
    """Ask the processes of the holders of ``role`` to end (SIGTERM), as operators do; start them again at the end.

    A broker that is asked hands over what it leads and writes everything to disk, so nothing of it is lost. Writes
    with acks=1 that its successor had not fetched are lost even so, without any accident.
    """

    kind: ClassVar[str] = "stop"
    verb: ClassVar[str] = "stop"
    in_a_script: ClassVar[str] = "Ask its process to end (SIGTERM): it hands over and writes everything to disk"
    family: ClassVar[str] = "rolling"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> ProcessSeen:
        return require(target.processes).stop(node)
