"""Receipts: what a fault did, with the evidence. No receipt, no claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeGuard

import msgspec

from nemesis.cluster import ClusterView, Evidence, Link
from nemesis.faults import Aim, Fault, FaultKind, fault_kind, listed


class Receipt(msgspec.Struct, kw_only=True):
    """One fault as it happened. The ``detail`` of a FAULT event is a receipt as JSON, at its begin and at its end.

    Attributes:
        mark: the moment of the event: "begin", "end", or "skipped" for a fault that was impossible when it should fire.
        sequence: number of the fault in its schedule, from 0; begin and end have the same.
        group: faults of one group overlap, and belong to one story.
        fault, shape: kind ("kill", "pause", "partition"), and for a partition its shape.
        role: whom the schedule meant; ``targets`` and ``links`` (source, target) are what that was when it fired.
        begun_us, ended_us: the run's clock; ``ended_us`` is None while it lasts, and both are equal for a skipped one.
        begin_evidence, end_evidence: what was observed of it, by node where nodes are hit.
        out_of_sync: by log partition, the replicas that were not in its ISR when it began; whole ones are left out, and
            receipts of older harnesses have none.
        degraded_to: the kind of fault that it came to, where nothing was seen of what makes it more: a kill, for a
            record that was not damaged; "" where it came to what it is, or to nothing. Older receipts call it ``less``.
        moved: by log partition, those of leader, leader epoch, ISR and replicas that the controller changed, each as
            [before, after].
        took_effect, reason: whether the evidence shows that it happened, and why so.
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
    degraded_to: str = ""
    moved: dict[str, dict[str, Any]] = {}
    took_effect: bool = False
    reason: str = ""

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


def judge(aim: Aim, evidence: Evidence, shows: str = "") -> tuple[bool, str]:
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
    """The kind of fault that ``fault`` came to, if the evidence shows of no node what makes it more.

    "" where it is shown of one at least, or nothing was observed at all.
    """
    came_to_it = not fault.shows or any(_holds(seen, fault.shows) for seen in evidence.values())
    return "" if came_to_it or not evidence else fault.degraded_to


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
