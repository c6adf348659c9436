"""Nodes whose process ends, freezes or is asked to end: deaths, pauses, clean stops and losses of power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nemesis.cluster import Capability, Evidence, Target, present
from nemesis.faults.fault import Aim, NodeFault


class Kill(NodeFault, frozen=True):
    """End the processes of the holders of ``role`` at once (SIGKILL); start them again on their old disks at the end.

    Memory is gone, what the operating system holds is not.
    """

    kind: ClassVar[str] = "kill"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Kill."""
        return present(target.processes).kill(node)


class Pause(NodeFault, frozen=True):
    """Freeze the processes of the holders of ``role`` (SIGSTOP); let them run at the end.

    They are silent meanwhile, and their sockets stay open and fill.
    """

    kind: ClassVar[str] = "pause"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True
    spares_process: ClassVar[bool] = True

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Freeze."""
        return present(target.processes).pause(node)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Let run."""
        return present(target.processes).resume(node)


class Stop(NodeFault, frozen=True):
    """Ask the processes of the holders of ``role`` to end (SIGTERM), as operators do; start them again at the end.

    A broker that is asked hands over what it leads and writes everything to disk, so nothing of it is lost. What is
    lost all the same, writes with acks=1 that its successor had not fetched, is lost without any accident.
    """

    kind: ClassVar[str] = "stop"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Ask."""
        return present(target.processes).stop(node)


class PowerLoss(NodeFault, frozen=True):
    """Take the power from the holders of ``role``: SIGKILL, and the page cache of their disks with it (rule 24).

    They are started again at the end, on what the disks hold.
    """

    kind: ClassVar[str] = "powerloss"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.POWER, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    may_end_process: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True
    spares_flushed: ClassVar[bool] = True
    degraded_to: ClassVar[str] = "kill"
    returns: ClassVar[str] = "had its power again; its disk held the log up to offset"

    def was_less(self, evidence: Evidence) -> bool:
        """Every node's evidence counts the records that it lost, and there were none.

        Bytes of files before and after prove nothing: what was written between the two counts was lost unseen.
        """
        lost = [seen.get("lost") if isinstance(seen, Mapping) else None for seen in evidence.values()]
        return bool(lost) and all(isinstance(of_node, Mapping) and not any(of_node.values()) for of_node in lost)

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Cut the power."""
        return present(target.power).cut_power(node)
