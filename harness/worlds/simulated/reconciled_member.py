"""Membership by the protocol of KIP-848, by heartbeats alone: the coordinator says what each member reads. Sans-IO.

What it was assigned it takes over in a poll, as Kafka's Java client does: what is gone is dropped from its buffer, and
given up with the next heartbeat. A member that was given up learns of it from a heartbeat; it joins again in its next
poll, so whatever it commits before that has its old epoch, and is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.messages import JOINS, LEAVES
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.worlds.simulated.group_member import Identity, MemberModel
from harness.worlds.simulated.network_client import NOT_COORDINATING

#: Heartbeats in a session: Kafka's defaults are 5 s and 45 s.
BEATS_A_SESSION: Final = 9


class ReconciledMemberModel(MemberModel):
    """A member whose epoch is the coordinator's word; it names itself."""

    def __init__(self, *common: Any) -> None:
        super().__init__(*common)
        self._name = self._client
        self._epoch = JOINS
        self._given_up = False
        self._next: tuple[TopicPartition, ...] | None = None

    @property
    @override
    def identity(self) -> Identity | None:
        return None if self._epoch == JOINS else self.asks_as

    @property
    @override
    def asks_as(self) -> Identity:
        return self._name, self._epoch

    @property
    @override
    def told(self) -> Identity | None:
        return self.identity

    @override
    def take_over(self, now_us: int, owned: Collection[TopicPartition]) -> tuple[TopicPartition, ...] | None:
        assigned: tuple[TopicPartition, ...] | None = () if self._given_up else self._next
        self._next = None
        if self._given_up:
            self._given_up, self._epoch = False, JOINS
        if assigned is None or set(assigned) == set(owned):
            return None
        self._beats.ready_us = now_us
        return assigned

    @override
    def pursue(self, now_us: int, owned: Collection[TopicPartition]) -> None:
        coordinator = None if self._given_up else self._requests.due(now_us, self._beats)
        if coordinator is not None:
            self._requests.ask(now_us, coordinator, self._heartbeat(self._epoch, owned), self._beats)

    @override
    def on_answer(self, now_us: int, answer: messages.GroupAnswer) -> None:
        assert isinstance(answer, messages.ConsumerGroupHeartbeatResponse)  # noqa: S101 - it asks nothing else
        if answer.error in NOT_COORDINATING:
            self._requests.repeat(now_us, self._beats)
        elif answer.error:
            self._given_up = True
        else:
            self._epoch, self._next = answer.member_epoch, answer.assigned
            self._await_beat(now_us, BEATS_A_SESSION)

    @override
    def commits_again(self, error: ErrorCode) -> bool:
        return error is ErrorCode.STALE_MEMBER_EPOCH and not self._given_up

    @override
    def leaving(self) -> messages.GroupRequest | None:
        return None if self._epoch == JOINS else self._heartbeat(LEAVES, ())

    def _heartbeat(self, epoch: int, owned: Collection[TopicPartition]) -> messages.ConsumerGroupHeartbeat:
        correlation, group = self._requests.net.next_correlation(), self._requests.group
        return messages.ConsumerGroupHeartbeat(
            correlation, group, self._name, epoch, self._session_ms, self._topics, tuple(owned)
        )
