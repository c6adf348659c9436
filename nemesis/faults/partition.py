"""Network partitions: links that deliver nothing."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import LinksCut
from nemesis.faults.fault import Aim, LinkFault


class Partition(LinkFault, frozen=True):
    """Cut links so that the network takes ``shape`` around the holders of ``role``; heal them at the end."""

    kind: ClassVar[str] = "partition"
    verb: ClassVar[str] = "cut"
    in_a_script: ClassVar[str] = "Deliver nothing over these links"
    family: ClassVar[str] = "partition"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LINKS,)

    @override
    def begin(self, target: Target, aim: Aim) -> LinksCut:
        return require(target.links).cut(aim.links)
