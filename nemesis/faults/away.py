"""Brokers that are away for long: what was deleted meanwhile they do not know, nor that it was deleted."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import Observed, ProcessSeen
from nemesis.faults.fault import Aim, NodeFault


class Away(NodeFault, frozen=True):
    """Ask the processes of the holders of ``role`` to end (SIGTERM), and start them on their old disks at the end.

    In a schedule it lasts longer than delete.retention.ms, so that the others clean the log of tombstones meanwhile.
    """

    kind: ClassVar[str] = "away"
    verb: ClassVar[str] = "away"
    operands: ClassVar[str] = ""
    family: ClassVar[str] = "away"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True
    waits_for_cleaner: ClassVar[bool] = True

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> ProcessSeen:
        return require(target.processes).stop(node)


class AwayWiped(Away, frozen=True):
    """As `away`, and empty the disks at the end, before the processes are started: the cure for compacted topics."""

    kind: ClassVar[str] = "awaywiped"
    verb: ClassVar[str] = "away-wiped"
    family: ClassVar[str] = "away-wiped"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES, Capability.FILES)
    destroys_copy: ClassVar[bool] = True
    empties_disk: ClassVar[bool] = True
    shows_at_end: ClassVar[str] = "wiped"
    degraded_to: ClassVar[str] = "away"

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> Observed:
        return {**require(target.files).wipe(node), **self.undone_by.do(target, node)}
