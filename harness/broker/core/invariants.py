"""The invariants: what must hold in every reachable state of a cluster, each stated once.

A rule here is a function of what it compares: numbers, leader epochs, the controller's state of a log partition. It
answers with the name of the invariant and a sentence where it is broken, None where it holds. It does not say when it
is looked at: a simulated run looks at what a step has touched (``harness/worlds/simulated/invariants.py``), exhaustive
search at whole states and at each step of a node (``harness/lab/explore/rules.py``). Rules about one replica alone are
assertions in the core itself.

Names and meanings are those of the models of KIP-966 and KIP-101 (``kip_966_properties.tla``, ``Kip101.tla``). Each
rule holds always, unless it says *while committed records are kept* (:func:`keeps_committed`): some old rules, unclean
elections and destroyed disks lose committed records by design.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from harness.broker.core.commit_rule import copies, required_acks
from harness.broker.core.election import elects_uncleanly
from harness.broker.core.transaction_coordinator import TransactionRecord, TransactionState
from harness.broker.core.types import NONE, BrokerConfig, NodeId, PartitionState, TopicConfig

#: The name of an invariant, and a sentence that says how it is broken.
Broken = tuple[str, str]


def keeps_committed(config: BrokerConfig) -> bool:
    """Only unclean elections and destroyed disks lose a committed record under these settings.

    The rules are those since 2.1 (KIP-101, 279, 320, KAFKA-7128), a quick restart is noticed (rule 20), and elections
    look for what the commit rule leaves behind (rules 27, 28).
    """
    by_number = required_acks(config) != NONE
    return (
        config.truncation in {"kip-320", "on-fetch"}
        and config.isr_join_epoch_rule
        and config.fetch_fencing
        and config.broker_epochs
        and (not by_number or config.leader_election == "largest-epoch-and-log-end")
    )


# --- the controller's state of a log partition -----------------------------------------------------------------------


def isr_of_replicas(state: PartitionState) -> Broken | None:
    """TypeOK: the ISR and the ELR are apart, and of the replicas; a leader is in the ISR."""
    isr, elr = set(state.isr), set(state.elr)
    if isr & elr or not isr | elr <= set(state.replicas) or state.leader not in {NONE, *isr}:
        return "isr-of-replicas", str(state)
    return None


def epochs_grow(before: PartitionState, after: PartitionState) -> Broken | None:
    """EpochsGrow: every change has a larger partition epoch, another leader a larger leader epoch."""
    moved = after.leader != before.leader
    grow = after.partition_epoch > before.partition_epoch and after.leader_epoch >= before.leader_epoch + moved
    return None if grow or after == before else ("epochs-grow", f"{after} follows {before}")


def begins_new_history(
    config: BrokerConfig,
    topic: TopicConfig,
    before: PartitionState,
    after: PartitionState,
    *,
    live: Collection[NodeId],
    struck: Collection[NodeId] = (),
) -> bool:
    """Tell whether an election may begin a new history with what its leader has, so committed records are lost.

    That follows from the settings, and from the lists before: no broker on them may be able to lead. ``live``
    are the brokers that may lead at all, ``struck`` those that no list may hold any more, see :func:`eligible_stay`.
    What the controller says about its election (``recovering``) is not asked: it may be what is wrong.
    """
    isr, elr = {*before.isr} - {*struck}, {*before.elr} - {*struck}
    if required_acks(config) != NONE or after.leader in {NONE, before.leader, *isr, *elr}:
        return False
    if any(node in live for node in isr or elr):
        return False
    last_leader = before.last_known_leader if before.leader == NONE else before.leader
    is_last = config.eligible_leader_replicas and not isr and not elr and after.leader == last_leader
    return is_last or elects_uncleanly(config, topic)


def eligible_stay(
    topic: TopicConfig, before: PartitionState, after: PartitionState, *, struck: Collection[NodeId]
) -> Broken | None:
    """EligibleReplicas: while the ISR is below min.insync.replicas, who was on a list stays on one (rule 15).

    Where eligible leader replicas are kept, and no new history begins. ``struck`` are brokers that have stopped
    uncleanly, or come back without a log directory. Between the two states several may have left the ISR one after the
    other, the first of them when it was still large enough.
    """
    least = min(topic.min_insync_replicas, len(after.replicas))
    gone = sorted({*before.isr, *before.elr} - {*after.isr, *after.elr, *struck})
    if len(after.isr) >= least or len(gone) <= max(len(before.isr) - least, 0):
        return None
    return "eligible-stay", f"of {gone} some have everything, and may lead no more: {after} follows {before}"


# --- a leader --------------------------------------------------------------------------------------------------------


def one_leader_an_epoch(leader_epoch: int, first: NodeId, other: NodeId) -> Broken | None:
    """OneLeaderPerEpoch: the brokers that lead in a leader epoch are one: the controller counts epochs (rule 13)."""
    if first == other:
        return None
    return "one-leader-an-epoch", f"brokers {first} and {other} lead in epoch {leader_epoch}"


def maximal_isr_is_larger(state: PartitionState, leader_epoch: int, maximal_isr: Collection[NodeId]) -> Broken | None:
    """ReplicationQuorumSuperset: a leader waits for every replica that the controller calls in sync.

    Only the leader of the present epoch is looked at: a deposed one commits nothing, because the replicas for which it
    waits fetch from another.
    """
    if leader_epoch != state.leader_epoch or set(state.isr) <= set(maximal_isr):
        return None
    text = f"the controller's ISR is {sorted(state.isr)}, and leader {state.leader} counts {sorted(maximal_isr)}"
    return "maximal-isr-is-larger", text


# --- high watermarks -------------------------------------------------------------------------------------------------


def high_watermark_on_log(broker: NodeId, high_watermark: int, start_offset: int, end_offset: int) -> Broken | None:
    """TypeOK: what is committed is on the log, and retention drops no more than that (rule 47)."""
    if start_offset <= high_watermark <= end_offset:
        return None
    text = f"broker {broker} has a high watermark of {high_watermark} over a log from {start_offset} to {end_offset}"
    return "high-watermark-on-log", text


def high_watermark_monotonic(broker: NodeId, before: tuple[int, int], after: tuple[int, int]) -> Broken | None:
    """A leader's high watermark never moves back in one leader epoch.

    Both are (leader epoch, high watermark); an epoch of NONE means that the broker did not lead. Under a new leader a
    follower's may move back (rule 8), and so may that of a process that was started again.
    """
    if before[0] != after[0] or after[0] == NONE or after[1] >= before[1]:
        return None
    return (
        "high-watermark-monotonic",
        f"broker {broker} leads and moved its high watermark from {before[1]} to {after[1]}",
    )


def high_watermark_is_committed(
    broker: NodeId, high_watermark: int, offset: int, own: object, committed: object
) -> Broken | None:
    """LogMatching: what a follower's high watermark covers is committed, for consumers may read it there (rule 8).

    ``own`` and ``committed`` are the records at ``offset``, as in :func:`logs_match`. While committed records are kept.
    """
    if own == committed:
        return None
    text = f"broker {broker} follows with a high watermark of {high_watermark} and another record than the committed"
    return "high-watermark-is-committed", f"{text} one at {offset}"


# --- committed records -----------------------------------------------------------------------------------------------


def candidates_are_complete(broker: NodeId, end_offset: int, committed_end: int, missing: str = "") -> Broken | None:
    """LeaderCandidateCompleteness: a broker that may be elected, dead or alive, has everything that was ever committed.

    Candidates are the members of the ISR and of the ELR; where a number of replicas commits, the leader that was
    elected. ``missing`` names an acknowledged record that its log lacks, where records are known by name. While
    committed records are kept.
    """
    if missing:
        return "candidates-are-complete", f"broker {broker} may lead without {missing}, acknowledged"
    if end_offset >= committed_end:
        return None
    return "candidates-are-complete", f"broker {broker} may lead with {end_offset} of {committed_end} committed offsets"


def logs_match(broker: NodeId, offset: int, own: object, committed: object) -> Broken | None:
    """LogMatching: at a committed offset a candidate has the committed record.

    A record is known by its leader epoch, or by more: an epoch has one leader, which only appends, so two logs with the
    same epoch at an offset hold the same records up to there (KIP-101). While committed records are kept.
    """
    if own == committed:
        return None
    return "logs-match", f"broker {broker} has another record than the committed one at {offset}"


def deleted_stay_deleted(broker: NodeId, record: str, tombstone: str) -> Broken | None:
    """A candidate that lacks a committed ``tombstone`` of a compacted log has no ``record`` that this deletes.

    With "" as the record nothing is wrong: the tombstone may be gone. While committed records are kept, and no
    broker is away for longer than delete.retention.ms (rule 32).
    """
    if not record:
        return None
    return "deleted-stay-deleted", f"broker {broker} may lead with {record}, which {tombstone} has deleted"


def committed_has_its_copies(config: BrokerConfig, replicas: int, lacking: Collection[Broken]) -> Broken | None:
    """StateMachineSafety, as far as logs show it: as many replicas as commit a record have all that is committed.

    ``lacking`` says of each of the ``replicas`` that has not all of it what it lacks. Under the rules 27 and 28, while
    committed records are kept.
    """
    if replicas - len(lacking) >= copies(required_acks(config), replicas):
        return None
    return "committed-has-its-copies", "; ".join(text for _, text in lacking)


def consistent_reads(source: str, offset: int, earlier: object, later: object) -> Broken | None:
    """ConsistentRead: at an offset all consumers get the same record, at any time. While committed records are kept.

    ``source`` is the broker from which the ``later`` one is read.
    """
    if earlier is later or earlier == later:
        return None
    return "consistent-reads", f"{source} has another record for a consumer at {offset} than one has read there"


# --- transactions ----------------------------------------------------------------------------------------------------

_FOLLOWING: Final = {
    TransactionState.EMPTY: {TransactionState.EMPTY, TransactionState.ONGOING},
    TransactionState.ONGOING: {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    },
    TransactionState.PREPARE_COMMIT: {TransactionState.COMPLETE_COMMIT},
    TransactionState.PREPARE_ABORT: {TransactionState.COMPLETE_ABORT},
    TransactionState.COMPLETE_COMMIT: {TransactionState.EMPTY, TransactionState.ONGOING},
    TransactionState.COMPLETE_ABORT: {TransactionState.EMPTY, TransactionState.ONGOING},
}


def transactions_as_logged(broker: NodeId, has: object, logged: object) -> Broken | None:
    """A replica knows the open and the aborted transactions that its log shows, and no other (rule 35)."""
    if has == logged:
        return None
    return "transactions-as-logged", f"broker {broker} knows {has}, and its log has {logged}"


def producers_grow(broker: NodeId, producer_id: int, before: int, after: int, offset: int) -> Broken | None:
    """In a log no record of a producer follows one of a later epoch: who is superseded writes nothing (rule 21)."""
    if after >= before:
        return None
    text = f"broker {broker} has epoch {after} of producer {producer_id} at {offset}, behind epoch {before}"
    return "producers-grow", text


def decision_follows(name: str, before: TransactionRecord, after: TransactionRecord) -> Broken | None:
    """A transaction ends once, as it was decided, in all its log partitions; late and repeated ends change nothing."""
    follows = after.state in _FOLLOWING[before.state] and after.producer_id == before.producer_id
    follows &= after.producer_epoch >= before.producer_epoch + (after.state is TransactionState.EMPTY)
    if before.state is TransactionState.ONGOING:
        kept = set(after.partitions) >= set(before.partitions) and after.begun_ms == before.begun_ms
        follows &= kept and (after.state is TransactionState.ONGOING or after.partitions == before.partitions)
    return None if follows else ("decision-follows", f"{name}: {after} follows {before}")


def only_its_producer_decides(name: str, asking: tuple[int, int], record: TransactionRecord) -> Broken | None:
    """A transaction is changed by its producer in the present epoch, and by no superseded one (rule 38)."""
    if asking == (record.producer_id, record.producer_epoch):
        return None
    return "only-its-producer-decides", f"{name}: producer id and epoch {asking} changed {record}"


def marker_as_decided(producer: tuple[int, int], decided: TransactionRecord | None, *, commit: bool) -> Broken | None:
    """A marker is sent once its decision is committed, and says the same (rule 39)."""
    wanted = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    if decided is not None and (decided.state, decided.producer_id, decided.producer_epoch) == (wanted, *producer):
        return None
    return "marker-as-decided", f"a marker {wanted.name} of producer {producer} is sent, and committed is {decided}"


def transaction_ends_in_time(
    name: str, open_ms: int, timeout_ms: int, check_ms: int, *, aborted: bool
) -> Broken | None:
    """A transaction that is open for longer than its time-out is aborted at the next check, and no other (rule 41)."""
    if open_ms > timeout_ms if aborted else open_ms <= timeout_ms + check_ms:
        return None
    what = "is aborted" if aborted else "stays open"
    return "transaction-ends-in-time", f"{name}: it {what} after {open_ms} ms, with a time-out of {timeout_ms} ms"


# --- groups ----------------------------------------------------------------------------------------------------------


def loaded_as_logged(what: str, has: object, logged: object) -> Broken | None:
    """A new coordinator knows what its log says, of what is pending too (rules 40 and 45)."""
    return None if has == logged else ("loaded-as-logged", f"{what}: it knows {has}, and its log has {logged}")


def commit_of_a_member(group: str, member: str, epoch: int, members: Mapping[str, int]) -> Broken | None:
    """A commit is of a member in its present epoch or generation; of a stranger while it has no member (44, 55)."""
    if members.get(member) == epoch or (not members and epoch == NONE):
        return None
    return "commit-of-a-member", f"{group}: {member!r} commits in {epoch}, and the members are {dict(members)}"


def one_member_a_partition(group: str, held: Mapping[str, Collection[object]]) -> Broken | None:
    """No log partition is held by two members of a group (rule 43)."""
    if len({each for name in held for each in held[name]}) == sum(map(len, held.values())):
        return None
    return "one-member-a-partition", f"{group}: {dict(held)}"


def member_lives_by_its_session(
    group: str, member: str, silent_us: int, session_us: int, *, given_up: bool
) -> Broken | None:
    """A member is given up once it was silent for its own session, though others are heard, and not before (43, 54)."""
    if given_up is (silent_us > session_us):
        return None
    what = "is given up" if given_up else "is kept"
    return "member-lives-by-its-session", f"{group}: {member} {what} after {silent_us} us of silence"


def offsets_live_with_members(group: str, members: int, idle_us: int, retention_us: int) -> Broken | None:
    """Offsets are forgotten once a group was without members for offsets.retention.minutes (rule 57)."""
    if not members and idle_us > retention_us:
        return None
    text = f"{group}: {members} members, and idle for {idle_us} us, when its offsets are forgotten"
    return "offsets-live-with-members", text


# --- what goes from a log --------------------------------------------------------------------------------------------


def cleaning_keeps(broker: NodeId, what: str, offset: int, *, is_kept: bool) -> Broken | None:
    """Cleaning keeps the newest committed record of each key, and the last batch of each producer (rules 31, 32)."""
    return None if is_kept else ("cleaning-keeps", f"broker {broker} has cleaned {what} at {offset} away")


def tombstone_stays(broker: NodeId, offset: int, age_us: int, retention_us: int) -> Broken | None:
    """A tombstone stays for delete.retention.ms, if it is the newest record of its key (rule 32)."""
    if age_us > retention_us:
        return None
    return "tombstone-stays", f"broker {broker} has cleaned the tombstone at {offset} away, {age_us} us old"


def retention_keeps_young(broker: NodeId, offset: int, age_us: int, retention_us: int) -> Broken | None:
    """Retention drops no record that is younger than retention.ms, nor one older with it in a segment (rule 47)."""
    if age_us > retention_us:
        return None
    return "retention-keeps-young", f"broker {broker} has dropped the record at {offset}, {age_us} us old"
