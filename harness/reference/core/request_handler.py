"""How a leader answers produces and the fetches of followers and consumers.

A request that must wait is parked (delayed.py). ``wake`` ends the waiting when something happened to a replica,
``abandon`` when its leader epoch ended; each parked request is answered exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.observations import Acknowledged
from harness.reference.core.context import Context
from harness.reference.core.messages import (
    Fetch,
    FetchedPartition,
    FetchPartition,
    FetchResponse,
    Produce,
    ProduceResponse,
)
from harness.reference.core.partition import Replica
from harness.reference.core.purgatory import (
    PARKED_MAX,
    Deadlines,
    ParkedFetch,
    ParkedFetches,
    ParkedProduce,
    ParkedProduces,
)
from harness.reference.core.queries import divergence, refusal, unhosted
from harness.reference.core.types import ACKS_ALL, NONE, ErrorCode, NodeId, TopicPartition


class Serving:
    """The leader's side of all replicas of one broker."""

    __slots__ = ("_context", "_deadlines", "_fetches", "_produces", "_replicas")

    def __init__(self, context: Context, replicas: Mapping[TopicPartition, Replica]) -> None:
        self._context = context
        self._replicas = replicas
        self._deadlines = Deadlines(context)
        self._produces = ParkedProduces()
        self._fetches = ParkedFetches()

    # --- produce ---------------------------------------------------------------------------------------------------

    def produce(self, now_us: int, client: NodeId, message: Produce) -> None:
        """Rules 1-5. With acks=0 only a refusal is answered: the edge closes the connection instead (``Produce``)."""
        if message.acks not in (0, 1, ACKS_ALL):
            self._refuse(client, message, ErrorCode.INVALID_REQUIRED_ACKS)
            return
        replica = self._replicas.get(message.partition)
        if replica is None:
            self._refuse(client, message, unhosted(self._context, message.partition))
            return
        error, base_offset, next_offset = replica.append(now_us, message.batch, message.acks)
        if error:
            self._refuse(client, message, error)
            return
        if message.acks != 0:
            parked = ParkedProduce(client, message, base_offset, next_offset)
            self._answer_or_park(now_us + message.timeout_ms * 1000, parked, replica)
        self.wake(replica)

    def _answer_or_park(self, deadline_us: int, produce: ParkedProduce, replica: Replica) -> None:
        if produce.acks == 1:
            self._acknowledge(produce, replica, ErrorCode.NONE)
        elif replica.high_watermark >= produce.next_offset:
            self._acknowledge(produce, replica, replica.commits())
        elif self._deadlines.live >= PARKED_MAX:
            self._acknowledge(produce, replica, ErrorCode.REQUEST_TIMED_OUT)
        else:
            self._produces.add(produce)
            self._deadlines.add(deadline_us, produce)

    def _acknowledge(self, produce: ParkedProduce, replica: Replica, error: ErrorCode) -> None:
        offset = NONE if error else produce.base_offset
        context = self._context
        context.send(
            produce.client,
            ProduceResponse(produce.correlation, produce.partition, error, offset, replica.log.start_offset),
        )
        if context.observing and not error:
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

    def _refuse(self, client: NodeId, message: Produce, error: ErrorCode) -> None:
        self._context.send(client, ProduceResponse(message.correlation, message.partition, error))

    # --- fetch -----------------------------------------------------------------------------------------------------

    def fetch(self, now_us: int, client: NodeId, message: Fetch) -> None:
        """Answer now if there is something to say, else park. A follower's new fetch ends the one it has parked."""
        from_follower = message.replica_id >= 0
        if from_follower:
            earlier = self._fetches.of_follower(message.replica_id)
            if earlier is not None:
                self._end(earlier)
        answers, urgent = self._first_look(now_us, message)
        if not urgent and message.max_wait_ms > 0 and self._deadlines.live < PARKED_MAX:
            if not (from_follower and self._tells_follower(message)):
                parked = ParkedFetch(client, message)
                self._fetches.add(parked)
                self._deadlines.add(now_us + message.max_wait_ms * 1000, parked)
                return
            answers = self._looks(message)
        self._respond(client, message, answers)

    def _first_look(self, now_us: int, message: Fetch) -> tuple[list[FetchedPartition], bool]:
        """The answers as they stand before the fetch counts (rule 6), and whether they should go out at once."""
        answers = []
        urgent = not message.partitions
        size = 0
        for wanted in message.partitions:
            replica = self._replicas.get(wanted.partition)
            answer = self._look(wanted, message.replica_id, replica)
            if replica is not None and message.replica_id >= 0 and not answer.error and answer.diverging is None:
                answer = self._count(now_us, message, wanted, replica, answer)
            answers.append(answer)
            if answer.error or answer.diverging is not None:
                urgent = True
            for batch in answer.batches:
                size += batch.size_bytes
        return answers, urgent or size >= message.min_bytes

    def _count(
        self, now_us: int, message: Fetch, wanted: FetchPartition, replica: Replica, answer: FetchedPartition
    ) -> FetchedPartition:
        """Let a follower's fetch count; the answer stays as it was read before, unless the fetch is refused."""
        high_watermark = replica.high_watermark
        error = replica.record_fetch(now_us, message.replica_id, wanted.fetch_offset, message.broker_epoch)
        if error:
            return FetchedPartition(wanted.partition, error)
        if replica.high_watermark != high_watermark:
            self.wake(replica)
        return answer

    def _look(self, wanted: FetchPartition, replica_id: NodeId, replica: Replica | None) -> FetchedPartition:
        """What one partition answers now; looking changes nothing."""
        at = wanted.partition
        if replica is None:
            return FetchedPartition(at, unhosted(self._context, at))
        error = refusal(self._context, replica, wanted.current_leader_epoch)
        if error:
            return FetchedPartition(at, error)
        log = replica.log
        diverging = divergence(replica, wanted)
        if diverging is not None:
            if isinstance(diverging, ErrorCode):
                return FetchedPartition(at, diverging, replica.high_watermark, log.start_offset)
            return FetchedPartition(at, ErrorCode.NONE, replica.high_watermark, log.start_offset, diverging)
        limit = log.end_offset if replica_id >= 0 else replica.high_watermark
        offset = wanted.fetch_offset
        batches = tuple(log.read(offset, limit, wanted.max_bytes)) if offset < limit else ()
        return FetchedPartition(at, ErrorCode.NONE, replica.high_watermark, log.start_offset, None, batches)

    def _end(self, parked: ParkedFetch) -> None:
        """Answer a parked fetch with what there is now."""
        self._deadlines.finish(parked)
        self._respond(parked.client, parked.message, self._looks(parked.message))

    def _looks(self, message: Fetch) -> list[FetchedPartition]:
        return [self._look(w, message.replica_id, self._replicas.get(w.partition)) for w in message.partitions]

    def _respond(self, client: NodeId, message: Fetch, answers: list[FetchedPartition]) -> None:
        if message.replica_id >= 0:
            for answer in answers:
                replica = self._replicas.get(answer.partition)
                follower = None if replica is None else replica.followers.get(message.replica_id)
                if follower is not None:
                    follower.sent_high_watermark = answer.high_watermark
        self._context.send(client, FetchResponse(message.correlation, tuple(answers)))

    def _tells_follower(self, message: Fetch) -> bool:
        """Would an answer without records tell the follower of a newer high watermark, and is that reason enough?"""
        if not self._context.config.immediate_high_watermark:
            return False
        for wanted in message.partitions:
            replica = self._replicas[wanted.partition]
            if replica.followers[message.replica_id].sent_high_watermark < replica.high_watermark:
                return True
        return False

    def _news(self, parked: ParkedFetch, replica: Replica) -> bool:
        """Is there at this replica what the parked fetch waits for?"""
        message = parked.message
        from_follower = message.replica_id >= 0
        limit = replica.log.end_offset if from_follower else replica.high_watermark
        if parked.wanted[replica.at].fetch_offset < limit and (
            message.min_bytes <= 1 or self._size(message) >= message.min_bytes
        ):
            return True
        return from_follower and self._tells_follower(message)

    def _size(self, message: Fetch) -> int:
        return sum(batch.size_bytes for look in self._looks(message) for batch in look.batches)

    # --- the end of waiting ----------------------------------------------------------------------------------------

    def wake(self, replica: Replica) -> None:
        """Something was appended, or the high watermark moved: answer whoever waited for that."""
        at = replica.at
        for produce in self._produces.reached(at, replica.high_watermark):
            self._deadlines.finish(produce)
            self._acknowledge(produce, replica, replica.commits())
        for node in replica.followers:
            parked = self._fetches.of_follower(node)
            if parked is not None and at in parked.wanted and self._news(parked, replica):
                self._end(parked)
        for parked in self._fetches.of_consumers(at):
            if self._news(parked, replica):
                self._end(parked)

    def abandon(self, replica: Replica) -> None:
        """The leader epoch ended: look at fetches afresh; where this broker leads no more, produces fail (rule 5)."""
        for parked in self._fetches.all_of(replica.at):
            self._end(parked)
        if replica.leading:
            return
        for produce in self._produces.all_of(replica.at):
            self._deadlines.finish(produce)
            self._acknowledge(produce, replica, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def expire(self, now_us: int) -> None:
        """Answer every parked request whose time is over: a fetch as it stands, a produce as timed out (rule 5)."""
        for parked in self._deadlines.expired(now_us):
            if isinstance(parked, ParkedFetch):
                self._end(parked)
            else:
                self._deadlines.finish(parked)
                self._acknowledge(parked, self._replicas[parked.partition], ErrorCode.REQUEST_TIMED_OUT)
