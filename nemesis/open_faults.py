"""Faults that have begun and not ended: begun, looked at, undone and ended, each with its receipt.

A clock (:mod:`nemesis.player`), a script or a person drives it. A script and a person undo everything that holds a node
or links: a start ends the kill of a node, and what was done to its disk while it was dead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from nemesis.cluster import ClusterView, Link, Target
from nemesis.evidence import DirectoryFailed, Observed, by_node
from nemesis.faults import Aim, Fault
from nemesis.receipts import PartitionWatch, Receipt, degraded_to, effect_shown, moved, out_of_sync, touched
from nemesis.repairs import Repair


class Cause(NamedTuple):
    """The part of a receipt that says where a fault comes from; see :class:`nemesis.receipts.Receipt`."""

    family: str
    story: str
    role: str
    shape: str | None = None
    group: int = 0


class _OpenFault:
    """One of them: what is seen of the cluster until it ends, and the nodes or links that it still holds (``left``)."""

    def __init__(self, fault: Fault, aim: Aim, receipt: Receipt, view: ClusterView) -> None:
        """``view`` is of the moment before it is done."""
        self.fault, self.aim, self.receipt = fault, aim, receipt
        self.left: set[int | Link] = {*aim.nodes, *aim.links}
        receipt.touched, receipt.out_of_sync = touched(aim, view), out_of_sync(view)
        # A disk that fails takes other log partitions along, which its evidence names afterwards.
        self._before, self._watch = view, PartitionWatch(touched(msgspec.structs.replace(aim, partition=""), view))
        self.look(view, receipt.begun_us)

    def look(self, view: ClusterView, time_us: int) -> None:
        """Look at the log partitions that it touches."""
        self._watch.look(view, time_us)

    def begun(self, evidence: Observed) -> None:
        """It was done; ``evidence`` is what was observed, by node where nodes are hit."""
        receipt = self.receipt
        receipt.begin_evidence = evidence
        receipt.took_effect, receipt.reason = effect_shown(self.aim, evidence, self.fault.shows)
        receipt.degraded_to = degraded_to(evidence, self.fault)
        of_nodes: Mapping[str, DirectoryFailed] = by_node(evidence)
        failed = {name for seen in of_nodes.values() for name in seen.get("failed", ())}
        others = tuple(name for name in self._before.partitions if name in failed - {*(receipt.touched or ())})
        receipt.touched = (*(receipt.touched or ()), *others)

    def ended(self, view: ClusterView, time_us: int, evidence: Observed) -> None:
        """It was undone; ``view`` is of the moment before that."""
        receipt = self.receipt
        receipt.moved = moved(self._before, view)
        receipt.seen = {name: looks for name, looks in self._watch.seen.items() if name in (receipt.touched or ())}
        receipt.mark, receipt.ended_us, receipt.end_evidence = "end", time_us, evidence
        if self.fault.ended_less(by_node(evidence)):
            receipt.degraded_to = self.fault.degraded_to
        if receipt.took_effect and not self.fault.met_something(evidence):
            receipt.took_effect, receipt.reason = False, "nothing met it while it lasted"


class OpenFaults:
    """All of one run. ``witness`` is given every receipt as it is marked: begun, ended or skipped.

    ``receipts`` are in the order in which they were begun or skipped; one is known by its ``sequence``.
    """

    def __init__(self, target: Target, now_us: Callable[[], int], witness: Callable[[Receipt], None]) -> None:
        self._target = target
        self._now_us = now_us
        self._witness = witness
        self._open: dict[int, _OpenFault] = {}
        self.receipts: Final[list[Receipt]] = []

    def __len__(self) -> int:
        return len(self._open)

    def view(self) -> ClusterView:
        """The cluster as it is now, which the receipts of what lasts see too."""
        view, now_us = self._target.view(), self._now_us()
        for fault in self._open.values():
            fault.look(view, now_us)
        return view

    def begin(
        self, fault: Fault, aim: Aim, cause: Cause, *, view: ClusterView | None = None, sequence: int | None = None
    ) -> Receipt:
        """Do ``fault`` to ``aim``. ``view`` is of this moment.

        Without a ``sequence``, by which the caller ends it, it has the next one, and is over if it does not last.
        """
        seen = self.view() if view is None else view
        receipt = self._receipt(fault, aim, cause, sequence)
        begun = self._open[receipt.sequence] = _OpenFault(fault, aim, receipt, seen)
        begun.begun(fault.begin(self._target, aim))
        self._witness(receipt)
        if sequence is None and not fault.lasts:
            self.end(receipt.sequence)
        return receipt

    def skip(self, fault: Fault, aim: Aim, cause: Cause, sequence: int) -> None:
        """Mark as skipped what the ``aim`` says is impossible."""
        receipt = self._receipt(fault, aim, cause, sequence)
        receipt.mark, receipt.ended_us, receipt.reason = "skipped", receipt.begun_us, aim.impossible
        receipt.unsupported = aim.impossible == self._target.why_not(fault.needs)
        self._witness(receipt)

    def end(self, sequence: int) -> None:
        """Undo a fault, as far as no other holds the same links by the same; nothing where it has ended."""
        fault = self._open.pop(sequence, None)
        if fault is None:
            return
        by = fault.fault.holds_links_by
        held = {link for other in self._open.values() if other.fault.holds_links_by == by for link in other.left}
        free = msgspec.structs.replace(
            fault.aim,
            nodes=tuple(node for node in fault.aim.nodes if node in fault.left),
            links=tuple(link for link in fault.aim.links if link in fault.left - held),
        )
        view = self._target.view()
        fault.look(view, self._now_us())
        self._close(fault, view, fault.fault.end(self._target, free))

    def end_all(self) -> None:
        """Undo every fault, the newest first."""
        for sequence in sorted(self._open, reverse=True):
            self.end(sequence)

    def held(self, repair: Repair[Any]) -> set[Any]:
        """The nodes or links that faults hold which ``repair`` undoes."""
        return {part for fault in self._open.values() if fault.fault.undone_by == repair for part in fault.left}

    def repairs(self, kind: type[Fault]) -> list[Repair[Any]]:
        """List what undoes the faults of ``kind`` that last, each once, in the order of the faults."""
        lasting = [fault.fault for fault in self._open.values()]
        return list(dict.fromkeys(fault.undone_by for fault in lasting if isinstance(fault, kind)))

    def undo(self, repair: Repair[Any], whom: int | Collection[Link]) -> Observed:
        """Repair a node, or links: faults hold ``whom`` no longer, and those that hold nothing else have ended.

        Where nothing was observed, nothing was undone.
        """
        view, these = self.view(), {whom} if isinstance(whom, int) else set(whom)
        evidence: Observed = repair.do(self._target, whom)
        for sequence, fault in [*self._open.items()] if evidence else ():
            if fault.fault.undone_by == repair and fault.left & these:
                fault.left -= these
                if not fault.left:
                    self._close(self._open.pop(sequence), view, evidence)
        return evidence

    def close(self) -> None:
        """The script is over: what lasts, lasts no longer than this. Idempotent."""
        view = self.view()
        while self._open:
            self._close(self._open.pop(min(self._open)), view, {})

    def _close(self, fault: _OpenFault, view: ClusterView, evidence: Observed) -> None:
        fault.ended(view, self._now_us(), evidence)
        self._witness(fault.receipt)

    def _receipt(self, fault: Fault, aim: Aim, cause: Cause, sequence: int | None) -> Receipt:
        receipt = Receipt(
            mark="begin",
            sequence=len(self.receipts) if sequence is None else sequence,
            group=cause.group,
            family=cause.family,
            story=cause.story,
            fault=fault.kind,
            role=cause.role,
            shape=cause.shape,
            targets=aim.nodes,
            links=aim.links,
            begun_us=self._now_us(),
        )
        self.receipts.append(receipt)
        return receipt
