"""Single messages that arrive late, or never, while everything else on their connection goes on."""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, Evidence, Target, present
from nemesis.faults.fault import Aim, LinkFault


class _MessageFault(LinkFault, frozen=True):
    """``api`` is a name of Kafka's protocol ("AlterPartition", "Fetch"), or empty for every message."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.MESSAGES,)

    action: ClassVar[str] = ""
    """What :meth:`nemesis.cluster.Messages.release` ends."""

    api: str = ""

    @property
    def holds_links_by(self) -> tuple[str, ...]:
        """See :attr:`Fault.holds_links_by`; actions on different APIs end by themselves."""
        return (self.kind, self.api)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Deliver what is held, and everything from now on, as far as no other such fault lasts."""
        return present(target.messages).release(aim.links, self.action, self.api)


class HoldMessages(_MessageFault, frozen=True):
    """Hold what is sent over those links that the ``shape`` of a partition would cut; deliver it at the end."""

    kind: ClassVar[str] = "holdmessages"
    done_to_links: ClassVar[str] = "held messages of"
    action: ClassVar[str] = "hold"

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Hold."""
        return present(target.messages).hold(aim.links, self.api)


class DropMessages(_MessageFault, frozen=True):
    """Throw away what is sent over those links that the ``shape`` of a partition would cut, until the end."""

    kind: ClassVar[str] = "dropmessages"
    done_to_links: ClassVar[str] = "dropped messages of"
    action: ClassVar[str] = "drop"

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Drop."""
        return present(target.messages).drop(aim.links, self.api)
