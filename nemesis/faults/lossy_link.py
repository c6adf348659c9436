"""Lossy links: packets are lost by chance, and TCP sends them again. Single requests are late, by chance."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import PacketsLost
from nemesis.faults.fault import Aim, PacketFault
from nemesis.repairs import LinkGroup, Repair


class LossyLink(PacketFault, frozen=True):
    """Lose packets by chance on those links that the ``shape`` of a partition would cut; lose none after the end.

    TCP sends a lost packet again, after ever longer waits: all arrives in its order, some of it seconds late.
    """

    kind: ClassVar[str] = "lossylink"
    verb: ClassVar[str] = "leak"
    in_a_script: ClassVar[str] = "Lose packets by chance on these links"
    undone_by: ClassVar[Repair[LinkGroup]] = Repair(
        "seal",
        Capability.PACKETS,
        lambda target, links: require(target.packets).spare(links),
        "Lose no more packets on these links",
    )
    family: ClassVar[str] = "lossy-link"
    done_to_links: ClassVar[str] = "lost packets of"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PACKETS,)

    @override
    def begin(self, target: Target, aim: Aim) -> PacketsLost:
        return require(target.packets).lose(aim.links)
