"""What the receipts of a run's faults say, reduced to what a promise depends on.

Receipts stand in the history as JSON and reach the checkers as mappings (:attr:`Verdict.faults`), so an old
history can be judged by newer checkers. A fault has one receipt at its begin and one at its end; the later tells
more. A fault without evidence that it took effect does not count: no receipt, no claim. A promise also reckons with
those of which something was observed, but not everything: they may have happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nemesis.cluster import CLIENTS
from nemesis.faults import FaultKind, fault_kind
from nemesis.receipts import Receipt, is_refusal, read_receipt


class FaultSeen(msgspec.Struct, frozen=True):
    """One fault that took effect.

    Attributes:
        kind: the fault's name ("kill", "pause", "partition", ...).
        clients_only: True where only clients and their links were hit and no leader changed meanwhile.
        nodes: the nodes whose process, disk or replica it hit, controllers among them.
        all_in_sync: whether every replica was in sync when it began, as far as the receipt tells.
        took_flushed: whether a disk that it hit had called flushed what it then lost.
    """

    kind: str
    clients_only: bool = False
    nodes: tuple[int, ...] = ()
    all_in_sync: bool = True
    took_flushed: bool = False

    @property
    def facts(self) -> type[FaultKind]:
        """What is known of faults of this kind."""
        return fault_kind(self.kind)


def read_receipts(details: Iterable[Mapping[str, Any]]) -> list[Receipt]:
    """The receipts, one a fault, the latest of each, in the order in which the faults began.

    Raises:
        msgspec.ValidationError: if a mapping is no receipt.
    """
    latest: dict[int, Receipt] = {}
    for detail in details:
        receipt = read_receipt(detail)
        latest[receipt.sequence] = receipt
    return sorted(latest.values(), key=lambda receipt: (receipt.begun_us, receipt.sequence))


def faults_seen(receipts: Iterable[Receipt]) -> tuple[FaultSeen, ...]:
    """The faults that took effect, in the receipts' order."""
    return tuple(_seen(receipt) for receipt in receipts if receipt.took_effect)


def faults_possible(receipts: Iterable[Receipt]) -> tuple[FaultSeen, ...]:
    """The faults that took effect, and those that may have: several brokers, of which some were hit; no answer."""
    return tuple(_seen(receipt) for receipt in receipts if receipt.took_effect or _may_have_happened(receipt))


def _seen(receipt: Receipt) -> FaultSeen:
    kind = receipt.degraded_to or receipt.fault
    return FaultSeen(kind, _clients_only(receipt), receipt.targets, not receipt.out_of_sync, took_flushed(receipt))


def took_flushed(receipt: Receipt) -> bool:
    """A disk that it hit lied (:class:`nemesis.faults.LyingDisk`): of what it lost, something had been flushed."""
    return any(isinstance(seen, Mapping) and "lost_flushed" in seen for seen in receipt.begin_evidence.values())


def _may_have_happened(receipt: Receipt) -> bool:
    return any(observed and not is_refusal(observed) for observed in receipt.begin_evidence.values())


def _clients_only(receipt: Receipt) -> bool:
    ends = [*map(max, receipt.links), *receipt.targets]
    led_on = not any({"leader", "leader_epoch"} & changes.keys() for changes in receipt.moved.values())
    return bool(ends) and min(ends) >= CLIENTS and led_on
