"""Receipts: what a fault did, with the evidence. No receipt, no claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeGuard

import msgspec

from nemesis.cluster import ClusterView, Evidence, Link
from nemesis.faults import Aim, Fault, FaultKind, fault_kind, listed


class Look(NamedTuple):
    """What the controller said of one log partition at one time: ``isr`` is the number of in-sync replicas."""

    time_us: int
    leader: int | None
    leader_epoch: int
    isr: int


class Receipt(msgspec.Struct, kw_only=True):
    """One fault as it happened. The ``detail`` of a FAULT event is a receipt as JSON, at its begin and at its end.

    Attributes:
        mark: the moment of the event: "begin", "end", or "skipped" for a fault that was impossible when it should fire.
        sequence: number of the fault in its schedule, from 0; begin and end have the same.
        group: faults of one group overlap, and belong to one scenario.
        fault, shape: kind ("kill", "pause", "partition"), and for a partition its shape.
        role: whom the schedule meant; ``targets`` and ``links`` (source, target) are what that was when it fired.
        begun_us, ended_us: the run's clock; ``ended_us`` is None while it lasts, and both are equal for a skipped one.
        begin_evidence, end_evidence: what was observed of it, by node where nodes are hit.
        out_of_sync: by log partition, the replicas that were not in its ISR when it began; whole ones are left out, and
            receipts of older harnesses have none.
        touched: the log partitions with a replica on a broker that was hit, or at the end of a link that was; those of
            the fault's own where it concerns one; all where only controllers or clients were hit. None in receipts of
            older harnesses.
        seen: by touched log partition, [time, leader, leader epoch, size of the ISR], of each state the first look that
            found it and the last, from the begin on; in receipts of an end.
        degraded_to: the kind of fault that it came to, where nothing was seen of what makes it more: a kill, for a
            record that was not damaged; "" where it came to what it is, or to nothing. Older receipts call it ``less``.
        moved: by log partition, those of leader, leader epoch, ISR and replicas that the controller changed, each as
            [before, after].
        took_effect, reason: whether the evidence shows that it happened, and why so.
        unsupported: it was skipped because nothing of its kind can be done in this world, on its host or on this
            machine, for which ``reason`` says why; false in receipts of older harnesses.
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
    begin_evidence: dict[str, Any] = {}
    end_evidence: dict[str, Any] = {}
    out_of_sync: dict[str, tuple[int, ...]] = {}
    touched: tuple[str, ...] | None = None
    seen: dict[str, list[Look]] = {}
    degraded_to: str = ""
    moved: dict[str, dict[str, Any]] = {}
    took_effect: bool = False
    reason: str = ""
    unsupported: bool = False

    @property
    def facts(self) -> type[FaultKind]:
        """What is known of faults of this kind."""
        return fault_kind(self.fault)


def to_json(receipt: Receipt) -> str:
    """The receipt as one JSON object; evidence that JSON cannot hold is written as its text."""
    return msgspec.json.encode(receipt, enc_hook=str).decode()


def read_receipt(detail: Mapping[str, Any]) -> Receipt:
    """A receipt from the ``detail`` of a FAULT event, of this version or an older one.

    Raises:
        msgspec.ValidationError: it is none.
    """
    renamed = {"degraded_to": detail["less"]} if "less" in detail else {}
    return msgspec.convert({**detail, **renamed}, Receipt, strict=False)


def effect_shown(aim: Aim, evidence: Evidence, shows: str = "") -> tuple[bool, str]:
    """Did the fault happen, going by what was observed when it began? Nothing observed is nothing claimed.

    Evidence of a node that holds ``refused`` says why the cluster would not do what was asked of it, one that holds
    ``unconfirmed`` why nobody knows whether it did. ``shows`` is what evidence of a node must hold, if anything.
    """
    refused = [observed["refused"] for observed in evidence.values() if is_refusal(observed)]
    if refused:
        return False, f"refused: {refused[0]}"
    unconfirmed = [seen["unconfirmed"] for seen in evidence.values() if _holds(seen, "unconfirmed")]
    if unconfirmed:
        return False, f"not confirmed, and may have happened: {unconfirmed[0]}"
    if not evidence:
        return False, "nothing was observed"
    lacking = [node for node, seen in evidence.items() if shows and not _holds(seen, shows)]
    if lacking:
        return False, f"of {listed(int(node) for node in lacking)} nothing was {shows}"
    unseen = [node for node in aim.nodes if str(node) not in evidence]
    if unseen:
        return False, f"nothing was observed of {listed(unseen)}"
    return True, "observed when it began"


def degraded_to(evidence: Evidence, fault: Fault) -> str:
    """The kind of fault that ``fault`` came to, if the evidence shows that it was less; "" where it does not."""
    return fault.degraded_to if fault.degraded_to and fault.was_less(evidence) else ""


def touched(aim: Aim, view: ClusterView) -> tuple[str, ...]:
    """The log partitions that a fault touches, see :attr:`Receipt.touched`."""
    if aim.partition:
        return (aim.partition,)
    brokers = {*aim.nodes, *(end for link in aim.links for end in link)} & set(view.brokers)
    return tuple(name for name, state in view.partitions.items() if not brokers or brokers & set(state.replicas))


class Watch:
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
        """By log partition, in order of time; a state that one look found stands there once."""
        return {name: list(dict.fromkeys((*looks, self._last[name]))) for name, looks in self._first.items()}


def out_of_sync(view: ClusterView) -> dict[str, tuple[int, ...]]:
    """The replicas that are not in sync, by log partition, of those that have some."""
    away = {
        name: tuple(node for node in state.replicas if node not in state.isr) for name, state in view.partitions.items()
    }
    return {name: nodes for name, nodes in away.items() if nodes}


def is_refusal(observed: object) -> TypeGuard[Mapping[str, object]]:
    """This evidence of a node says that the cluster would not."""
    return _holds(observed, "refused")


def _holds(observed: object, name: str) -> TypeGuard[Mapping[str, object]]:
    return isinstance(observed, Mapping) and name in observed


_MOVES: Final = ("leader", "leader_epoch", "isr", "replicas")


def moved(before: ClusterView, after: ClusterView) -> dict[str, dict[str, Any]]:
    """What the controller changed between two views, by log partition."""
    changes: dict[str, dict[str, Any]] = {}
    for name, now in after.partitions.items():
        was = before.partitions.get(name)
        if was is None:
            continue
        pairs = {field: [getattr(was, field), getattr(now, field)] for field in _MOVES}
        changes[name] = {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}
    return {name: pairs for name, pairs in changes.items() if pairs}
