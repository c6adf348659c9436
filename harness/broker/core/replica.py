"""One replica of one partition: every transition of leader epoch, ISR, high watermark and truncation is in this file.

Theory of operation (rule N: docs/reference/replication-rules.md)

A replica holds a log and obeys what the controller decides about its partition (``apply``). Each decision has a
partition epoch; each change of leader also raises the leader epoch. In one leader epoch one replica leads and the
others follow:

    following --apply: this node leads, in a larger leader epoch--> leading --apply: another leads--> following ...

Leading. The leader appends what clients send, stamped with its leader epoch (rule 1), and remembers durably where its
epoch starts, even if nothing is ever written in it (rule 19). A follower's fetch at offset F under the right epoch
means "all below F is on my log" (rule 6). The high watermark is the smallest such end over the *maximal* ISR, never
moves back in one epoch, and is frozen below min.insync.replicas (rule 7). What lies below it is committed: acks=all
is answered, consumers may read.

ISR. The leader proposes members (AlterPartition), and the controller decides. Until its answer the leader waits for the
old members and for the new ones, which are the maximal ISR:

    ISR 0 1 2, leader 0 proposes 0 1:    it waits for 0 1 2 until the proposal is accepted
    ISR 0 1,   leader 0 proposes 0 1 2:  it waits for 0 1 2 from now on

So a leader that is cut off cannot shrink its way to an acknowledgement (rule 10). A follower may join once it has
reached the high watermark *and* the start of this leader epoch, because a new leader's own high watermark may lag
behind what was acknowledged (rule 11, KAFKA-7128).
There is one proposal at a time:

    committed --propose--> pending --accepted / newer decision of the controller--> committed
                              |---- ineligible member --> committed (as before)
                              |---- outdated epoch     --> pending, until the newer decision arrives

Following. The log of a follower is a prefix of its leader's, up to what is in flight. Where it is not, the follower
truncates first: at the end of the last common leader epoch (rule 17), or, before KIP-101, at its own high watermark,
which lags one fetch behind and therefore cuts off acknowledged records (rule 16). A follower's high watermark is the
leader's latest, bounded by its own log (rule 8). Nothing is acknowledged from it.

Falling back. A leader that learns of a newer epoch where it does not lead follows at once. Nothing else stops a leader:
one that is cut off from the controller keeps appending (rule 1), but its fetch sessions dry up, its high watermark
stops, and its proposals are refused by epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from harness.broker.core.commit_rule import CommitRule, commit_rule
from harness.broker.core.effects import Context
from harness.broker.core.follower import NEVER_US, CleanedFollower, Follower
from harness.broker.core.log import Log
from harness.broker.core.messages import AlterPartition, AlterPartitionResponse, EpochEnd, IsrMember, RecordBatch
from harness.broker.core.types import (
    ACKS_ALL,
    CONTROLLER,
    NO_ERROR,
    NO_NODE,
    NONE,
    ErrorCode,
    NodeId,
    Outside,
    PartitionState,
    TopicConfig,
    TopicPartition,
)
from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    HighWatermarkMoved,
    IsrChanged,
    RecordsAppended,
    ReplicaRecovered,
    SequenceRefused,
    Truncated,
)

#: Answers to a proposal that mean "you do not know the newest": the proposal stays pending until that arrives.
_OUTDATED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


#: The end of an epoch that the log knows nothing about.
UNDEFINED: Final = EpochEnd(NONE, NONE)


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a leader's append. Offsets are NONE with an error; those of a duplicate are the old ones.

    ``next_offset`` is exclusive: the high watermark that commits the batch.
    """

    error: ErrorCode
    base_offset: int = NONE
    next_offset: int = NONE


class Replica:
    """One replica of one partition; only this module writes to it, except for what ``followers[n]`` sent and cleaned.

    Offsets count records of the log partition from 0. ``high_watermark`` is exclusive: what is below it is committed.
    ``isr`` is the committed ISR, ``maximal_isr`` also has the members of the ``proposal`` under way (rule 10);
    ``min_isr`` is how many of them a write asks for (rules 3, 4), at most the number of replicas.
    ``epoch_start`` is the log end offset at which this node began to lead ``leader_epoch``, NONE while it follows;
    ``followers`` are those of the leader, empty while it follows. ``leader``, ``leader_epoch`` and ``partition_epoch``
    are the controller's newest, NONE before the first.
    """

    partition: TopicPartition
    log: Log
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    leading: bool
    min_isr: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    maximal_isr: tuple[NodeId, ...]
    followers: dict[NodeId, Follower]
    epoch_start: int
    high_watermark: int
    _context: Context
    _lag_us: Outside[int]
    _rule: Outside[CommitRule]
    _flush_messages: int
    _segment_us: Outside[int]
    _has_gaps: Outside[bool]
    proposal: AlterPartition | None
    _proposed_us: int

    def __init__(self, partition: TopicPartition, log: Log, context: Context) -> None:
        self.partition = partition
        self.log = log
        self._context = context
        self._lag_us = context.config.replica_lag_time_max_ms * 1000
        self._rule = commit_rule(context.config)
        self._flush_messages = 2**63 - 1
        self._segment_us = NONE
        self._has_gaps = False
        self.proposal = None
        self._proposed_us = 0
        self.leader = NO_NODE
        self.leader_epoch = NONE
        self.partition_epoch = NONE
        self.leading = False
        self.min_isr = 1
        self.replicas = ()
        self.isr = ()
        self.maximal_isr = ()
        self.followers = {}
        self.epoch_start = NONE
        if context.config.producers_after_restart == "last-batch":
            log.producers.keep_last_batches()
        self.high_watermark = max(min(log.checkpointed_high_watermark(), log.end_offset), log.start_offset)
        if context.observing:
            context.observe(
                ReplicaRecovered(
                    partition=str(partition), end_offset=log.end_offset, high_watermark=self.high_watermark
                )
            )

    # --- what the controller decided -----------------------------------------------------------------------------

    def apply(self, state: PartitionState, config: TopicConfig) -> bool:
        """Obey a committed state; returns False if it is not newer than what this replica has."""
        if state.partition_epoch <= self.partition_epoch:
            return False
        assert state.leader_epoch >= self.leader_epoch, "a newer decision of the controller names an older leader epoch"
        self.min_isr = min(config.min_insync_replicas, len(state.replicas))
        self._flush_messages = self._rule.flush_messages(config)
        self._segment_us = config.segment_ms * 1000 if config.compacted or config.expires else NONE
        self._has_gaps = config.compacted
        self.partition_epoch = state.partition_epoch
        self.replicas = state.replicas
        self.leader = state.leader
        self._commit_isr(state.isr, state.leader_epoch)
        new_epoch = state.leader_epoch > self.leader_epoch
        self.leader_epoch = state.leader_epoch
        if new_epoch and state.leader == self._context.node:
            self._lead()
        elif new_epoch:
            self._follow()
        if self.leading:
            self.advance_high_watermark()
        return True

    def resign(self) -> None:
        """The partition was deleted: neither lead nor follow any more."""
        self.leading = False
        self.leader = NO_NODE
        self.followers = {}
        self.proposal = None

    def _lead(self) -> None:
        assert self._context.node in self.isr, "elected without being in the ISR: every election puts its leader there"
        now_us, end = self._context.now_us, self.log.end_offset
        self._remember_epoch(end)
        self.epoch_start = end
        previous, self.followers = self._known_followers(), {}
        kind = CleanedFollower if self._context.config.tombstones_wait_for_replicas else Follower
        for node in self.replicas:
            if node == self._context.node:
                continue
            in_sync = node in self.isr
            follower = previous.get(node)
            if follower is None:
                follower = kind(node, now_us if in_sync else NEVER_US)
            else:
                follower.restart_clock(now_us, end, in_sync)
            self.followers[node] = follower
        self.leading = True
        if self._rule.opens_epoch:
            self._store(
                replace(
                    self.log.control_batch(), base_offset=end, leader_epoch=self.leader_epoch, stamped_us=self._stamp_us
                )
            )
        if self._context.observing:
            self._context.observe(
                BecameLeader(
                    partition=str(self.partition), leader_epoch=self.leader_epoch, end_offset=end, isr=self.isr
                )
            )

    def _remember_epoch(self, start_offset: int) -> None:
        self.log.start_epoch(self.leader_epoch, start_offset)

    def _known_followers(self) -> dict[NodeId, Follower]:
        """The followers whose progress still counts in the leader epoch that begins.

        Still leading means that an epoch was missed (rule 30): in it a follower may have dropped what it had here.
        """
        return self.followers if self.leading and self._context.config.missed_epoch == "kafka" else {}

    def _follow(self) -> None:
        self.leading = False
        self.followers = {}
        self.epoch_start = NONE
        if self._context.observing:
            self._context.observe(
                BecameFollower(partition=str(self.partition), leader=self.leader, leader_epoch=self.leader_epoch)
            )
        if self._context.config.truncation == "high-watermark" and self.leader != NONE:
            self.truncate_to(self.high_watermark)

    def _commit_isr(self, isr: tuple[NodeId, ...], leader_epoch: int) -> None:
        changed = isr != self.isr
        self.isr = self.maximal_isr = isr
        self.proposal = None
        if changed and self.leader == self._context.node:  # rare, and counted in every run
            epoch = self.partition_epoch
            self._context.observe(
                IsrChanged(partition=str(self.partition), isr=isr, leader_epoch=leader_epoch, partition_epoch=epoch)
            )

    # --- leading: append, follower progress, high watermark --------------------------------------------------------

    def append(self, batch: RecordBatch, acks: int) -> Appended:
        """Append as leader (rules 1, 3, 21). A duplicate is not appended and succeeds with its old offsets.

        Errors: NOT_LEADER_OR_FOLLOWER; NOT_ENOUGH_REPLICAS, for acks=all while the ISR is below min.insync.replicas;
        what :meth:`Producers.validate` finds. Nothing was appended then.
        """
        if not self.leading:
            return Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == ACKS_ALL and not self._rule.accepts(self):
            return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
        if batch.producer_id != NONE:
            error, duplicate = self._judge(batch)
            if error:
                self._report_refusal(batch, error)
                return Appended(error)
            if duplicate is not None:
                return Appended(NO_ERROR, duplicate.base_offset, duplicate.next_offset)
        base_offset = self.log.end_offset
        self._store(
            RecordBatch(
                batch.count,
                batch.size_bytes,
                batch.records,
                base_offset,
                self.leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                stamped_us=self._stamp_us,
                transactional=batch.transactional,
                marker=batch.marker,
            )
        )
        if len(self.maximal_isr) == 1:  # With other members the high watermark waits for their fetches.
            self.advance_high_watermark()
        return Appended(NO_ERROR, base_offset, base_offset + batch.count)

    def _report_refusal(self, batch: RecordBatch, error: ErrorCode) -> None:
        if self._context.observing and error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._context.observe(
                SequenceRefused(
                    partition=str(self.partition),
                    producer_id=batch.producer_id,
                    sequence=batch.base_sequence,
                    last_sequence=self.log.producers.last_sequence(batch.producer_id),
                )
            )

    def _judge(self, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        return self.log.producers.validate(batch)

    def record_fetch(self, node: NodeId, offset: int, broker_epoch: int) -> ErrorCode:
        """A follower's fetch that does not diverge (rule 6): it may move the high watermark and the ISR.

        A fetch of a replaced incarnation, or by a stranger, is refused as Kafka refuses it (KIP-903, KAFKA-15221).
        """
        follower = self.followers.get(node)
        if follower is None or self._is_replaced(node, broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        previous = follower.end_offset
        follower.fetched(self._context.now_us, offset, self.log.end_offset, broker_epoch)
        if node not in self.isr:
            self._consider_joining(follower)
        if previous != offset:
            self.advance_high_watermark()
        return NO_ERROR

    def advance_high_watermark(self) -> bool:
        """Rules 7, 27 and 28; returns whether it moved."""
        offset = self._rule.committed_end(self)
        if offset <= self.high_watermark:
            return False
        assert self.leading, "only a leader commits; a follower takes over the leader's high watermark (rule 8)"
        self.high_watermark = offset
        if self._context.observing:
            self._context.observe(HighWatermarkMoved(partition=str(self.partition), offset=offset))
        return True

    def stable_end(self) -> int:
        """The last stable offset: readers of committed records get no further (rule 35)."""
        stable_end = self.log.producers.transactions.stable_end(self.high_watermark)
        return max(stable_end, self.log.start_offset)  # What is open may have begun in what retention has dropped.

    def commits(self) -> ErrorCode:
        """The answer to a producer with acks=all once the high watermark has covered its records (rule 4)."""
        return self._rule.answer(self)

    # --- leading: ISR ----------------------------------------------------------------------------------------------

    def check_isr(self) -> None:
        """Propose the removal of followers that are not caught up (rule 10)."""
        if not self.leading:
            return
        end = self.log.end_offset
        if self.proposal is None:
            kept = tuple(n for n in self.isr if n not in self.followers or self._keeps_up(self.followers[n], end))
            if kept != self.isr:
                self._propose(kept)
        self.advance_high_watermark()  # A replica outside the ISR may no longer hold it back.

    def repeat_proposal(self) -> None:
        """Send a proposal again, unchanged: its answer is overdue, or was lost with the connection.

        Its members keep the broker epochs under which they qualified: an incarnation that came since may have lost its
        disk. Its correlation is new, so that only the answer to the last sending counts: after a late refusal of an
        earlier one the leader would stop waiting for a member that may still be accepted, and elected.
        """
        if self.proposal is not None and self.proposal.correlation != NONE:
            self._send(replace(self.proposal, broker_epoch=self._context.broker_epoch))

    def repeat_overdue_proposal(self) -> None:
        """Repeat a proposal that was not answered within replica.socket.timeout.ms."""
        if self._proposed_us <= self._context.now_us - self._context.config.replica_socket_timeout_ms * 1000:
            self.repeat_proposal()

    def on_proposal_answered(self, answer: AlterPartitionResponse) -> None:
        """Rule 10; a late answer to an earlier proposal changes nothing."""
        if self.proposal is None or self.proposal.correlation != answer.correlation:
            return
        state = answer.state
        if state is not None and state.partition_epoch > self.partition_epoch:
            assert state.leader_epoch == self.leader_epoch, (
                "a proposal was accepted in another leader epoch than its own"
            )
            self.partition_epoch = state.partition_epoch
            self._commit_isr(state.isr, state.leader_epoch)
            self.advance_high_watermark()
        elif answer.error == ErrorCode.INELIGIBLE_REPLICA:  # No copy of it can be accepted any more (rule 10).
            self.proposal = None
            self.maximal_isr = self.isr
        elif answer.error in _OUTDATED:
            self.proposal = replace(self.proposal, correlation=NONE)  # Not repeated, and no other answer fits.

    def _consider_joining(self, follower: Follower) -> None:
        if self.proposal is None and self._has_enough(follower) and self._may_join(follower):
            self._propose(tuple(n for n in self.replicas if n in self.isr or n == follower.node))

    def _has_enough(self, follower: Follower) -> bool:
        """Rule 11: a follower has reached the high watermark and the start of this leader epoch."""
        needed = self.epoch_start if self._context.config.isr_join_epoch_rule else 0
        return follower.end_offset >= max(needed, self.high_watermark)

    def _propose(self, isr: tuple[NodeId, ...]) -> None:
        context = self._context
        assert self.leading, "only a leader proposes"
        assert context.node in isr, "a leader stays in its own ISR"
        assert set(isr) <= set(self.replicas), "the ISR is of the replicas"
        self.maximal_isr = self.isr + tuple(n for n in isr if n not in self.isr)
        members = tuple(self._member(node) for node in isr)
        self._send(
            AlterPartition(
                NONE,
                context.node,
                context.broker_epoch,
                self.partition,
                self.leader_epoch,
                self.partition_epoch,
                members,
            )
        )

    def _send(self, proposal: AlterPartition) -> None:
        self.proposal = replace(proposal, correlation=self._context.correlation())
        self._proposed_us = self._context.now_us
        self._context.send(CONTROLLER, self.proposal)

    def _member(self, node: NodeId) -> IsrMember:
        """A member of a proposal, with the broker epoch under which it fetched last."""
        follower = self.followers.get(node)
        return IsrMember(node, self._context.broker_epoch if follower is None else follower.broker_epoch)

    def _may_join(self, follower: Follower) -> bool:
        """Its broker is neither fenced nor leaving (KIP-841), and the newest incarnation is what fetched (KIP-903)."""
        broker = self._context.image.brokers.get(follower.node)
        if broker is None or broker.fenced or broker.leaving:
            return False
        return not self._context.config.broker_epochs or follower.broker_epoch in (NONE, broker.broker_epoch)

    def _is_replaced(self, node: NodeId, broker_epoch: int) -> bool:
        """A fetch under ``broker_epoch`` comes from an incarnation that has a successor (KAFKA-15221)."""
        if broker_epoch == NONE or not self._context.config.broker_epochs:
            return False
        broker = self._context.image.brokers.get(node)
        return broker is not None and broker.broker_epoch > broker_epoch

    def about_to_join(self, follower: Follower, end: int) -> bool:
        """The follower is caught up with a log that ends at ``end``, and may join the ISR (rule 7)."""
        return self._keeps_up(follower, end) and self._may_join(follower)

    def _keeps_up(self, follower: Follower, end: int) -> bool:
        """Caught up with a log that ends at ``end`` (rule 9), and not too many records behind, as far as known (12)."""
        if follower.end_offset != NONE and end - follower.end_offset > self._context.config.replica_lag_max_messages:
            return False
        return follower.caught_up(self._context.now_us, end, self._lag_us)

    # --- following -------------------------------------------------------------------------------------------------

    def last_epoch(self) -> int:
        """The last leader epoch in the log, NONE without any."""
        epochs = self.log.epochs()
        return epochs[-1][0] if epochs else NONE

    def replicate(self, batches: tuple[RecordBatch, ...], leader_high_watermark: int) -> None:
        """Append what the leader sent; take over its high watermark as far as the own log reaches (rules 6 and 8)."""
        assert not self.leading, "a leader takes records from producers only (rule 1)"
        for batch in batches:
            if batch.base_offset != self.log.end_offset:
                if batch.next_offset <= self.log.end_offset:
                    continue
                if batch.base_offset < self.log.end_offset:  # Another history ended inside this batch (rule 18).
                    self.truncate_to(batch.base_offset)
                    if batch.base_offset != self.log.end_offset:  # A whole batch was dropped: fetch that offset again.
                        break
                elif not self._has_gaps or self.log.cleanable is None:
                    break
                else:  # The leader has cleaned what was in between (rule 33).
                    self.log.cleanable.skip_to(batch.base_offset)
            last_epoch = self.last_epoch()
            if batch.leader_epoch < last_epoch:  # Only before KIP-279, where logs may diverge; epochs still never fall.
                batch = replace(batch, leader_epoch=last_epoch)  # noqa: PLW2901
            self._store(batch)
        self._bound_high_watermark(leader_high_watermark)

    def truncate_to_epoch_end(self, end: EpochEnd) -> bool:
        """Rule 17; returns whether the logs now agree, else the end of an earlier epoch must be asked for."""
        if end.end_offset == NONE:
            self.truncate_to(self.high_watermark)
            return True
        if self._context.config.truncation == "kip-101":
            self.truncate_to(min(end.end_offset, self.log.end_offset))
            return True
        offset, agreed = truncation_offset(self.log.epochs(), self.log.end_offset, end)
        self.truncate_to(offset)
        return agreed

    def truncate_to(self, offset: int) -> None:
        """Drop everything from ``offset`` on; the high watermark, epochs and producer state follow."""
        assert not self.leading, "a leader's log only grows (rule 1)"
        before = self.log.end_offset
        self.log.truncate_to(offset)
        self._after_truncation(before)

    def restart_at(self, offset: int) -> None:
        """Drop everything: the leader's log starts at ``offset``, beyond this one's end (rule 18)."""
        assert not self.leading, "a leader's log only grows (rule 1)"
        before = self.log.end_offset
        self.log.reset_to(offset)
        self._after_truncation(before)
        self.high_watermark = offset

    def begin_at(self, offset: int) -> None:
        """Take over the start of the leader's log, as far as this one is committed (rule 47)."""
        log = self.log.cleanable
        if log is not None and offset > log.start_offset:
            log.drop_below(min(offset, self.high_watermark))

    def _after_truncation(self, before: int) -> None:
        end = self.log.end_offset
        if end == before:
            return
        self._bound_high_watermark(self.high_watermark)
        if self._context.observing:
            self._context.observe(
                Truncated(
                    partition=str(self.partition),
                    from_offset=before,
                    to_offset=end,
                    leader=self.leader,
                    leader_epoch=self.leader_epoch,
                )
            )

    def _bound_high_watermark(self, offset: int) -> None:
        bounded = max(min(offset, self.log.end_offset), self.log.start_offset)
        if bounded == self.high_watermark or offset < 0:
            return
        self.high_watermark = bounded
        if self._context.observing:
            self._context.observe(HighWatermarkMoved(partition=str(self.partition), offset=bounded))

    # --- both ------------------------------------------------------------------------------------------------------

    def _store(self, batch: RecordBatch) -> None:
        log = self.log
        if self._segment_us != NONE:
            self._roll(batch.stamped_us)
        log.append(batch)
        if log.end_offset - log.flushed_offset >= self._flush_messages:  # Rule 24, on leader and follower alike.
            log.flush()
        if self._context.observing:
            self._context.observe(
                RecordsAppended(
                    partition=str(self.partition),
                    base_offset=batch.base_offset,
                    count=batch.count,
                    leader_epoch=batch.leader_epoch,
                )
            )

    @property
    def _stamp_us(self) -> int:
        """The time stamp of what a leader appends now: only cleaners look at one."""
        return NONE if self._segment_us == NONE else self._context.now_us

    def _roll(self, stamped_us: int) -> None:
        """Begin a new segment before a batch that comes segment.ms after the first of the present one (rule 31)."""
        log = self.log.cleanable
        if log is not None:
            first_us = log.first_stamp_us()
            if NONE not in {first_us, stamped_us} and stamped_us - first_us > self._segment_us:
                log.roll()


# --- leader epochs: both sides keep (leader epoch, start offset) pairs, ascending in both (rule 17) -------------------


def end_of_epoch(epochs: Sequence[tuple[int, int]], epoch: int, end_offset: int) -> EpochEnd:
    """The largest known epoch not above ``epoch`` and its end (KIP-101); UNDEFINED above the last known or without any.

    With ``epochs`` (2, 0) and (5, 10), which are (leader epoch, start offset), and a log ``end_offset`` of 30:

        epoch 5 ends at 30        epochs 2 to 4: epoch 2 ends at 10
        epoch 6 is UNDEFINED      epoch 1 ends at 0, where the first known one starts
    """
    if epoch == NONE or not epochs or epoch > epochs[-1][0]:
        return UNDEFINED
    if epoch == epochs[-1][0]:
        return EpochEnd(epoch, end_offset)
    above = bisect_right(epochs, epoch, key=lambda pair: pair[0])
    largest = epochs[above - 1][0] if above else epoch
    return EpochEnd(largest, epochs[above][1])


def truncation_offset(epochs: Sequence[tuple[int, int]], end_offset: int, leader: EpochEnd) -> tuple[int, bool]:
    """The offset where a follower truncates by the ``leader``'s epoch end (KIP-279), and whether the logs then agree.

    They may not agree yet where the follower does not know the leader's epoch: it drops what is above and asks again.
    """
    own = end_of_epoch(epochs, leader.leader_epoch, end_offset)
    if own.leader_epoch == NONE:
        return min(leader.end_offset, end_offset), True
    if own.leader_epoch != leader.leader_epoch:
        return min(own.end_offset, end_offset), False
    return min(own.end_offset, leader.end_offset, end_offset), True
