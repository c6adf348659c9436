"""Which log partitions may have lost the last copy of an acknowledged write: destroyed copies, from receipts.

"Rule n" is replication rule n of docs/reference/replication-rules.md. A copy is destroyed where a fault took records
that a replica had answered for: by loss of power, with an emptied disk, with a damaged record.

*Which copies count.* Those of log partitions of which the receipt says that records are gone, or does not say that
none are. With flush.messages=1 a replica has forced a record to its disk before it answers for it (rule 24), so loss
of power takes nothing that was acknowledged, and counts as a kill; an emptied disk and a damaged record take what was
flushed too (S08, S34), and so does loss of power where the disk lied about it (S33), as its receipt then says.

*When is a destroyed copy harmless?* Every member of the ISR has all that was ever acknowledged to acks=all or was
readable, until a copy is destroyed. Its broker ends in that moment. When its session ends, or before its next
incarnation is registered, it leaves the ISR (rules 13, 20), unless it is the last member, and it comes back only with
everything that the leader of that time has (rule 11). So as soon as it has left the ISR to others, every member has
everything again. If it was the last member, it is waited for, and everyone truncates to what it returns with
(KAFKA-15495, KIP-966). Only members of the ISR lead. So a copy is harmless if one of these is known:

* When its broker was to be started again, it was out of the ISR, and somebody else was in. Whatever happened to others
  before or happens later: each destroyed copy is judged by itself.
* When it was destroyed, another replica was in sync, which no fault hit about that time, and which stayed so until the
  destroyed one was out. Receipts do not name it; it is there if copies are left when those are taken away that were out
  of sync, the destroyed one, and those whose brokers were ended within ``SETTLED`` sessions of it: who was ended before
  has left the ISR by then. Faults of other kinds that lasted then, or ended up to ``SETTLED`` sessions and lag times
  before (a pause, a cut link, a dead controller), make leaders drop followers that nothing hit, or end sessions late;
  so nobody can say (S09), as where the broker was seen as what may have been the last member. Where nobody looked at
  the log partition meanwhile, which older receipts do not even name, only a fault that was alone is counted so.

Both need broker.epochs: without them a broker that is back before its session ends goes on as the replica, or the
leader, that it was, with what its disk has left (KAFKA-7235, KAFKA-14139; S19, S36). Both need that the ISR has
everything and only its members lead: no unclean elections, nor a commit rule by number (rules 27, 28). And both are
about acks=all: other writes are lost by any change of leader. A damaged record that no recovery reads stays in the log
of a broker that counts as whole, so it is never harmless.

*Eligible leader replicas* (rule 15) make more of them harmless: what was acknowledged is on every member of the ISR
and of the ELR, together at least min.insync.replicas. Only a broker that stopped uncleanly is struck off both lists,
whatever its disk has left, and nobody else than their members is elected while there is one. So if fewer than
min.insync.replicas of a log partition's brokers stopped uncleanly in the whole run, however often, one that never did
is on a list and has everything (S08, S09, S34). A kill is an unclean stop like any other: a second broker that was
killed may have been the only other one with the write, is struck off although it has it, and the emptied one leads as
the last known leader. Beyond that number, and without strict min ISR, nothing is promised (S11, S15, S25).

Full and slow disks destroy nothing: what was appended is there, and a broker that ends over a full disk leaves it as a
killed one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from checkers.verdicts.receipts import ANY, FaultSeen, TakenCopy
from nemesis.cluster import CONTROLLER
from workloads import ACKS_ALL, Settings

#: A broker that is silent for a session is fenced, a follower that lags is dropped after up to 1.5 lag times; busy
#: machines are late. So many times as long settles it.
SETTLED: Final = 2


class Reason(msgspec.Struct, frozen=True):
    """Why something is promised or permitted, in words, and where the rule stands."""

    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.text} ({self.source})"


_FLUSHED = Reason("flush.messages=1: a replica forces a record to its disk before it answers for it, so loss of power "
                  "takes nothing that was acknowledged", "rule 24")  # fmt: skip
_MAJORITY = Reason("commit.rule=majority: a replica forces a record to its disk before it answers for it, so loss of "
                   "power takes nothing that was acknowledged", "rules 24, 28")  # fmt: skip
#: Why loss of power spared what was acknowledged.
SPARED = frozenset({_FLUSHED, _MAJORITY})
_OUTLIVED = Reason("a broker whose copy was destroyed had left the in-sync replicas to others when it came back",
                   "rules 11, 13, 20")  # fmt: skip
_STAYED = Reason("when a copy was destroyed, a replica was in sync that no fault hit about that time, so it has the "
                 "write", "rules 4, 13")  # fmt: skip
_ELIGIBLE = Reason("eligible.leader.replicas=true and fewer than min.insync.replicas brokers stopped uncleanly, so one "
                   "that has the write stays eligible, and nobody else is elected", "rule 15; KIP-966")  # fmt: skip
_DESTROYED = Reason("a copy was destroyed, and the last in-sync replica may return without it",
                    "KAFKA-15495, KIP-966")  # fmt: skip


class FateOfCopies(NamedTuple):
    """Why every copy of a record may be gone, and why one that may lead is left, of each copy that was destroyed."""

    destroyed: tuple[Reason, ...]
    kept: tuple[Reason, ...]


def fate_of_copies(settings: Settings, faults: Sequence[FaultSeen], partition: str = ANY) -> FateOfCopies:
    """What ``faults`` did to the copies of one log partition, or of any."""
    found = dict.fromkeys(
        _why_kept(settings, copy, fault, faults)
        for fault in faults
        for copy in fault.taken()
        if ANY in {partition, copy.partition} or partition == copy.partition
    )
    return FateOfCopies((_DESTROYED,) if None in found else (), tuple(reason for reason in found if reason))


def _why_kept(settings: Settings, copy: TakenCopy, fault: FaultSeen, faults: Sequence[FaultSeen]) -> Reason | None:
    """Why what ``copy`` had is on another that may lead; None where it may have been the last."""
    if fault.facts.spares_flushed and settings.flushes_first and not fault.took_flushed:
        return _FLUSHED if settings.flush_messages == 1 else _MAJORITY
    in_sync_lead = not (settings.unclean_leader_election_enable or settings.commits_by_number)
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
