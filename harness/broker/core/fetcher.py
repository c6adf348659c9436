"""The follower's side: one fetcher per leader, one fetch in flight for all partitions that this leader leads.

Each followed partition is in one step:

    AGREE --answers agree--> FETCH <--> FIND_END --> (FIND_START) --> FETCH,     any --fenced--> HALT

AGREE asks OffsetForLeaderEpoch until both logs agree (KIP-101 to KIP-320, rule 17); the other eras begin with FETCH.
FIND_END and FIND_START look for an offset to fetch from after OFFSET_OUT_OF_RANGE (rule 18). HALT waits for the
controller's next decision.
"""

from __future__ import annotations

from enum import IntEnum
from operator import attrgetter
from typing import Final

import msgspec

from harness.broker.core import messages
from harness.broker.core.effects import Context, Timer
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE, ErrorCode, NodeId, Outside, TopicPartition

_ASKS_FOR_EPOCHS: Final = ("kip-101", "kip-279", "kip-320")
_INTACT: Final = attrgetter("intact")
_SENDS_EPOCHS: Final = ("kip-320", "on-fetch")


class FollowState(IntEnum):
    """The next step of a followed partition."""

    AGREE = 0
    FETCH = 1
    FIND_END = 2
    FIND_START = 3
    HALT = 4


# Looked up once, as NO_ERROR is: most calls of `pump` ask for nothing else.
_FETCH: Final = FollowState.FETCH
_HALT: Final = FollowState.HALT


class Followed(msgspec.Struct, eq=False):
    """A partition in one leader epoch; ``request`` is its part of the last fetch, ``correlation`` its open question.

    The question was asked at ``asked_us``; before ``ready_us`` nothing is asked.
    """

    replica: Replica
    step: FollowState
    request: messages.FetchPartition | None = None
    correlation: int = NONE
    asked_us: int = 0
    ready_us: int = 0

    def go(self, step: FollowState, ready_us: int = 0) -> None:
        """Continue with ``step``, not before ``ready_us``; what is under way is not waited for."""
        self.step = step
        self.ready_us = ready_us
        self.request = None
        self.correlation = NONE


class Fetcher:
    """Everything that this broker follows at one leader."""

    _leader: NodeId
    _context: Context
    _followed: dict[TopicPartition, Followed]
    _in_flight: int
    _sent_us: int
    _armed_us: int
    _timer: Outside[Timer]
    _timeout_us: Outside[int]
    _sends_leader_epoch: Outside[bool]
    _sends_last_epoch: Outside[bool]
    _sends_cleaned: Outside[bool]

    def __init__(self, leader: NodeId, context: Context) -> None:
        self._leader = leader
        self._context = context
        self._followed = {}
        self._in_flight = NONE
        self._sent_us = 0
        self._armed_us = 2**63
        self._timer = Timer("fetch", leader)
        config = context.config
        self._timeout_us = config.replica_socket_timeout_ms * 1000
        self._sends_leader_epoch = config.truncation in _SENDS_EPOCHS
        self._sends_last_epoch = config.truncation == "on-fetch"
        self._sends_cleaned = config.tombstones_wait_for_replicas

    def follow(self, replica: Replica) -> None:
        """Begin, also in a new leader epoch: truncation is found out again in each (rule 19)."""
        asks = self._context.config.truncation in _ASKS_FOR_EPOCHS and replica.last_epoch() != NONE
        self._followed[replica.partition] = Followed(replica, FollowState.AGREE if asks else FollowState.FETCH)

    def unfollow(self, partition: TopicPartition) -> None:
        """End; an answer that is under way is ignored, and no longer waited for once nothing is followed here."""
        self._followed.pop(partition, None)
        if not self._followed:
            self._in_flight = NONE

    # --- answers ---------------------------------------------------------------------------------------------------

    def on_fetched(self, message: messages.FetchResponse) -> None:
        """Take the answer to the fetch in flight, and send what is due then; any other is stale."""
        if message.correlation != self._in_flight:
            return
        self._in_flight = NONE
        for answer in message.partitions:
            followed = self._followed.get(answer.partition)
            if followed is not None and followed.request is not None:
                self._take(followed, answer)
        self.pump()

    def _take(self, followed: Followed, answer: messages.FetchedPartition) -> None:
        if answer.error:
            self._on_error(followed, answer.error)
        elif answer.diverging is not None:
            self._on_diverging(followed, answer.diverging, answer.high_watermark)
        elif not answer.batches or all(map(_INTACT, answer.batches)):
            if answer.batches:
                followed.request = None
            followed.replica.replicate(answer.batches, answer.high_watermark)
            if answer.log_start_offset > followed.replica.log.start_offset:
                followed.replica.begin_at(answer.log_start_offset)
        else:  # As Kafka: nothing of such an answer is appended.
            self._on_error(followed, ErrorCode.CORRUPT_MESSAGE)

    def _on_diverging(self, followed: Followed, end: messages.EpochEnd, leader_high_watermark: int) -> None:  # noqa: ARG002
        """KIP-595; the leader's high watermark is taken over with the next answer, when the logs agree (rule 8)."""
        followed.request = None
        followed.replica.truncate_to_epoch_end(end)

    def _on_error(self, followed: Followed, error: ErrorCode) -> None:
        backoff_us = self._backoff_us()
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            followed.go(FollowState.FIND_END)
        elif error == ErrorCode.FENCED_LEADER_EPOCH:
            followed.go(FollowState.HALT)
        else:
            followed.go(followed.step, backoff_us)

    def on_epoch_end(self, message: messages.OffsetForLeaderEpochResponse) -> None:
        """Rule 17, eras KIP-101 to KIP-320."""
        followed = self._asked(message.partition, message.correlation)
        if followed is None:
            return
        if message.error:
            self._on_error(followed, message.error)
        else:
            agreed = followed.replica.truncate_to_epoch_end(message.end)
            followed.go(FollowState.FETCH if agreed or followed.replica.last_epoch() == NONE else FollowState.AGREE)
        self.pump()

    def on_offset(self, message: messages.ListOffsetsResponse) -> None:
        """Rule 18: shorten the log to the leader's end, or drop it where the leader's starts beyond it."""
        followed = self._asked(message.partition, message.correlation)
        if followed is None:
            return
        end = followed.replica.log.end_offset
        if message.error:
            self._on_error(followed, message.error)
        elif followed.step == FollowState.FIND_START:
            if message.offset > end:
                followed.replica.restart_at(message.offset)
            followed.go(FollowState.FETCH, self._backoff_us())
        elif message.offset < end:
            followed.replica.truncate_to(message.offset)
            followed.go(FollowState.FETCH)
        else:
            followed.go(FollowState.FIND_START)
        self.pump()

    def _asked(self, partition: TopicPartition, correlation: int) -> Followed | None:
        followed = self._followed.get(partition)
        return followed if followed is not None and followed.correlation == correlation else None

    # --- requests --------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what is due: one fetch for all that fetch, one question for each partition that asks."""
        now_us = self._context.now_us
        wanted = []
        wake_us = (now_us if self._in_flight == NONE else self._sent_us) + self._timeout_us
        for partition, followed in self._followed.items():
            if followed.ready_us > now_us:
                wake_us = min(wake_us, followed.ready_us)
            elif followed.step == _FETCH:
                if followed.request is None and self._in_flight == NONE:
                    followed.request = self._request(followed.replica)
                if followed.request is not None:
                    wanted.append(followed.request)
            elif followed.step != _HALT:
                if followed.correlation == NONE:
                    self._ask(partition, followed)
                wake_us = min(wake_us, followed.asked_us + self._timeout_us)
        if wanted and self._in_flight == NONE:
            self._fetch(tuple(wanted))
        if wake_us < self._armed_us and self._followed:
            self._armed_us = wake_us
            self._context.arm(wake_us, self._timer)

    def on_timer(self) -> None:
        """Send again what was not answered within replica.socket.timeout.ms, and what had to wait."""
        self._armed_us = 2**63
        late_us = self._context.now_us - self._timeout_us
        if self._sent_us <= late_us:
            self._in_flight = NONE
        for followed in self._followed.values():
            if followed.asked_us <= late_us:
                followed.correlation = NONE
        self.pump()

    def on_disconnect(self) -> None:
        """The connection to the leader broke: nothing under way will be answered; try again after the backoff."""
        backoff_us = self._backoff_us()
        self._in_flight = NONE
        for followed in self._followed.values():
            if followed.step != FollowState.HALT:
                followed.go(followed.step, backoff_us)
        self.pump()

    def _backoff_us(self) -> int:
        return self._context.now_us + self._context.config.replica_fetch_backoff_ms * 1000

    def _request(self, replica: Replica) -> messages.FetchPartition:
        wanted = (
            replica.partition,
            replica.log.end_offset,
            replica.leader_epoch if self._sends_leader_epoch else NONE,
            replica.last_epoch() if self._sends_last_epoch else NONE,
            self._context.config.replica_fetch_max_bytes,
        )
        cleanable = replica.log.cleanable if self._sends_cleaned else None
        if cleanable is None:
            return messages.FetchPartition(*wanted)
        return messages.CleanedFetchPartition(*wanted, cleanable.cleaned_to)

    def _fetch(self, wanted: tuple[messages.FetchPartition, ...]) -> None:
        context = self._context
        self._in_flight = context.correlation()
        self._sent_us = context.now_us
        context.send(
            self._leader,
            messages.Fetch(
                self._in_flight,
                context.node,
                context.config.replica_fetch_wait_max_ms,
                wanted,
                broker_epoch=context.broker_epoch,
            ),
        )

    def _ask(self, partition: TopicPartition, followed: Followed) -> None:
        context, replica = self._context, followed.replica
        followed.correlation = context.correlation()
        followed.asked_us = context.now_us
        epoch = replica.leader_epoch if self._sends_leader_epoch else NONE
        message: messages.OffsetForLeaderEpoch | messages.ListOffsets
        if followed.step == FollowState.AGREE:
            message = messages.OffsetForLeaderEpoch(
                followed.correlation, partition, replica.last_epoch(), epoch, context.node
            )
        else:
            timestamp = messages.LATEST if followed.step == FollowState.FIND_END else messages.EARLIEST
            message = messages.ListOffsets(followed.correlation, partition, timestamp, context.node, epoch)
        context.send(self._leader, message)
