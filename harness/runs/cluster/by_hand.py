"""Breaks a cluster by hand: one fault at a time, which lasts until everything is healed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from harness.ground.errors import PlanError
from nemesis.cluster import Capability, ClusterView, Target
from nemesis.faults import FAULTS, Fault
from nemesis.open_faults import Cause, OpenFaults
from nemesis.player import restore
from nemesis.receipts import Receipt
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import FAMILIES, strikes_of
from nemesis.topology import Shape
from workloads import unknown_name

#: Every fault by its verb; BREAKS also by its kind, as receipts call it.
VERBS: Final[Mapping[str, type[Fault]]] = {fault.verb: fault for fault in FAULTS}
BREAKS: Final[Mapping[str, type[Fault]]] = {**VERBS, **{fault.kind: fault for fault in FAULTS}}
#: The words for its target, beside the number of a broker.
NODES: Final = tuple(
    kind.value for kind in (RoleKind.LEADER, RoleKind.FOLLOWER, RoleKind.FOLLOWERS, RoleKind.CONTROLLER)
)

#: The capabilities that need host = "namespaces".
_OF_NAMESPACES: Final = frozenset({Capability.LINK_SPEED, Capability.CONNECTIONS, Capability.PACKETS})


class ClusterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A person's request to a cluster. ``fault`` is a key of BREAKS, ``node`` a word of NODES or a broker's number.

    ``partition`` is the log partition whose leader or follower is meant, by its number; ``shape`` is that of cut links.
    """

    op: Literal["break", "heal", "show"]
    fault: str = ""
    node: str = RoleKind.LEADER
    partition: int = 0
    shape: Shape = Shape.ISOLATE


class ByHand:
    """Does to ``target`` what is asked for. ``witness`` is given every receipt, as it is when it is marked."""

    def __init__(self, target: Target, now_us: Callable[[], int], witness: Callable[[Receipt], None]) -> None:
        self._target = target
        self._witness = witness
        self._marked: list[Receipt] = []
        self._faults = OpenFaults(target, now_us, self._mark)

    def answer(self, request: ClusterRequest) -> list[Receipt]:
        """Do what is asked for, and answer with what was observed of it.

        Raises:
            PlanError: it cannot be done here, or now, or to this node.
        """
        self._marked = []
        if request.op == "break":
            self._break(request)
        elif request.op == "heal":
            self._faults.end_all()
            restore(self._target)
        return self._marked

    def view(self) -> ClusterView:
        """The cluster as it is now."""
        return self._faults.view()

    def _break(self, request: ClusterRequest) -> None:
        if request.fault not in BREAKS:
            raise PlanError(unknown_name("fault", request.fault, BREAKS))
        view, kind = self.view(), BREAKS[request.fault]
        roles = roles_of(request.node, request.partition, len(view.brokers))
        aims = [(fault, fault.aim(view)) for fault in (kind.around(role, request.shape) for role in roles)]
        fault, aim = next((pair for pair in aims if not pair[1].impossible), aims[0])
        if Capability.CLIENTS in fault.needs and self._target.clients is None:
            raise PlanError(f"{request.fault}: a cluster to play with has no clients of its own; end yours by hand")
        if Capability.INSTANCES in fault.needs and self._target.instances is None:
            raise PlanError(
                f"{request.fault}: no application runs here; end it, and start one with: ackproof cluster up "
                "--application COMMAND"
            )
        if not self._target.unplanned.isdisjoint(fault.needs):
            raise PlanError(f"{request.fault}: this cluster was not made ready for it; {_made_ready(kind)}")
        if why_not := self._target.why_not(fault.needs) or aim.impossible:
            advice = f"; {_made_ready(kind)}" if self._target.why_not({*fault.needs} & _OF_NAMESPACES) else ""
            raise PlanError(f"{request.fault}: {why_not}{advice}")
        shape = getattr(fault, "shape", None)
        self._faults.begin(fault, aim, Cause("cluster", "by hand", str(fault.role), shape), view=view)

    def _mark(self, receipt: Receipt) -> None:
        marked = msgspec.structs.replace(receipt)
        self._marked.append(marked)
        self._witness(marked)


def _made_ready(fault: type[Fault]) -> str:
    """Advice on how to get a cluster that ``fault`` can be done to."""
    family = next((name for name in FAMILIES if fault.kind in strikes_of(name)), fault.family)
    host = "--host namespaces " if _OF_NAMESPACES & {*fault.needs} else ""
    return f"end it, and start one with: ackproof cluster up {host}--family {family}"


def roles_of(node: str, partition: int, brokers: int) -> list[Role]:
    """The roles that ``node`` means: of several holders, such as followers, one after the other.

    Raises:
        PlanError: it is neither a word of NODES nor a number.
    """
    if node.isdecimal():
        return [Role(RoleKind.NAMED, partition, int(node))]
    if node not in NODES:
        raise PlanError(unknown_name("node", node, dict.fromkeys(NODES), f"{', '.join(NODES)}, and brokers' numbers"))
    return [Role(RoleKind(node), partition, pick) for pick in range(brokers)]
