"""Find the log partitions that may have lost the last copy of an acknowledged write, by the receipts of faults.

"Rule n" is replication rule n of docs/reference/replication-rules.md. A fault destroys a copy where it takes records
that a replica had answered for: a loss of power, an emptied disk, a damaged record. A copy counts unless the receipt
says that nothing of its log partition is gone. With flush.messages=1 a loss of power takes nothing (rule 24) unless
the disk lied (S33); an emptied disk and a damaged record take flushed records too (S08, S34). Full and slow disks
destroy nothing.

A destroyed copy is harmless where another member of the ISR is known to have everything. Time goes to the right:

1. Its broker was started again when it was out of the ISR, and another member was in (rules 11, 13, 20)::

       A   in the ISR | emptied | out of the ISR ............. | started: takes everything from B
       B   in the ISR | in the ISR .. leads, or follows one that leads ........................

2. Another replica was in sync, and no fault hit it about that time: within ``SETTLED`` sessions and lag times::

       A   in the ISR | emptied | out of the ISR
       B   in the ISR ......................... has everything

3. It is not harmless where another fault may have taken B from the ISR before A was out of it (S09)::

       A   in the ISR ............. | emptied, leads again with less: B truncates (KAFKA-15495, KIP-966)
       B   in the ISR | cut or paused, dropped from the ISR ...........

Receipts do not name B. It exists if copies are left without those that were out of sync, the destroyed one, and those
that faults hit meanwhile. A pause, a cut link or a dead controller may drop any follower, so then nothing is known,
nor where A was seen as what may have been the last member. Where no look at the log partition is recorded, as in older
receipts, only a fault that was alone is counted so.

Rules 1 and 2 need acks=all; elections among members of the ISR only, so neither unclean elections nor a commit rule by
number (rules 27, 28); and broker.epochs. Without epochs A is back before its session ends, and leads (KAFKA-7235,
KAFKA-14139; S19, S36)::

       A   leads | emptied, started | leads with less: the write is gone
       B   in the ISR ............. | truncates to A

A damaged record that no recovery reads stays in the log of a broker that counts as whole: it is never harmless.

*Eligible leader replicas* (rule 15) make more copies harmless: ISR and ELR have at least min.insync.replicas members,
and each has everything. Only a broker that stopped uncleanly is struck off. So if fewer brokers of a log partition than
min.insync.replicas stopped uncleanly in the whole run, one that did not is on a list (S08, S09, S34). A kill counts,
too, although its disk has everything. With strict min ISR and min.insync.replicas=2::

       A   emptied                 | struck off ... | leads as the last known leader: the write is gone (S11, S15)
       B            killed: struck off, with the write on its disk

Beyond that number, and without strict min ISR, nothing is promised (S25).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from checkers.verdicts.receipts import ANY, FaultSeen, TakenCopy
from nemesis.cluster import CONTROLLER
from workloads import ACKS_ALL, Settings

#: A broker that is silent for a session is fenced, a follower that lags is dropped after up to 1.5 lag times; busy
#: machines are late. After this many times as long it is settled.
SETTLED: Final = 2


class Reason(msgspec.Struct, frozen=True):
    """A reason in words for what is promised or permitted, with its rule."""

    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.text} ({self.source})"


_FLUSHED = Reason("flush.messages=1: a replica forces a record to its disk before it answers for it, so loss of power "
                  "takes nothing that was acknowledged", "rule 24")  # fmt: skip
_MAJORITY = Reason("commit.rule=majority: a replica forces a record to its disk before it answers for it, so loss of "
                   "power takes nothing that was acknowledged", "rules 24, 28")  # fmt: skip
#: Reasons why loss of power spared acknowledged records.
SPARED = frozenset({_FLUSHED, _MAJORITY})
_OUTLIVED = Reason("a broker whose copy was destroyed had left the in-sync replicas to others when it came back",
                   "rules 11, 13, 20")  # fmt: skip
_STAYED = Reason("when a copy was destroyed, a replica was in sync that no fault hit about that time, so it has the "
                 "write", "rules 4, 13")  # fmt: skip
_ELIGIBLE = Reason("eligible.leader.replicas=true and fewer than min.insync.replicas brokers stopped uncleanly, so one "
                   "that has the write stays eligible, and no other is elected", "rule 15; KIP-966")  # fmt: skip
_DESTROYED = Reason("a copy was destroyed, and the last in-sync replica may return without it",
                    "KAFKA-15495, KIP-966")  # fmt: skip


class FateOfCopies(NamedTuple):
    """Reasons why every copy of a record may be gone, or why one that may lead is left, by destroyed copy."""

    destroyed: tuple[Reason, ...]
    kept: tuple[Reason, ...]


def fate_of_copies(settings: Settings, faults: Sequence[FaultSeen], partition: str = ANY) -> FateOfCopies:
    """Judge what ``faults`` did to the copies of one log partition, or of any."""
    reasons = dict.fromkeys(
        _why_kept(settings, copy, fault, faults)
        for fault in faults
        for copy in fault.taken()
        if ANY in {partition, copy.partition} or partition == copy.partition
    )
    return FateOfCopies((_DESTROYED,) if None in reasons else (), tuple(reason for reason in reasons if reason))


def _why_kept(settings: Settings, copy: TakenCopy, fault: FaultSeen, faults: Sequence[FaultSeen]) -> Reason | None:
    """Say why what ``copy`` had is on another that may lead; None where it may have been the last."""
    if fault.facts.spares_flushed and settings.flushes_first and not fault.took_flushed:
        return _FLUSHED if settings.flush_messages == 1 else _MAJORITY
    in_sync_lead = not (settings.elects_uncleanly or settings.commits_by_number)
    if settings.acks != ACKS_ALL or not (settings.broker_epochs and in_sync_lead):
        return None
    if copy.outlived:
        return _OUTLIVED
    if _another_stayed(settings, copy, fault, faults):
        return _STAYED
    return _ELIGIBLE if _one_stays_eligible(settings, copy, faults) else None


def _another_stayed(settings: Settings, copy: TakenCopy, fault: FaultSeen, faults: Sequence[FaultSeen]) -> bool:
    near = [other for other in faults if other.touches(copy.partition) and _is_near(settings, other, fault)]
    stopped = {copy.node, *(node for other in near for node in other.nodes)}
    left = settings.replication_factor - copy.out_of_sync - len(stopped)
    counted = left > 0 and all(_ends_brokers(other) for other in near)
    if not copy.watched:
        return counted and near == [fault] and not copy.out_of_sync
    return counted and not copy.in_doubt


def _is_near(settings: Settings, other: FaultSeen, fault: FaultSeen) -> bool:
    """``other`` may take a replica out of sync about the time when ``fault`` destroys a copy."""
    session_us, lag_us = 1000 * settings.broker_session_timeout_ms, 1000 * settings.replica_lag_time_max_ms
    before_us, after_us = fault.begun_us - SETTLED * session_us, fault.begun_us + SETTLED * session_us
    if other.clients_only or other.facts.spares_cluster or other.begun_us > after_us:
        return False
    if _ends_brokers(other):
        return other.begun_us >= before_us
    return other.ended_us is None or other.ended_us >= before_us - SETTLED * lag_us


def _ends_brokers(fault: FaultSeen) -> bool:
    return fault.facts.ends_process and bool(fault.nodes) and max(fault.nodes) < CONTROLLER


def _one_stays_eligible(settings: Settings, copy: TakenCopy, faults: Sequence[FaultSeen]) -> bool:
    """Rule 15, as far as it reaches: see the module's text. A fault that names no broker could have hit any."""
    ending = [fault for fault in faults if not fault.facts.spares_process and fault.touches(copy.partition)]
    stopped = {node for fault in ending for node in fault.nodes}
    copies = min(settings.min_insync_replicas, settings.replication_factor)
    guarded = settings.eligible_leader_replicas and settings.strict_min_isr
    return guarded and len(stopped) < copies and all(fault.nodes for fault in ending)
