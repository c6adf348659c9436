"""Slow links: everything arrives, late. Followers fall behind without a connection breaking or a session ending."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import LinksSlowed
from nemesis.faults.fault import Aim, LinkFault
from nemesis.repairs import LinkGroup, Repair


class SlowLink(LinkFault, frozen=True):
    """Make those links slow that the ``shape`` of a partition would cut; let them be as before at the end.

    Everything arrives, late: followers fall behind without a connection breaking or a session ending.
    """

    kind: ClassVar[str] = "slowlink"
    verb: ClassVar[str] = "slow"
    in_a_script: ClassVar[str] = "Deliver late over these links"
    undone_by: ClassVar[Repair[LinkGroup]] = Repair(
        "restore",
        Capability.LINK_SPEED,
        lambda target, links: require(target.link_speed).restore(links),
        "Deliver as fast as before",
    )
    family: ClassVar[str] = "slow-link"
    done_to_links: ClassVar[str] = "slowed down"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LINK_SPEED,)

    @override
    def begin(self, target: Target, aim: Aim) -> LinksSlowed:
        return require(target.link_speed).slow(aim.links)
