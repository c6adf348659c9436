"""Producers that die: their connections end without a word, and the fate of their last writes is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from typing_extensions import override

from nemesis.cluster import CLIENTS, Capability, Target, require
from nemesis.evidence import ProducerDied
from nemesis.faults.fault import Aim, NodeFault
from nemesis.roles import Role, RoleKind
from nemesis.topology import Shape


class ClientCrash(NodeFault, frozen=True):
    """Let a producer and its connections die without closing, and a new instance take its place.

    The role's pick says which. It touches no broker, so no promise is weaker for it: whatever was acknowledged is in
    the log. What was not answered ends as INFO. It is done at once and nothing undoes it; until its end it counts as
    the fault that is in effect.
    """

    kind: ClassVar[str] = "clientcrash"
    verb: ClassVar[str] = "crash"
    operands: ClassVar[str] = ""
    lasts: ClassVar[bool] = False
    needs: ClassVar[tuple[Capability, ...]] = (Capability.CLIENTS,)
    spares_process: ClassVar[bool] = True
    spares_cluster: ClassVar[bool] = True
    family: ClassVar[str] = "client-crash"
    hits: ClassVar[tuple[RoleKind, ...]] = (RoleKind.PRODUCER,)

    @classmethod
    def around(cls, role: Role, shape: Shape) -> Self:  # noqa: ARG003
        """One producer, by the pick of ``role``."""
        return cls(Role(RoleKind.PRODUCER, role.partition, role.pick))

    @classmethod
    def in_words(cls, evidence: Mapping[str, ProducerDied]) -> str:
        """Name the producer that died, its sends without an answer, and the one that writes on."""
        seen = evidence.get(str(CLIENTS), {})
        if "successor" not in seen:
            return ""
        died = f"producer {seen['instance']} died (sends outstanding: {seen['outstanding']})"
        return f"{died}, producer {seen['successor']} took its place"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> ProducerDied:
        return require(target.clients).crash_producer(self.role.pick)
