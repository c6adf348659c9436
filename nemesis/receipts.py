"""Receipts: what a fault did, with the evidence. No receipt, no claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import msgspec

from nemesis.cluster import ClusterView, Link, PartitionView
from nemesis.evidence import ByNode, Observed, WhyNot, by_node, check_evidence
from nemesis.faults import Aim, Fault, FaultKind, fault_kind, listed


class Look(NamedTuple):
    """The controller's word on one log partition at one time: ``isr`` is the number of in-sync replicas."""

    time_us: int
    leader: int | None
    leader_epoch: int
    isr: int


class Moves(TypedDict, total=False):
    """Changes of one log partition by the controller, each as [before, after]."""

    leader: tuple[int | None, int | None]
    leader_epoch: tuple[int, int]
    isr: tuple[tuple[int, ...], tuple[int, ...]]
    replicas: tuple[tuple[int, ...], tuple[int, ...]]


if TYPE_CHECKING:
    _Stored = Observed
else:
    #: Names that this version does not know stay in it, so that a receipt is written as it was read.
    _Stored = dict[str, Any]


class Receipt(msgspec.Struct, kw_only=True):
    """One fault as it happened. The ``detail`` of a FAULT event is a receipt as JSON, at its begin and at its end.

    Attributes:
        mark: the moment of the event: "begin", "end", or "skipped" for a fault that was impossible when it should fire.
        sequence: number of the fault in its schedule, from 0; begin and end have the same.
        group: faults of one group overlap, and belong to one scenario.
        family, story: the family and the scenario that it belongs to; in a script its number and its title.
        fault, shape: kind ("kill", "pause", "partition"), and for a partition its shape.
        role: whom the schedule meant; ``targets`` and ``links`` (source, target) are what that was when it fired.
        begun_us, ended_us: the run's clock; ``ended_us`` is None while it lasts, and both are equal for a skipped one.
        begin_evidence, end_evidence: what was observed of it, by node where nodes are hit; see :attr:`of_nodes`.
        out_of_sync: by log partition, the replicas that were not in its ISR when it began; whole ones are left out, and
            receipts of older harnesses have none.
        touched: the log partitions with a replica on a broker that was hit, or at the end of a link that was; those of
            the fault's own where it concerns one, and all in a directory that failed; all where only controllers or
            clients were hit. None in receipts of older harnesses.
        seen: by touched log partition, [time, leader, leader epoch, size of the ISR], of each state the first look that
            found it and the last, from the begin on; in receipts of an end.
        degraded_to: the kind of fault that it came to, where nothing was seen of what makes it more: a kill, for a
            record that was not damaged; "" where it came to what it is, or to nothing.
        moved: by log partition, what the controller changed.
        took_effect, reason: whether the evidence shows that it happened, and why so.
        cut_short: the reason why a step of a rollout was ended before it had come about; no value in other receipts.
        unsupported: it was skipped because nothing of its kind can be done in this world, on its host or on this
            machine, for which ``reason`` says why; false in receipts of older harnesses.
        less: the name of ``degraded_to`` in older receipts; it is read and not written.
    """

    mark: Literal["begin", "end", "skipped"]
    sequence: int
    group: int
    family: str
    story: str
    fault: str
    role: str
    shape: str | None = None
    targets: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    begun_us: int = 0
    ended_us: int | None = None
    begin_evidence: _Stored = {}
    end_evidence: _Stored = {}
    out_of_sync: dict[str, tuple[int, ...]] = {}
    touched: tuple[str, ...] | None = None
    seen: dict[str, list[Look]] = {}
    degraded_to: str = ""
    moved: dict[str, Moves] = {}
    took_effect: bool = False
    reason: str = ""
    unsupported: bool = False
    cut_short: str | msgspec.UnsetType = msgspec.UNSET
    less: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if not isinstance(self.less, msgspec.UnsetType):
            self.degraded_to, self.less = self.less, msgspec.UNSET
        check_evidence(self.begin_evidence)

    @property
    def of_nodes(self) -> ByNode:
        """The evidence of each node when it began; nothing of links."""
        return by_node(self.begin_evidence)

    @property
    def facts(self) -> type[FaultKind]:
        """The facts about faults of this kind."""
        return fault_kind(self.fault)


def to_json(receipt: Receipt) -> str:
    """The receipt as one JSON object; evidence that JSON cannot hold is written as its text."""
    return msgspec.json.encode(receipt, enc_hook=str).decode()


def effect_shown(aim: Aim, observed: Observed, shows: str = "") -> tuple[bool, str]:
    """Did the fault happen, going by what was observed when it began? Nothing observed is nothing claimed.

    Evidence of a node that holds ``refused`` says why the cluster would not do what was asked of it, one that holds
    ``unconfirmed`` why it is not known whether it did. ``shows`` is what evidence of a node must hold, if anything.
    """
    of_nodes: Mapping[str, WhyNot] = by_node(observed)
    refused = [seen["refused"] for seen in of_nodes.values() if "refused" in seen]
    if refused:
        return False, f"refused: {refused[0]}"
    unconfirmed = [seen["unconfirmed"] for seen in of_nodes.values() if "unconfirmed" in seen]
    if unconfirmed:
        return False, f"not confirmed, and may have happened: {unconfirmed[0]}"
    if not observed:
        return False, "nothing was observed"
    lacking = [node for node, seen in of_nodes.items() if shows and shows not in seen]
    if lacking:
        return False, f"of {listed(int(node) for node in lacking)} nothing was {shows}"
    unseen = [node for node in aim.nodes if str(node) not in observed]
    if unseen:
        return False, f"nothing was observed of {listed(unseen)}"
    return True, "observed when it began"


def degraded_to(observed: Observed, fault: Fault) -> str:
    """The kind of fault that ``fault`` came to, if the evidence shows that it was less; "" where it does not."""
    return fault.degraded_to if fault.degraded_to and fault.was_less(by_node(observed)) else ""


def touched(aim: Aim, view: ClusterView) -> tuple[str, ...]:
    """The log partitions that a fault touches, see :attr:`Receipt.touched`."""
    if aim.partition:
        return (aim.partition,)
    brokers = {*aim.nodes, *(end for link in aim.links for end in link)} & set(view.brokers)
    return tuple(name for name, state in view.partitions.items() if not brokers or brokers & set(state.replicas))


class PartitionWatch:
    """Looks at the log partitions ``names``, and keeps of each state the first look that found it and the last."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._first: dict[str, list[Look]] = {}
        self._last: dict[str, Look] = {}

    def look(self, view: ClusterView, time_us: int) -> None:
        """Look now, at ``time_us`` on the run's clock."""
        for name in self._names:
            state = view.partitions.get(name)
            if state is None:
                continue
            now = Look(time_us, state.leader, state.leader_epoch, len(state.isr))
            before = self._last.get(name)
            if before is None or before[1:] != now[1:]:
                self._first.setdefault(name, []).extend((now,) if before is None else (before, now))
            self._last[name] = now

    @property
    def seen(self) -> dict[str, list[Look]]:
        """By log partition, in order of time; a state that one look found is listed once."""
        return {name: list(dict.fromkeys((*looks, self._last[name]))) for name, looks in self._first.items()}


def out_of_sync(view: ClusterView) -> dict[str, tuple[int, ...]]:
    """The replicas that are not in sync, by log partition, of those that have some."""
    away = {
        name: tuple(node for node in state.replicas if node not in state.isr) for name, state in view.partitions.items()
    }
    return {name: nodes for name, nodes in away.items() if nodes}


def moved(before: ClusterView, after: ClusterView) -> dict[str, Moves]:
    """Compare two views: the controller's changes, by log partition."""
    both = {name: (before.partitions[name], now) for name, now in after.partitions.items() if name in before.partitions}
    changes = {name: _moves(was, now) for name, (was, now) in both.items()}
    return {name: moves for name, moves in changes.items() if moves}


def _moves(was: PartitionView, now: PartitionView) -> Moves:
    moves: Moves = {}
    if was.leader != now.leader:
        moves["leader"] = (was.leader, now.leader)
    if was.leader_epoch != now.leader_epoch:
        moves["leader_epoch"] = (was.leader_epoch, now.leader_epoch)
    if was.isr != now.isr:
        moves["isr"] = (was.isr, now.isr)
    if was.replicas != now.replicas:
        moves["replicas"] = (was.replicas, now.replicas)
    return moves
