"""A model of the Kafka consumer that reads by assignment. Sans-IO: calls and messages in, effects out.

It fetches from leaders by long poll, one fetch per broker at a time, and keeps a position per log partition. A position
that the log does not have (OFFSET_OUT_OF_RANGE) is reset to the start (``auto.offset.reset=earliest``). Fetches carry
the known leader epoch (KIP-320), so a leader of another epoch refuses them. With ``follower.fetching`` each consumer is
in the rack of one broker, and reads from the follower there that a leader names until that one fails (KIP-392; the
lease of five minutes is longer than any run). A position that another member has read to, with the leader epoch of the
record before it, is validated before the first fetch (OffsetForLeaderEpoch): where the leader's log diverges before it,
reading goes on there. A position of its own is not validated again when the leader changes: a log that was truncated
and has grown past it goes unnoticed, as it does for clients that do not validate. A reader of committed records passes
over the transactions that leaders name as aborted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.read_replica import rack_of
from harness.broker.core.types import NO_ERROR, NO_NODE, NONE, ErrorCode, NodeId, TopicPartition
from harness.worlds.simulated.network_client import (
    MICROSECONDS,
    ClientEffect,
    ClientModel,
    Completed,
    Request,
)
from workloads import EventType, Fetched, IsolationLevel, Offsets, PollOutcome, Settings

#: max.poll.records and fetch.max.wait.ms, Kafka's defaults.
MAX_POLL_RECORDS: Final = 500
FETCH_MAX_WAIT_MS: Final = 500
#: Longest time of end_offsets for its answers; default.api.timeout.ms is 60 s, far more than the detection times of a
#: simulated run.
END_OFFSETS_LIMIT_US: Final = 10_000 * MICROSECONDS
NO_ANSWER: Final = "KafkaTimeoutError"
#: The error of a poll where a batch's checksum does not fit its records (check.crcs=true, Kafka's default).
CORRUPT: Final = "CorruptRecordError"


class Assigned:
    """One assigned log partition. ``position`` is None while it has to be asked for.

    ``unproved`` says that the leader's log may not have the record before the position.
    ``read_replica`` is the follower that the leader has named to read from, NONE for the leader itself.
    """

    __slots__ = ("_epochs", "asking", "name", "partition", "position", "read_replica", "ready_us", "unproved")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.name = str(partition)
        self.position: int | None = None
        self.asking = self.unproved = False
        self._epochs = [(NONE, NONE)]
        self.read_replica = NONE
        self.ready_us = 0

    def start_at(self, position: int | None, epoch: int = NONE, *, unproved: bool = False) -> None:
        """Go on at ``position``, after a record of this leader epoch; NONE where that is not known."""
        self.position, self._epochs, self.unproved = position, [(NONE, epoch)], unproved and epoch != NONE

    def pass_by(self, batch: messages.RecordBatch) -> None:
        """Go on after this batch."""
        self.position = batch.next_offset
        if self._epochs[-1][1] != batch.leader_epoch:
            self._epochs.append((batch.base_offset, batch.leader_epoch))

    def epoch_before(self, offset: int) -> int:
        """The leader epoch of the record before this offset, which was read; NONE where it is not known."""
        return next((epoch for first, epoch in reversed(self._epochs) if first < offset), NONE)


class EndQuery:
    """One call of end_offsets: what is known and what is still asked."""

    __slots__ = ("asked", "deadline_us", "done", "missing", "offsets", "ready_us")

    def __init__(self, partitions: Sequence[TopicPartition], deadline_us: int, done: Any) -> None:
        self.missing = dict.fromkeys(partitions)
        self.asked: dict[TopicPartition, None] = {}
        self.offsets: dict[str, int] = {}
        self.deadline_us = deadline_us
        self.ready_us = 0
        self.done = done


class _Aborted:
    """Tells which batches of an answer belong to aborted transactions, asked in the order of the log (KIP-98)."""

    __slots__ = ("_coming", "_open")

    def __init__(self, aborted: Sequence[messages.AbortedTransaction]) -> None:
        self._coming = deque(sorted(aborted, key=lambda each: each.first_offset)) if aborted else None
        self._open: set[int] = set()

    def __call__(self, batch: messages.RecordBatch) -> bool:
        if self._coming is None:
            return False
        while self._coming and self._coming[0].first_offset <= batch.base_offset:
            self._open.add(self._coming.popleft().producer_id)
        if batch.marker is not None:
            self._open.discard(batch.producer_id)
        return batch.transactional and batch.producer_id in self._open


class FetchPurpose(NamedTuple):
    """Purpose of a fetch under way: the positions that it was sent with."""

    broker: int
    positions: tuple[tuple[Assigned, int], ...]


class ConsumerModel(ClientModel):
    """One consumer instance."""

    def __init__(
        self,
        brokers: Sequence[int],
        first: int,
        topics: Sequence[str],
        settings: Settings,
        isolation: IsolationLevel = "read_uncommitted",
    ) -> None:
        super().__init__(brokers, first, topics, settings)
        self._read_committed = isolation == "read_committed"
        self._reset = messages.EARLIEST
        self._wait_ms = min(FETCH_MAX_WAIT_MS, settings.request_timeout_ms // 2)
        self._beside = brokers[first % len(brokers)] if settings.follower_fetching else NONE
        self._assigned: dict[TopicPartition, Assigned] = {}
        self._fetching: dict[int, FetchPurpose] = {}
        self._buffer: deque[Fetched] = deque()
        self._damaged = False
        self._poll: tuple[Any, int] | None = None
        self._queries: list[EndQuery] = []

    # --- calls -------------------------------------------------------------------------------------------------------

    def assign(self, partitions: Sequence[TopicPartition], *, from_start: bool) -> None:
        """Read these from now on; a partition that was not read before starts at its start anyway."""
        positions = {} if from_start else self._assigned
        self._assigned = {partition: positions.get(partition) or Assigned(partition) for partition in partitions}
        names = {str(partition) for partition in self._assigned} if not from_start else set()
        self._buffer = deque(record for record in self._buffer if record.partition in names)

    def poll(self, now_us: int, max_wait_ms: int, done: Any) -> list[ClientEffect]:
        """``Completed(done, PollOutcome)`` follows once there are records, or after ``max_wait_ms`` without."""
        self._poll = (done, now_us + max_wait_ms * MICROSECONDS)
        if not self._buffer:
            self._net.wake_at(self._poll[1])
        return self._advance(now_us)

    def end_offsets(self, now_us: int, partitions: Sequence[TopicPartition], done: Any) -> list[ClientEffect]:
        """``Completed(done, Offsets)`` follows once every leader answered, or after the limit."""
        self._queries.append(EndQuery(partitions, now_us + END_OFFSETS_LIMIT_US, done))
        self._net.want_metadata()
        self._net.wake_at(now_us + END_OFFSETS_LIMIT_US)
        return self._advance(now_us)

    @override
    def close(self, why: str) -> list[ClientEffect]:
        effects: list[ClientEffect] = []
        if self._poll is not None:
            effects.append(Completed(self._poll[0], PollOutcome(EventType.INFO, (), why)))
        effects += [Completed(query.done, Offsets(query.offsets, why)) for query in self._queries]
        self._poll = None
        self._queries.clear()
        self._assigned.clear()
        return effects

    # --- inputs ------------------------------------------------------------------------------------------------------

    def on_message(self, now_us: int, sender: int, message: messages.Message) -> list[ClientEffect]:
        """An answer arrived."""
        del sender
        if type(message) is messages.FetchResponse:
            request = self._net.answered(message.correlation)
            if request is not None:
                self._fetched(now_us, request.purpose, message)
        elif type(message) is messages.MetadataResponse:
            self._net.on_metadata(now_us, message)
        elif type(message) is messages.ListOffsetsResponse:
            request = self._net.answered(message.correlation)
            if request is not None:
                self._on_offset(now_us, request.purpose, message)
        elif type(message) is messages.OffsetForLeaderEpochResponse:
            request = self._net.answered(message.correlation)
            if request is not None:
                self._on_end_of_epoch(now_us, request.purpose, message)
        return self._advance(now_us)

    def _lost(self, now_us: int, requests: list[Request]) -> None:
        for request in requests:
            purpose = request.purpose
            if isinstance(purpose, FetchPurpose):
                self._fetching.pop(purpose.broker, None)
                for assigned, _ in purpose.positions:
                    assigned.read_replica = NONE
            else:
                self._ask_again(now_us, purpose)

    # --- what to do next ---------------------------------------------------------------------------------------------

    def _advance(self, now_us: int) -> list[ClientEffect]:
        if self._poll is not None:
            self._answer_poll(now_us)
        if self._poll is not None:
            self._fetch(now_us)
        if self._queries:
            self._pursue_queries(now_us)
        self._net.pursue_metadata(now_us)
        return self._net.take_effects()

    def _answer_poll(self, now_us: int) -> None:
        if self._poll is None:
            return
        done, deadline_us = self._poll
        if not self._buffer and self._damaged:
            self._damaged, self._poll = False, None
            self._net.effects.append(Completed(done, PollOutcome(EventType.INFO, (), CORRUPT)))
            return
        if not self._buffer and now_us < deadline_us:
            self._net.wake_at(deadline_us)
            return
        if len(self._buffer) <= MAX_POLL_RECORDS:
            records = tuple(self._buffer)
            self._buffer.clear()
        else:
            records = tuple([self._buffer.popleft() for _ in range(MAX_POLL_RECORDS)])
        self._poll = None
        self._hand_over(done, records)

    def _hand_over(self, done: Any, records: tuple[Fetched, ...]) -> None:
        self._net.effects.append(Completed(done, PollOutcome(EventType.OK, records)))

    def _fetch(self, now_us: int) -> None:
        """One fetch to every broker that an assigned partition is read from and that has none under way."""
        by_broker: dict[int, list[tuple[Assigned, int, int]]] = {}
        for assigned in self._assigned.values():
            leader = self._net.leader(assigned.partition)
            if leader is None:
                continue
            broker = leader[0] if assigned.read_replica == NONE else assigned.read_replica
            if broker in self._fetching:
                continue
            if assigned.ready_us > now_us:
                self._net.wake_at(assigned.ready_us)
            elif assigned.position is None:
                self._ask_position(now_us, assigned, leader)
            elif assigned.unproved:
                self._ask_end_of_epoch(now_us, assigned, leader)
            else:
                by_broker.setdefault(broker, []).append((assigned, assigned.position, leader[1]))
        for broker, wanted in by_broker.items():
            if self._net.ready(now_us, broker) is not None:
                self._send_fetch(now_us, broker, wanted)

    def _send_fetch(self, now_us: int, broker: int, wanted: list[tuple[Assigned, int, int]]) -> None:
        partitions = tuple(
            messages.FetchPartition(assigned.partition, position, epoch) for assigned, position, epoch in wanted
        )
        purpose = FetchPurpose(broker, tuple((assigned, position) for assigned, position, _ in wanted))
        self._fetching[broker] = purpose
        rack = "" if self._beside == NONE else rack_of(NodeId(self._beside), self._net.known_brokers)
        fetch = messages.Fetch(
            self._net.next_correlation(),
            NO_NODE,
            self._wait_ms,
            partitions,
            rack=rack,
            read_committed=self._read_committed,
        )
        self._net.send(now_us, broker, fetch, purpose)

    def _ask_position(self, now_us: int, assigned: Assigned, leader: tuple[int, int]) -> None:
        if not assigned.asking and self._net.ready(now_us, leader[0]) is not None:
            assigned.asking = True
            self._list_offsets(now_us, assigned.partition, leader, self._reset, assigned)

    def _ask_end_of_epoch(self, now_us: int, assigned: Assigned, leader: tuple[int, int]) -> None:
        if not assigned.asking and self._net.ready(now_us, leader[0]) is not None:
            assigned.asking = True
            epoch = assigned.epoch_before(assigned.position or 0)
            ask = messages.OffsetForLeaderEpoch(self._net.next_correlation(), assigned.partition, epoch, leader[1])
            self._net.send(now_us, leader[0], ask, assigned)

    def _list_offsets(
        self, now_us: int, partition: TopicPartition, leader: tuple[int, int], timestamp: int, purpose: Any
    ) -> None:
        ask = messages.ListOffsets(
            self._net.next_correlation(), partition, timestamp, NO_NODE, leader[1], self._read_committed
        )
        self._net.send(now_us, leader[0], ask, purpose)

    # --- answers to fetches ------------------------------------------------------------------------------------------

    def _fetched(self, now_us: int, purpose: FetchPurpose, answer: messages.FetchResponse) -> None:
        if self._fetching.get(purpose.broker) is purpose:
            del self._fetching[purpose.broker]
        for (assigned, position), part in zip(purpose.positions, answer.partitions, strict=False):
            if self._assigned.get(assigned.partition) is not assigned or assigned.position != position:
                continue  # Assigned again, or read from another leader meanwhile.
            if part.error != NO_ERROR and assigned.read_replica == purpose.broker:
                assigned.read_replica = NONE  # The leader knows better, also whether there is such an offset.
                assigned.ready_us = now_us + self._backoff_us
                self._net.want_metadata()
            elif part.error == NO_ERROR:
                self._take(assigned, part)
                if self._damaged:
                    assigned.ready_us = now_us + self._backoff_us
            elif part.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                assigned.start_at(None)
            else:
                self._net.want_metadata()
                assigned.ready_us = now_us + self._backoff_us

    def _take(self, assigned: Assigned, part: messages.FetchedPartition) -> None:
        if part.read_replica != NONE:
            assigned.read_replica = part.read_replica
        skipped = _Aborted(part.aborted)
        for batch in part.batches:
            if not batch.intact:  # A reader cannot get past it, and finds it again with every poll.
                self._damaged = True
                break
            if skipped(batch):
                assigned.pass_by(batch)
                continue
            for offset, (key, payload) in batch.placed():
                if assigned.position is not None and offset >= assigned.position:
                    self._buffer.append(Fetched(assigned.name, offset, key, payload))
            assigned.pass_by(batch)

    # --- answers about offsets ---------------------------------------------------------------------------------------

    def _on_offset(self, now_us: int, purpose: Any, answer: messages.ListOffsetsResponse) -> None:
        if answer.error != NO_ERROR:
            self._net.want_metadata()
            self._ask_again(now_us, purpose)
        elif isinstance(purpose, Assigned):
            purpose.asking = False
            purpose.start_at(answer.offset, answer.leader_epoch)
        else:
            query, partition = purpose
            query.missing.pop(partition, None)
            query.offsets[str(partition)] = answer.offset

    def _on_end_of_epoch(self, now_us: int, assigned: Assigned, answer: messages.OffsetForLeaderEpochResponse) -> None:
        """Go on at the position where the leader's log has what is before it, else where the logs diverge (KIP-320)."""
        if answer.error != NO_ERROR:
            self._net.want_metadata()
            self._ask_again(now_us, assigned)
            return
        assigned.asking = assigned.unproved = False
        end, position = answer.end, assigned.position or 0
        if end.end_offset == NONE:
            assigned.start_at(None)
        elif end.end_offset < position or end.leader_epoch < assigned.epoch_before(position):
            assigned.start_at(end.end_offset, end.leader_epoch)

    def _ask_again(self, now_us: int, purpose: Any) -> None:
        if isinstance(purpose, Assigned):
            purpose.asking = False
            purpose.ready_us = now_us + self._backoff_us
        else:
            query, partition = purpose
            query.asked.pop(partition, None)
            query.ready_us = now_us + self._backoff_us

    def _pursue_queries(self, now_us: int) -> None:
        for query in self._queries:
            if query.missing and now_us < query.deadline_us:
                self._net.wake_at(query.deadline_us)
                self._pursue(now_us, query)
            else:
                error = NO_ANSWER if query.missing else None
                self._net.effects.append(Completed(query.done, Offsets(query.offsets, error)))
        self._queries = [query for query in self._queries if query.missing and now_us < query.deadline_us]

    def _pursue(self, now_us: int, query: EndQuery) -> None:
        if now_us < query.ready_us:
            self._net.wake_at(query.ready_us)
            return
        for partition in query.missing:
            leader = self._net.leader(partition)
            if leader is not None and partition not in query.asked and self._net.ready(now_us, leader[0]) is not None:
                query.asked[partition] = None
                self._list_offsets(now_us, partition, leader, messages.LATEST, (query, partition))
