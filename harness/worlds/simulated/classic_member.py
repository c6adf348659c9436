"""Membership by Kafka's classic protocol: members join, one of them leads and says who reads what. Sans-IO.

As Kafka's Java client with its default, the range assignor, whose rebalances are eager: a member that learns of one
gives up all that it reads in its next poll, commits first where its library does so by itself, and joins again.

    JOIN ── JoinGroup, until all others have joined ──▶ SYNC ── SyncGroup, until the leader has said ──▶ STAY
      ▲                                                   │                                               │
      └── a rebalance begins, or the generation is not the group's any more, or the coordinator has no such member ──┘

A member whose generation is over has lost its place: its client refuses to commit, until it has joined again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, Final

import msgspec
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.types import NONE, ErrorCode, TopicPartition
from harness.worlds.simulated.coordinator_requests import Repeated
from harness.worlds.simulated.group_member import Identity, MemberModel
from harness.worlds.simulated.network_client import MICROSECONDS, NOT_COORDINATING

#: Heartbeats in a session, as Kafka advises.
BEATS_A_SESSION: Final = 3
#: JoinGroup waits for the others, who may take their time; Kafka's clients add as much (JOIN_GROUP_TIMEOUT_LAPSE).
JOIN_LAPSE_US: Final = 5_000 * MICROSECONDS
RANGE: Final = "range"
#: Errors of a member that was given up: the coordinator does not know its name, or its generation.
_LOST: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})

_encode = msgspec.msgpack.encode


class _Step(Enum):
    """The next thing to ask for; see the picture above."""

    JOIN = "join"
    SYNC = "sync"
    STAY = "stay"


class ClassicMemberModel(MemberModel):
    """A member in a generation; the coordinator names it."""

    def __init__(self, *common: Any) -> None:
        super().__init__(*common)
        self._name = ""
        self._step = _Step.JOIN
        self._generation = NONE
        self._rejoins = False
        self._beat_of = NONE
        self._entry = Repeated()
        self._dealt: dict[str, tuple[TopicPartition, ...]] = {}
        self._assigned: tuple[TopicPartition, ...] | None = None
        self._told: Identity | None = None

    @property
    @override
    def identity(self) -> Identity | None:
        stays = self._step is not _Step.SYNC and self._generation != NONE
        return (self._name, self._generation) if stays else None

    @property
    @override
    def asks_as(self) -> Identity:
        """No member: the question has no generation."""
        return "", NONE

    @property
    @override
    def told(self) -> Identity | None:
        """As it was when it last joined, also where it has lost its generation since: the coordinator refuses it."""
        return self._told

    @override
    def take_over(self, now_us: int, owned: Collection[TopicPartition]) -> tuple[TopicPartition, ...] | None:
        if self._rejoins:
            self._rejoins, self._step, self._assigned = False, _Step.JOIN, None
            return () if owned else None
        assigned, self._assigned = self._assigned, None
        return None if assigned is None or set(assigned) == set(owned) else assigned

    @override
    def pursue(self, now_us: int, owned: Collection[TopicPartition]) -> None:
        stays = self._step is _Step.STAY
        if stays and self._generation == NONE:
            return
        coordinator = self._requests.due(now_us, self._beats if stays else self._entry)
        if coordinator is None:
            return
        if stays:
            self._beat_of = self._generation
            self._requests.ask(now_us, coordinator, self._request(messages.GroupHeartbeat), self._beats)
        elif self._step is _Step.SYNC:
            self._sync(now_us, coordinator)
        else:
            self._join(now_us, coordinator)

    def _join(self, now_us: int, coordinator: int) -> None:
        self._generation = NONE
        offers = (messages.Offer(RANGE, _encode(self._topics), self._topics),)
        join = self._request(
            messages.GroupJoin,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._session_ms,
            offers=offers,
            client_id=self._client,
        )
        patience_us = self._session_ms * MICROSECONDS + JOIN_LAPSE_US
        self._requests.ask(now_us, coordinator, join, self._entry, patience_us=patience_us)

    def _sync(self, now_us: int, coordinator: int) -> None:
        assignments = tuple((name, _encode(partitions)) for name, partitions in self._dealt.items())
        sync = self._request(messages.GroupSync, assignments=assignments)
        self._requests.ask(now_us, coordinator, sync, self._entry)

    @override
    def on_answer(self, now_us: int, answer: messages.GroupAnswer) -> None:
        if isinstance(answer, messages.GroupJoinResponse):
            self._on_joined(now_us, answer)
        elif isinstance(answer, messages.GroupSyncResponse):
            self._on_synced(now_us, answer)
        else:
            self._on_beat(now_us, answer)

    def _on_joined(self, now_us: int, answer: messages.GroupJoinResponse) -> None:
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._name = answer.member
        elif answer.error:
            self._enter_again(now_us, answer.error)
        else:
            self._name, self._generation, self._step = answer.member, answer.generation, _Step.SYNC
            topics = {name: msgspec.msgpack.decode(said, type=tuple[str, ...]) for name, said in answer.members}
            self._dealt = ranges_of(topics, self._requests.net.partitions_of)

    def _on_synced(self, now_us: int, answer: messages.GroupSyncResponse) -> None:
        if answer.error in NOT_COORDINATING:
            self._requests.repeat(now_us, self._entry)
        elif answer.error:
            self._enter_again(now_us, answer.error)
        else:
            self._step = _Step.STAY
            self._told = self._name, self._generation
            # The leader gives nothing to a member that it did not know.
            self._assigned = _decoded(answer.assignment) if answer.assignment else ()
            self._await_beat(now_us, BEATS_A_SESSION)

    def _enter_again(self, now_us: int, error: ErrorCode) -> None:
        self._step, self._generation = _Step.JOIN, NONE
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._name = ""
        self._requests.repeat(now_us, self._entry)

    def _on_beat(self, now_us: int, answer: messages.GroupAnswer) -> None:
        if answer.error in NOT_COORDINATING:
            self._requests.repeat(now_us, self._beats)
            return
        self._await_beat(now_us, BEATS_A_SESSION)
        if self._step is not _Step.STAY or self._beat_of != self._generation:
            return  # It has joined again meanwhile.
        if answer.error in _LOST:
            self._lose(answer.error)
        elif answer.error:
            self._rejoins = True

    def _lose(self, error: ErrorCode) -> None:
        self._generation, self._rejoins = NONE, True
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._name = ""

    @override
    def commits_again(self, error: ErrorCode) -> bool:
        """Never; a commit that is refused tells the member, too, that it was given up."""
        if error in _LOST and self._step is _Step.STAY:
            self._lose(error)
        return False

    @override
    def leaving(self) -> messages.GroupRequest | None:
        return self._request(messages.GroupLeave) if self._name else None

    def _request(self, kind: Callable[..., messages.GroupRequest], **fields: Any) -> messages.GroupRequest:
        requests = self._requests
        return kind(requests.net.next_correlation(), requests.group, self._name, self._generation, **fields)


def ranges_of(
    topics: Mapping[str, Collection[str]], partitions_of: Callable[[str], int]
) -> dict[str, tuple[TopicPartition, ...]]:
    """The log partitions of each member, by the ``topics`` that it reads: of each topic a range, by Kafka's assignor.

    The members in the order of their names get equally many of a topic, the first of them one more where it does not
    come out even.
    """
    dealt: dict[str, list[TopicPartition]] = {name: [] for name in topics}
    for topic in sorted({topic for read in topics.values() for topic in read}):
        readers, first = sorted(name for name, read in topics.items() if topic in read), 0
        each, more = divmod(partitions_of(topic), len(readers))
        for number, name in enumerate(readers):
            end = first + each + (number < more)
            dealt[name] += [TopicPartition(topic, partition) for partition in range(first, end)]
            first = end
    return {name: tuple(partitions) for name, partitions in dealt.items()}


def _decoded(assignment: bytes) -> tuple[TopicPartition, ...]:
    return msgspec.msgpack.decode(assignment, type=tuple[TopicPartition, ...])
