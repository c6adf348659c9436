"""A consumer group on the simulated cluster, request by request, as tests of the core use it."""

from __future__ import annotations

from typing import Any

from harness.broker.core import messages
from harness.broker.core.groups.coordinator import LOG
from harness.broker.core.messages import JOINS, LEAVES, CreateTopic
from harness.broker.core.types import CONTROLLER, NONE, BrokerConfig, ErrorCode, TopicConfig, TopicPartition
from tests.harness.broker.core.conftest import Lab

GROUP = "g"
T0, T1 = TopicPartition("read", 0), TopicPartition("read", 1)


def commits(*offsets: tuple[TopicPartition, int]) -> tuple[tuple[TopicPartition, messages.CommittedOffset], ...]:
    """Offsets as a request has them."""
    return tuple((partition, messages.CommittedOffset(offset)) for partition, offset in offsets)


class LabMember:
    """A member as its client has it: its epoch, and the log partitions that it reads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = JOINS
        self.owned: tuple[TopicPartition, ...] = ()


class GroupLab(Lab):
    """Two log partitions are read; broker 1 leads the log of groups, which is on all three."""

    def __init__(self, config: BrokerConfig | None = None, topic: TopicConfig | None = None) -> None:
        super().__init__(config or BrokerConfig(session_timeout_ms=3_000), topic or TopicConfig(min_insync_replicas=2))
        self.ask(CONTROLLER, lambda c: CreateTopic(c, T0.topic, 2, 3, self.topic))
        self.ask(CONTROLLER, lambda c: CreateTopic(c, LOG.topic, 1, 3, self.topic, ((1, 2, 0),)))
        self.run(500)

    @property
    def coordinator(self) -> int:
        """The broker that leads the log of groups."""
        state = self.image.partition(LOG)
        assert state is not None
        return state.leader

    @property
    def isr_of_groups(self) -> tuple[int, ...]:
        """The ISR of the log of groups."""
        state = self.image.partition(LOG)
        assert state is not None
        return state.isr

    def move(self, node: int) -> None:
        """Make another broker the coordinator."""
        self.ask(CONTROLLER, lambda c: messages.MoveLeader(c, LOG.topic, 0, node))
        self.wait(lambda: self.brokers[node].replicas[LOG].leading)

    def beat(self, member: LabMember, *, epoch: int | None = None, rebalance_ms: int = 300_000) -> Any:
        """One heartbeat; the member takes what it is told, and so gives up what is not among it."""
        sent = member.epoch if epoch is None else epoch
        beat = lambda c: messages.ConsumerGroupHeartbeat(  # noqa: E731
            c, GROUP, member.name, sent, rebalance_ms, (T0.topic,), member.owned
        )
        answer = self.ask(self.coordinator, beat)
        if not answer.error:
            member.epoch, member.owned = answer.member_epoch, answer.assigned
        return answer

    def member(self, name: str) -> LabMember:
        """Join the group."""
        member = LabMember(name)
        assert self.beat(member).error == ErrorCode.NONE
        return member

    def delete(self, group: str = GROUP) -> ErrorCode:
        """Have the group forgotten."""
        error: ErrorCode = self.ask(self.coordinator, lambda c: messages.DeleteGroup(c, group)).error
        return error

    def leave(self, member: LabMember) -> ErrorCode:
        """Leave the group."""
        error: ErrorCode = self.beat(member, epoch=LEAVES).error
        return error

    def commit_of(self, member: LabMember, offset: int, partition: TopicPartition = T0) -> messages.OffsetCommit:
        """The request for a commit."""
        return messages.OffsetCommit(self.correlation(), GROUP, member.name, member.epoch, commits((partition, offset)))

    def commit(
        self, member: LabMember, offset: int, partition: TopicPartition = T0, node: int | None = None
    ) -> ErrorCode:
        """Commit one offset."""
        request = self.commit_of(member, offset, partition)
        error: ErrorCode = self.answer_to(self.coordinator if node is None else node, request).error
        return error

    def committed(
        self, partition: TopicPartition = T0, member: LabMember | None = None, node: int | None = None
    ) -> Any:
        """The offsets that the group remembers, or the error; asked by no member unless one is named."""
        name, epoch = ("", NONE) if member is None else (member.name, member.epoch)
        asked = self.ask(
            self.coordinator if node is None else node,
            lambda c: messages.OffsetFetch(c, GROUP, name, epoch, (partition,)),
        )
        return asked.error or asked.offsets[0][1].offset
