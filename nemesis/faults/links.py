"""Links that are cut or slow, and single messages that are held or dropped while the rest of a link goes on."""

from __future__ import annotations

from typing import ClassVar, Literal

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults.fault import Aim, Fault
from nemesis.roles import resolve
from nemesis.topology import Shape, links_of


class LinkFault(Fault, frozen=True):
    """Hits the links that a partition of ``shape`` would cut around the holders of ``role``."""

    spares_process: ClassVar[bool] = True

    shape: Shape

    def aim(self, view: ClusterView) -> Aim:
        """The links."""
        anchor = resolve(self.role, view)
        if not anchor:
            return Aim(impossible=f"nobody is {self.role} now")
        links = tuple(sorted(links_of(self.shape, view.brokers, anchor)))
        return Aim(links=links) if links else Aim(impossible=f"{self.shape} cuts nothing in a cluster this small")


class Partition(LinkFault, frozen=True):
    """Cut links so that the network takes ``shape`` around the holders of ``role``; heal them at the end."""

    kind: ClassVar[str] = "partition"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LINKS,)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Cut."""
        return present(target.links).cut(aim.links)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Heal."""
        return present(target.links).heal(aim.links)


class SlowLink(LinkFault, frozen=True):
    """Make those links slow that the ``shape`` of a partition would cut; let them be as before at the end.

    Everything arrives, late: followers fall behind without a connection breaking or a session ending.
    """

    kind: ClassVar[str] = "slowlink"
    done_to_links: ClassVar[str] = "slowed down"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LINK_SPEED,)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Slow down."""
        return present(target.link_speed).slow(aim.links)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """As before."""
        return present(target.link_speed).restore(aim.links)


class _MessageFault(LinkFault, frozen=True):
    """Keeps single messages from arriving while everything else on their connection goes on.

    ``api`` is a name of Kafka's protocol ("AlterPartition", "Fetch"), or empty for every message.
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.MESSAGES,)

    action: ClassVar[Literal["hold", "drop"]] = "hold"
    """What is done to the messages: a method of :class:`nemesis.cluster.Messages`."""

    api: str = ""

    @property
    def holds_links_by(self) -> tuple[str, ...]:
        """See :attr:`Fault.holds_links_by`; actions on different APIs end by themselves."""
        return (self.kind, self.api)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Hold or drop what is sent from now on."""
        messages = present(target.messages)
        take = {"hold": messages.hold, "drop": messages.drop}[self.action]
        return take(aim.links, self.api)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Deliver what is held, and everything from now on, as far as no other such fault lasts."""
        return present(target.messages).release(aim.links, self.action, self.api)


class HoldMessages(_MessageFault, frozen=True):
    """Hold what is sent over those links that the ``shape`` of a partition would cut; deliver it at the end."""

    kind: ClassVar[str] = "holdmessages"
    done_to_links: ClassVar[str] = "held messages of"


class DropMessages(_MessageFault, frozen=True):
    """Throw away what is sent over those links that the ``shape`` of a partition would cut, until the end."""

    kind: ClassVar[str] = "dropmessages"
    done_to_links: ClassVar[str] = "dropped messages of"
    action: ClassVar[Literal["hold", "drop"]] = "drop"
