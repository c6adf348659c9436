"""Single messages that arrive late, or never, while everything else on their connection goes on."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, Self

from typing_extensions import override

from nemesis.cluster import Capability, Target, require
from nemesis.evidence import LinksCut
from nemesis.faults.fault import Aim, Draw, LinkFault
from nemesis.repairs import RELEASE, LinkGroup, Repair
from nemesis.roles import Role
from nemesis.topology import Shape

#: The requests that decide leadership, in-sync replicas, and commits.
_DECISIVE: Final = ("AlterPartition", "Fetch", "UpdateMetadata")


class _MessageFault(LinkFault, frozen=True):
    """Keeps single messages from arriving while everything else on their connection goes on.

    ``api`` is a name of Kafka's protocol ("AlterPartition", "Fetch"), or empty for every message.
    """

    family: ClassVar[str] = "partition"
    operands: ClassVar[str] = "[API:api] LINKS:links"
    undone_by: ClassVar[Repair[LinkGroup]] = RELEASE
    needs: ClassVar[tuple[Capability, ...]] = (Capability.MESSAGES,)

    action: ClassVar[Literal["hold", "delay", "drop"]] = "hold"
    """The act on the messages: a method of :class:`nemesis.cluster.Messages`."""

    api: str = ""

    @classmethod
    @override
    def drawn(cls, role: Role, shape: Shape, draw: Draw) -> Self:
        return cls(role, shape, _DECISIVE[draw("api", len(_DECISIVE))])

    @property
    @override
    def holds_links_by(self) -> tuple[str, ...]:
        return (self.kind, self.api)

    def begin(self, target: Target, aim: Aim) -> LinksCut:
        """Hold or drop what is sent from now on."""
        messages = require(target.messages)
        take = {"hold": messages.hold, "delay": messages.delay, "drop": messages.drop}[self.action]
        return take(aim.links, self.api)

    def end(self, target: Target, aim: Aim) -> LinksCut:
        """Deliver what is held, and everything from now on, as far as no other such fault lasts."""
        return require(target.messages).release(aim.links, self.action, self.api)


class HoldMessages(_MessageFault, frozen=True):
    """Hold what is sent over those links that the ``shape`` of a partition would cut; deliver it at the end."""

    kind: ClassVar[str] = "holdmessages"
    verb: ClassVar[str] = "hold"
    in_a_script: ClassVar[str] = (
        "Hold messages of this API (without one: all) that are sent from now on, and answers to them"
    )
    done_to_links: ClassVar[str] = "held messages of"


class DelayMessages(_MessageFault, frozen=True):
    """Hold the first message of each of those links, as its repetition goes through; deliver it at the end."""

    kind: ClassVar[str] = "delaymessages"
    verb: ClassVar[str] = "delay"
    in_a_script: ClassVar[str] = (
        "Hold the first message of this API (without one: of any) that each link is sent from now on; later ones arrive"
    )
    done_to_links: ClassVar[str] = "delayed a message of"
    action: ClassVar[Literal["hold", "delay", "drop"]] = "delay"


class DropMessages(_MessageFault, frozen=True):
    """Throw away what is sent over those links that the ``shape`` of a partition would cut, until the end."""

    kind: ClassVar[str] = "dropmessages"
    verb: ClassVar[str] = "drop"
    in_a_script: ClassVar[str] = (
        "Throw away messages of this API (without one: all) that are sent from now on, and answers"
    )
    done_to_links: ClassVar[str] = "dropped messages of"
    action: ClassVar[Literal["hold", "delay", "drop"]] = "drop"
