"""Log directories that fail: a broker with several disks loses one of them, and goes on with the others (rule 29)."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace
from typing_extensions import override

from nemesis.cluster import Capability, ClusterView, Target, require
from nemesis.evidence import DirectoryFailed, Observed
from nemesis.faults.fault import Aim, NodeFault
from nemesis.repairs import START, Repair
from nemesis.roles import partition_of


class FailDirectory(NodeFault, frozen=True):
    """Let the log directories fail in which the holders of ``role`` keep the role's log partition.

    At the end the disk is replaced by an empty one, as an operator would: the broker is ended, and started again on it.
    """

    kind: ClassVar[str] = "faildirectory"
    verb: ClassVar[str] = "fail"
    in_a_script: ClassVar[str] = (
        "Let the disk with its log fail; it goes on with another one, which has nothing of the log"
    )
    undone_by: ClassVar[Repair[int]] = Repair(
        "replace",
        Capability.LOG_DIRECTORIES,
        lambda target, node: require(target.log_directories).replace(node),
        "Give it an empty disk for the failed one, and start it again",
    )
    family: ClassVar[str] = "log-directory"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LOG_DIRECTORIES, Capability.PROCESSES)
    #: With the last directory, and in the end.
    may_end_process: ClassVar[bool] = True
    stops_brokers: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The machines with the bad disk, and a log that is on it."""
        return replace(super().aim(view), partition=partition_of(self.role, view))

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> DirectoryFailed:
        return require(target.log_directories).fail(node, aim.partition)

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> Observed:
        ended = require(target.processes).kill(node)
        replaced = super().undo(target, aim, node)
        return {**ended, **replaced, **START.do(target, node)}
