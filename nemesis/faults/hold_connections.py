"""Connections whose requests arrive late: after their owner gave up, closed, and asked again on another one."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import ConnectionsHeld
from nemesis.faults.fault import Aim, PacketFault
from nemesis.repairs import LinkGroup, Repair


class HoldConnections(PacketFault, frozen=True):
    """Hold what is sent on open connections over those links that the ``shape`` of a partition would cut.

    Only connections that are open when it begins, from the end that opened them. One that is opened later works, so a
    client gives up, closes, and asks again there. At the end TCP sends again what was held: the first request arrives
    after its repetition.
    """

    kind: ClassVar[str] = "holdconnections"
    verb: ClassVar[str] = "strand"
    in_a_script: ClassVar[str] = "Hold what is sent on connections that are open over these links; new ones work"
    undone_by: ClassVar[Repair[LinkGroup]] = Repair(
        "deliver",
        Capability.CONNECTIONS,
        lambda target, links: require(target.connections).deliver(links),
        "Let TCP send again what is held on connections",
    )
    family: ClassVar[str] = "connection"
    delivers_late: ClassVar[bool] = True
    done_to_links: ClassVar[str] = "held the connections of"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.CONNECTIONS,)

    @override
    def begin(self, target: Target, aim: Aim) -> ConnectionsHeld:
        return require(target.connections).hold(aim.links)
