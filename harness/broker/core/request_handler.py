"""The leader's side of produces, fetches and questions about offsets, and the requests that wait for an answer.

A request that must wait is *parked*: a produce with acks=all for the high watermark (rules 2 and 5), a fetch for data.
Each parked request is answered exactly once, by one of these:

    wake       something happened to its replica
    abandon    the leader epoch of its replica ended
    expire     its time is over

All deadlines of a broker share one heap and one armed timer. Nearly every request is answered long before its deadline,
so an answered one stays in its heap until its turn comes, or until most of the heap is answered.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.effects import Context, Timer
from harness.broker.core.read_replica import named_by_leader
from harness.broker.core.replica import UNDEFINED, Replica, end_of_epoch
from harness.broker.core.types import ACKS_ALL, NO_ERROR, NO_NODE, NONE, ErrorCode, NodeId, TopicPartition
from harness.ground.observations import Acknowledged, NotEnoughReplicas

#: Requests parked at one broker at a time. More would mean clients that wait for thousands of answers each: beyond it
#: a produce is answered as timed out and a fetch with what there is.
PARKED_MAX = 10_000

DEADLINES = Timer("deadlines")
_LACKING = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class ParkedProduce(msgspec.Struct, eq=False):
    """An acks=all produce, appended up to ``next_offset``. Its records are in the log, so they are not kept here."""

    client: NodeId
    correlation: int
    partition: TopicPartition
    acks: int
    base_offset: int
    next_offset: int
    done: bool = False


class ParkedFetch(msgspec.Struct, eq=False):
    """A fetch that found too little, and its partitions."""

    client: NodeId
    message: messages.Fetch
    wanted: dict[TopicPartition, messages.FetchPartition]
    done: bool = False


Parked = ParkedProduce | ParkedFetch
P = TypeVar("P", ParkedProduce, ParkedFetch, Parked)


class ParkedHeap(Generic[P]):
    """Parked requests in the order of the deadline or offset that ends their waiting; finished ones are swept out."""

    _heap: list[tuple[int, int, P]]
    _sequence: int
    _swept: int

    def __init__(self) -> None:
        self._heap = []
        self._sequence = 0
        self._swept = 32

    def add(self, key: int, parked: P) -> None:
        """Wait until ``key`` is reached."""
        heap = self._heap
        self._sequence += 1
        heapq.heappush(heap, (key, self._sequence, parked))
        if len(heap) > 2 * self._swept:
            heap[:] = [entry for entry in heap if not entry[2].done]
            heapq.heapify(heap)
            self._swept = max(len(heap), 32)

    def reached(self, limit: int) -> Iterator[P]:
        """Take out the unfinished requests with a key of ``limit`` or less, smallest key first."""
        heap = self._heap
        while heap and (heap[0][0] <= limit or heap[0][2].done):
            parked = heapq.heappop(heap)[2]
            if not parked.done:
                yield parked

    def waiting(self) -> list[P]:
        """All unfinished requests, in no particular order."""
        return [parked for _, _, parked in self._heap if not parked.done]

    def smallest(self) -> int | None:
        """The smallest key that a request waits for; None if no request waits."""
        return self._heap[0][0] if self._heap else None


class Deadlines:
    """Times at which parked requests end at the latest. ``live`` is the number of those not answered yet."""

    _context: Context
    _waiting: ParkedHeap[Parked]
    _armed_us: int
    live: int

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting = ParkedHeap()
        self._armed_us = 2**63
        self.live = 0

    def add(self, after_ms: int, parked: Parked) -> None:
        """Expire ``parked`` in ``after_ms`` unless it is finished by then."""
        at_us = self._context.now_us + after_ms * 1000
        self.live += 1
        self._waiting.add(at_us, parked)
        self._arm(at_us)

    def finish(self, parked: Parked) -> None:
        """The request was answered."""
        assert not parked.done, "a parked request is answered once"
        parked.done = True
        self.live -= 1

    def expired(self) -> Iterator[Parked]:
        """Every request whose time is over; the taker finishes it. Arms the next timer at the end.

        A reminder that came after an earlier one took its work has none, and arms no other: they would only grow in
        number.
        """
        if self._context.now_us < self._armed_us:
            return
        self._armed_us = 2**63
        yield from self._waiting.reached(self._context.now_us)
        next_us = self._waiting.smallest()
        if next_us is not None:
            self._arm(next_us)

    def _arm(self, at_us: int) -> None:
        if at_us < self._armed_us:
            self._armed_us = at_us
            self._context.arm(at_us, DEADLINES)


class ParkedFetches:
    """Parked fetches: one per follower, any number per partition for consumers."""

    _followers: dict[NodeId, ParkedFetch]
    _consumers: dict[TopicPartition, list[ParkedFetch]]

    def __init__(self) -> None:
        self._followers = {}
        self._consumers = {}

    def add(self, parked: ParkedFetch) -> None:
        """Wait for something to happen at one of its partitions."""
        if parked.message.replica_id >= 0:
            self._followers[parked.message.replica_id] = parked
            return
        for partition in parked.wanted:
            waiting = self._consumers.setdefault(partition, [])
            waiting[:] = [other for other in waiting if not other.done]
            waiting.append(parked)

    def of_follower(self, node: NodeId) -> ParkedFetch | None:
        """The fetch of a follower that waits here."""
        parked = self._followers.get(node)
        return None if parked is None or parked.done else parked

    def of_consumers(self, partition: TopicPartition) -> list[ParkedFetch]:
        """The fetches of consumers that wait at a partition."""
        waiting = self._consumers.get(partition)
        return [parked for parked in waiting if not parked.done] if waiting else []

    def all_of(self, partition: TopicPartition) -> list[ParkedFetch]:
        """Every fetch that waits at a partition, alone or among others."""
        followers = [parked for parked in self._followers.values() if not parked.done and partition in parked.wanted]
        return followers + self.of_consumers(partition)


class RequestHandler:
    """The leader's side of all replicas of one broker."""

    _context: Context
    _replicas: Mapping[TopicPartition, Replica]
    _deadlines: Deadlines
    _produces: dict[TopicPartition, ParkedHeap[ParkedProduce]]
    _fetches: ParkedFetches

    def __init__(self, context: Context, replicas: Mapping[TopicPartition, Replica]) -> None:
        self._context = context
        self._replicas = replicas
        self._deadlines = Deadlines(context)
        self._produces = {}
        self._fetches = ParkedFetches()

    # --- produce ---------------------------------------------------------------------------------------------------

    def produce(self, message: messages.Produce) -> None:
        """Rules 1-5. With acks=0 only a refusal is answered: the edge closes the connection instead (``Produce``)."""
        self.produce_for(self._context.sender, message)

    def produce_for(self, client: NodeId, message: messages.Produce) -> None:
        """The same for the node that waits for the answer, which is this broker for what it keeps in a log itself."""
        if message.acks not in (0, 1, ACKS_ALL):
            self._refuse(client, message, ErrorCode.INVALID_REQUIRED_ACKS)
            return
        replica = self._replicas.get(message.partition)
        if replica is None:
            self._refuse(client, message, unhosted(self._context, message.partition))
            return
        appended = replica.append(message.batch, message.acks)
        if appended.error:
            self._refuse(client, message, appended.error)
            return
        if message.acks != 0:
            produce = ParkedProduce(
                client,
                message.correlation,
                message.partition,
                message.acks,
                appended.base_offset,
                appended.next_offset,
            )
            self._answer_or_park(produce, replica, message.timeout_ms)
        self.wake(replica)

    def _answer_or_park(self, produce: ParkedProduce, replica: Replica, timeout_ms: int) -> None:
        if produce.acks == 1:
            self._acknowledge(produce, replica, NO_ERROR)
        elif replica.high_watermark >= produce.next_offset:
            self._acknowledge(produce, replica, replica.commits())
        elif self._deadlines.live >= PARKED_MAX:
            self._acknowledge(produce, replica, ErrorCode.REQUEST_TIMED_OUT)
        else:
            self._produces.setdefault(replica.partition, ParkedHeap()).add(produce.next_offset, produce)
            self._deadlines.add(timeout_ms, produce)

    def _acknowledge(self, produce: ParkedProduce, replica: Replica, error: ErrorCode) -> None:
        offset = NONE if error else produce.base_offset
        context = self._context
        context.send(
            produce.client,
            messages.ProduceResponse(produce.correlation, produce.partition, error, offset, replica.log.start_offset),
        )
        if error:
            self._report_refusal(produce.partition, error)
        elif context.observing:
            context.observe(
                Acknowledged(
                    partition=str(produce.partition),
                    base_offset=offset,
                    next_offset=produce.next_offset,
                    acks=produce.acks,
                    leader_epoch=replica.leader_epoch,
                    isr=replica.isr,
                )
            )

    def _refuse(self, client: NodeId, message: messages.Produce, error: ErrorCode) -> None:
        self._context.send(client, messages.ProduceResponse(message.correlation, message.partition, error))
        self._report_refusal(message.partition, error)

    def _report_refusal(self, partition: TopicPartition, error: ErrorCode) -> None:
        """Report want of in-sync replicas, which is counted in every run: whether it is observed or not."""
        if error in _LACKING:
            appended = error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            self._context.observe(NotEnoughReplicas(partition=str(partition), appended=appended))

    # --- fetch -----------------------------------------------------------------------------------------------------

    def fetch(self, message: messages.Fetch) -> None:
        """Answer now if there is something to send, else park. A follower's new fetch ends the one it has parked."""
        from_follower = message.replica_id >= 0
        if from_follower:
            earlier = self._fetches.of_follower(message.replica_id)
            if earlier is not None:
                self._end(earlier)
        answers, urgent = self._first_look(message)
        if not urgent and message.max_wait_ms > 0 and self._deadlines.live < PARKED_MAX:
            if not (from_follower and self._brings_high_watermark(message)):
                parked = ParkedFetch(self._context.sender, message, {w.partition: w for w in message.partitions})
                self._fetches.add(parked)
                self._deadlines.add(message.max_wait_ms, parked)
                return
            answers = self._looks(message)
        self._respond(self._context.sender, message, answers)

    def _first_look(self, message: messages.Fetch) -> tuple[list[messages.FetchedPartition], bool]:
        """Read the answers before the fetch counts (rule 6). True if they should be sent at once."""
        answers = []
        urgent = not message.partitions
        size = 0
        for wanted in message.partitions:
            replica = self._replicas.get(wanted.partition)
            answer = self._look(wanted, message, replica)
            if replica is not None and message.replica_id >= 0 and self._counts(answer):
                answer = self._count(message, wanted, replica, answer)
            answers.append(answer)
            if answer.error or answer.diverging is not None or answer.read_replica != NONE:
                urgent = True
            for batch in answer.batches:
                size += batch.size_bytes
        return answers, urgent or size >= message.min_bytes

    def _counts(self, answer: messages.FetchedPartition) -> bool:
        return not answer.error and answer.diverging is None

    def _count(
        self,
        message: messages.Fetch,
        wanted: messages.FetchPartition,
        replica: Replica,
        answer: messages.FetchedPartition,
    ) -> messages.FetchedPartition:
        """Let a follower's fetch count; the answer stays as it was read before, unless the fetch is refused."""
        high_watermark = replica.high_watermark
        error = replica.record_fetch(message.replica_id, wanted.fetch_offset, message.broker_epoch)
        if error:
            return messages.FetchedPartition(wanted.partition, error)
        if replica.high_watermark != high_watermark:
            self.wake(replica)
        return answer

    def _look(
        self, wanted: messages.FetchPartition, message: messages.Fetch, replica: Replica | None
    ) -> messages.FetchedPartition:
        """The answer of one partition now; looking changes nothing."""
        partition, context = wanted.partition, self._context
        if replica is None:
            return messages.FetchedPartition(partition, unhosted(context, partition))
        by_consumer = message.replica_id < 0 and context.config.follower_fetching
        if not replica.leading or wanted.current_leader_epoch != replica.leader_epoch:
            # A follower may serve a consumer (rule 22).
            refused = outdated if by_consumer and replica.leader != NONE else refusal
            error = refused(context, replica, wanted.current_leader_epoch)
            if error:
                return messages.FetchedPartition(partition, error)
        log = replica.log
        diverging = divergence(replica, wanted)
        if diverging is not None:
            if isinstance(diverging, ErrorCode):
                return messages.FetchedPartition(partition, diverging, replica.high_watermark, log.start_offset)
            return messages.FetchedPartition(partition, NO_ERROR, replica.high_watermark, log.start_offset, diverging)
        limit = readable_end(replica, message)
        offset = wanted.fetch_offset
        near = (
            named_by_leader(replica, offset, message, context.node, context.image.brokers) if by_consumer else NO_NODE
        )
        if near != NONE:
            return messages.FetchedPartition(
                partition, NO_ERROR, replica.high_watermark, log.start_offset, read_replica=near
            )
        batches = tuple(log.read(offset, limit, wanted.max_bytes)) if offset < limit else ()
        answer = messages.FetchedPartition(partition, NO_ERROR, replica.high_watermark, log.start_offset, None, batches)
        if batches and message.read_committed:
            aborted = log.producers.transactions.aborted_between(offset, batches[-1].next_offset)
            answer = replace(answer, aborted=aborted)
        return answer

    def _end(self, parked: ParkedFetch) -> None:
        """Answer a parked fetch with the records that are readable now."""
        self._deadlines.finish(parked)
        self._respond(parked.client, parked.message, self._looks(parked.message))

    def _looks(self, message: messages.Fetch) -> list[messages.FetchedPartition]:
        return [self._look(w, message, self._replicas.get(w.partition)) for w in message.partitions]

    def _respond(self, client: NodeId, message: messages.Fetch, answers: list[messages.FetchedPartition]) -> None:
        if message.replica_id >= 0 and self._context.config.immediate_high_watermark:
            for answer in answers:
                replica = self._replicas.get(answer.partition)
                follower = None if replica is None else replica.followers.get(message.replica_id)
                if follower is not None:
                    follower.sent_high_watermark = answer.high_watermark
        self._context.send(client, messages.FetchResponse(message.correlation, tuple(answers)))

    def _brings_high_watermark(self, message: messages.Fetch) -> bool:
        """Would an empty answer bring the follower a newer high watermark, and is it sent for that alone?"""
        if not self._context.config.immediate_high_watermark:
            return False
        for wanted in message.partitions:
            replica = self._replicas[wanted.partition]
            if replica.followers[message.replica_id].sent_high_watermark < replica.high_watermark:
                return True
        return False

    def _ends_waiting(self, parked: ParkedFetch, replica: Replica) -> bool:
        """Is there at this replica what the parked fetch waits for?"""
        message = parked.message
        from_follower = message.replica_id >= 0
        limit = readable_end(replica, message)
        if parked.wanted[replica.partition].fetch_offset < limit and (
            message.min_bytes <= 1 or self._size(message) >= message.min_bytes
        ):
            return True
        return from_follower and self._brings_high_watermark(message)

    def _size(self, message: messages.Fetch) -> int:
        return sum(batch.size_bytes for look in self._looks(message) for batch in look.batches)

    # --- questions that change nothing -----------------------------------------------------------------------------

    def list_offsets(self, message: messages.ListOffsets) -> None:
        """LATEST is the high watermark for a consumer, the log end offset for a follower; EARLIEST is the log start.

        For a reader of committed records it is the last stable offset. A new leader's high watermark may lag behind
        what consumers saw, so LATEST waits for the start of its epoch (KIP-207).
        """
        replica, error = self._asked(message.partition, message.current_leader_epoch)
        offset = epoch = NONE
        if replica is not None and not error:
            error, offset = _offset_of(replica, message)
            epoch = NONE if error else replica.leader_epoch
        self._context.answer(messages.ListOffsetsResponse(message.correlation, message.partition, error, offset, epoch))

    def epoch_end(self, message: messages.OffsetForLeaderEpoch) -> None:
        """Answer where an epoch ends in the leader's log (rule 17)."""
        replica, error = self._asked(message.partition, message.current_leader_epoch)
        end = UNDEFINED
        if replica is not None and not error:
            end = end_of_epoch(replica.log.epochs(), message.leader_epoch, replica.log.end_offset)
        self._context.answer(messages.OffsetForLeaderEpochResponse(message.correlation, message.partition, error, end))

    def log_end(self, message: messages.LogEnd) -> None:
        """Answer with the end of the own log (rules 27, 28), once it has heard that no replica leads in that epoch.

        From then on it takes nothing from an earlier leader, so the answer holds until the next leader epoch.
        """
        replica = self._replicas.get(message.partition)
        if replica is None or (replica.leader, replica.leader_epoch) != (NONE, message.leader_epoch):
            return
        context = self._context
        context.answer(
            messages.LogEndResponse(
                context.node,
                context.broker_epoch,
                message.partition,
                message.leader_epoch,
                replica.last_epoch(),
                replica.log.end_offset,
            )
        )

    def _asked(self, partition: TopicPartition, current_leader_epoch: int) -> tuple[Replica | None, ErrorCode]:
        """The replica that a question is about, and the error that it is answered with, if any."""
        replica = self._replicas.get(partition)
        if replica is None:
            return None, unhosted(self._context, partition)
        return replica, refusal(self._context, replica, current_leader_epoch)

    # --- the end of waiting ----------------------------------------------------------------------------------------

    def wake(self, replica: Replica) -> None:
        """Something was appended, or the high watermark moved: answer the requests that waited for that."""
        partition = replica.partition
        produces = self._produces.get(partition)
        if produces is not None:
            for produce in produces.reached(replica.high_watermark):
                self._deadlines.finish(produce)
                self._acknowledge(produce, replica, replica.commits())
        for node in replica.followers:
            parked = self._fetches.of_follower(node)
            if parked is not None and partition in parked.wanted and self._ends_waiting(parked, replica):
                self._end(parked)
        for parked in self._fetches.of_consumers(partition):
            if self._ends_waiting(parked, replica):
                self._end(parked)

    def abandon(self, replica: Replica) -> None:
        """The leader epoch ended: answer its fetches; where this broker no longer leads, produces fail (rule 5)."""
        for parked in self._fetches.all_of(replica.partition):
            self._end(parked)
        if replica.leading:
            return
        produces = self._produces.pop(replica.partition, None)
        for produce in produces.waiting() if produces is not None else ():
            self._deadlines.finish(produce)
            self._acknowledge(produce, replica, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def expire(self) -> None:
        """Answer parked requests whose time is over: a fetch with what there is, a produce as timed out (rule 5)."""
        for parked in self._deadlines.expired():
            if isinstance(parked, ParkedFetch):
                self._end(parked)
            else:
                self._deadlines.finish(parked)
                self._acknowledge(parked, self._replicas[parked.partition], ErrorCode.REQUEST_TIMED_OUT)


# --- what a log answers: refusals, divergence, offsets ---------------------------------------------------------------


def unhosted(context: Context, partition: TopicPartition) -> ErrorCode:
    """The error of a broker without this replica."""
    if context.image.partition(partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition in context.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def refusal(context: Context, replica: Replica, current_leader_epoch: int) -> ErrorCode:
    """The error of a request under ``current_leader_epoch`` at a replica; NONE if it is answered (rules 6 and 17)."""
    if not replica.leading:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return outdated(context, replica, current_leader_epoch)


def outdated(context: Context, replica: Replica, current_leader_epoch: int) -> ErrorCode:
    """The error of a request or replica that has missed an epoch; NONE if neither has."""
    if current_leader_epoch in (NONE, replica.leader_epoch) or not context.config.fetch_fencing:
        return NO_ERROR
    if current_leader_epoch < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def readable_end(replica: Replica, message: messages.Fetch) -> int:
    """The end of what a fetch gets: all for a follower, the committed records for a consumer, or the stable ones."""
    if message.replica_id >= 0:
        return replica.log.end_offset
    return replica.stable_end() if message.read_committed else replica.high_watermark


def divergence(replica: Replica, wanted: messages.FetchPartition) -> messages.EpochEnd | ErrorCode | None:
    """The end where the follower's log departs from the leader's (KIP-595), None without one; an error out of range."""
    offset, epoch = wanted.fetch_offset, wanted.last_fetched_epoch
    end = replica.log.end_offset
    if epoch == replica.leader_epoch != NONE:
        if offset > end:
            return messages.EpochEnd(epoch, end)
    elif epoch != NONE:
        common = end_of_epoch(replica.log.epochs(), epoch, end)
        if common.leader_epoch == NONE or offset < replica.log.start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if common.leader_epoch < epoch or common.end_offset < offset:
            return common
    return None if replica.log.start_offset <= offset <= end else ErrorCode.OFFSET_OUT_OF_RANGE


def _offset_of(replica: Replica, message: messages.ListOffsets) -> tuple[ErrorCode, int]:
    log, high_watermark = replica.log, replica.high_watermark
    if message.timestamp == messages.EARLIEST:
        return NO_ERROR, log.start_offset
    if message.timestamp != messages.LATEST:  # Batches are opaque here: their times are not known.
        return ErrorCode.INVALID_REQUEST, NONE
    if message.replica_id >= 0:
        return NO_ERROR, log.end_offset
    if high_watermark < replica.epoch_start:
        return ErrorCode.OFFSET_NOT_AVAILABLE, NONE
    return NO_ERROR, replica.stable_end() if message.read_committed else high_watermark
