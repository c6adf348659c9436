"""Loss of power: the process ends, and what was not yet on its disk is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import PowerLost
from nemesis.faults.fault import Aim, NodeFault


class PowerLoss(NodeFault, frozen=True):
    """Take the power from the holders of ``role``: SIGKILL, and the page cache of their disks with it (rule 24).

    They are started again at the end, on what the disks hold.
    """

    kind: ClassVar[str] = "powerloss"
    verb: ClassVar[str] = "power"
    in_a_script: ClassVar[str] = (
        "End its process; its disk loses what was not forced to it. A part of the first batch of that is left, torn"
    )
    family: ClassVar[str] = "power"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.POWER, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    may_end_process: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True
    spares_flushed: ClassVar[bool] = True
    degraded_to: ClassVar[str] = "kill"
    returns: ClassVar[str] = "had its power again; its disk held the log up to offset"

    @classmethod
    def was_less(cls, evidence: Mapping[str, PowerLost]) -> bool:
        """Every node's evidence counts the records that it lost, and all counts are 0.

        Bytes of files before and after prove nothing: what was written between the two counts was lost unseen.
        """
        lost = [seen.get("lost") for seen in evidence.values()]
        return bool(lost) and all(of_node is not None and not any(of_node.values()) for of_node in lost)

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> PowerLost:
        return require(target.power).cut_power(node)
