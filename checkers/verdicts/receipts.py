"""The receipts of a run's faults, reduced to what a promise depends on.

A fault has one receipt at its begin and one at its end; the later tells more. A fault without evidence that it took
effect does not count: no receipt, no claim. A promise also reckons with faults that were observed in part: they may
have happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nemesis.cluster import CLIENTS
from nemesis.evidence import CopyTaken, PowerLost, WhyNot
from nemesis.faults import FaultKind, fault_kind
from nemesis.receipts import Receipt

#: Instead of a broker's number that is not known.
NO_BROKER: Final = -1
#: Instead of a log partition's name: any log partition.
ANY: Final = ""


class TakenCopy(msgspec.Struct, frozen=True):
    """A replica's log from which a fault took records, or may have.

    Attributes:
        partition: the log partition; ANY where the receipt does not name those that were hit.
        node: the broker whose copy it was.
        watched: the receipt says what the controller said of the log partition while the fault lasted.
        out_of_sync: number of the other replicas that were not in sync when the fault began, if the receipt says so.
        outlived: when the broker was to be started again, it was out of the ISR and others were in.
        in_doubt: it may have been the only member of the ISR when it was looked at; or the damaged record stays in its
            log unseen, so that it counts as whole.
    """

    partition: str = ANY
    node: int = NO_BROKER
    watched: bool = False
    out_of_sync: int = 0
    outlived: bool = False
    in_doubt: bool = False


class FaultSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault that took effect.

    Attributes:
        kind: the fault's name ("kill", "pause", "partition", ...).
        clients_only: True where only clients and their links were hit and no leader changed meanwhile.
        nodes: the nodes whose process, disk or replica it hit, controllers among them.
        begun_us, ended_us: the run's clock; None where its end is not known.
        touched: the log partitions that it touched; None where the receipt does not say.
        copies: the copies from which it took records; None where only its kind and its nodes are known.
        took_flushed: true if a disk that it hit had called records flushed that it then lost.
    """

    kind: str
    clients_only: bool = False
    nodes: tuple[int, ...] = ()
    begun_us: int = 0
    ended_us: int | None = None
    touched: tuple[str, ...] | None = None
    copies: tuple[TakenCopy, ...] | None = None
    took_flushed: bool = False

    @property
    def facts(self) -> type[FaultKind]:
        """The facts about faults of this kind."""
        return fault_kind(self.kind)

    def touches(self, partition: str) -> bool:
        """Tell whether it may have touched this log partition; a process that ended took all of its replicas along."""
        return self.touched is None or self.facts.ends_process or partition == ANY or partition in self.touched

    def taken(self) -> tuple[TakenCopy, ...]:
        """The copies from which it took records; a copy of every node if only the kind of fault is known."""
        if not self.facts.destroys_copy:
            return ()
        if self.copies is not None:
            return self.copies
        return tuple(TakenCopy(node=node) for node in self.nodes) or (TakenCopy(in_doubt=True),)


def latest_receipts(receipts: Iterable[Receipt]) -> list[Receipt]:
    """One receipt a fault, the latest of each, in the order in which the faults began."""
    latest = {receipt.sequence: receipt for receipt in receipts}
    return sorted(latest.values(), key=lambda receipt: (receipt.begun_us, receipt.sequence))


def faults_seen(receipts: Iterable[Receipt]) -> tuple[FaultSeen, ...]:
    """The faults that took effect, in the receipts' order."""
    return tuple(_seen(receipt) for receipt in receipts if receipt.took_effect)


def faults_possible(receipts: Iterable[Receipt]) -> tuple[FaultSeen, ...]:
    """The faults that took effect, and those that may have: only some brokers were hit, or no answer came."""
    return tuple(_seen(receipt) for receipt in receipts if receipt.took_effect or _may_have_happened(receipt))


def _seen(receipt: Receipt) -> FaultSeen:
    return FaultSeen(
        kind=receipt.degraded_to or receipt.fault,
        clients_only=_clients_only(receipt),
        nodes=receipt.targets,
        begun_us=receipt.begun_us,
        ended_us=receipt.ended_us,
        touched=receipt.touched,
        copies=_copies(receipt) if receipt.facts.destroys_copy else None,
        took_flushed=took_flushed(receipt),
    )


def took_flushed(receipt: Receipt) -> bool:
    """Tell whether a disk that it hit lied (:class:`nemesis.faults.LyingDisk`): it lost something flushed."""
    of_nodes: Mapping[str, PowerLost] = receipt.of_nodes
    return any("lost_flushed" in seen for seen in of_nodes.values())


def _copies(receipt: Receipt) -> tuple[TakenCopy, ...]:
    """The copies from which records were taken, by the counts of its evidence; what it does not count may be gone."""
    partitions = (ANY,) if receipt.touched is None else receipt.touched
    of_nodes: Mapping[str, CopyTaken] = receipt.of_nodes
    copies = ((name, node, of_nodes.get(str(node), CopyTaken())) for node in receipt.targets for name in partitions)
    return tuple(_copy(receipt, name, node, seen) for name, node, seen in copies if _took_records(seen, name))


def _took_records(seen: CopyTaken, partition: str) -> bool:
    """Tell whether records were taken; without a count they may have been."""
    counted = seen.get("lost", seen.get("wiped", {}))
    return counted.get(partition, 1) > 0


def _copy(receipt: Receipt, partition: str, node: int, seen: CopyTaken) -> TakenCopy:
    unseen = seen.get("corrupted", {}).get("read_again") is False
    away = receipt.out_of_sync.get(partition, ())
    if partition == ANY:
        away = max(receipt.out_of_sync.values(), key=len, default=())
    looks = receipt.seen.get(partition, [])
    return TakenCopy(
        partition=partition,
        node=node,
        watched=bool(looks),
        out_of_sync=sum(other != node for other in away),
        outlived=not unseen and _left_to_others(receipt, partition, node, away),
        in_doubt=unseen or any(look.isr <= 1 and look.leader in (None, node) for look in looks),
    )


def _left_to_others(receipt: Receipt, partition: str, node: int, away: tuple[int, ...]) -> bool:
    """Tell whether the last look before its restart found ``node`` out of the ISR, and another broker in."""
    moves = receipt.moved.get(partition, {})
    if "isr" in moves:
        isr = moves["isr"][1]
        return bool(isr) and node not in isr
    looks = receipt.seen.get(partition, [])
    return node in away and bool(looks) and looks[-1].leader not in (None, node)


def _may_have_happened(receipt: Receipt) -> bool:
    of_nodes: Mapping[str, WhyNot] = receipt.of_nodes
    return any(seen and "refused" not in seen for seen in of_nodes.values())


def _clients_only(receipt: Receipt) -> bool:
    ends = [*map(max, receipt.links), *receipt.targets]
    led_on = not any({"leader", "leader_epoch"} & changes.keys() for changes in receipt.moved.values())
    return bool(ends) and min(ends) >= CLIENTS and led_on
