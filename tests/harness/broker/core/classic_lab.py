"""A coordinator of classic groups, alone with its log, call by call: no other broker, and time that a test passes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.broker import Broker
from harness.broker.core.coordinator import look_of
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.groups.coordinator import LOG
from harness.broker.core.groups.group import Group
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import CommittedOffset, GroupRequest, Offer
from harness.broker.core.types import (
    CONTROLLER,
    NONE,
    BrokerConfig,
    BrokerState,
    ErrorCode,
    Image,
    NodeId,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)

CONFIG = BrokerConfig()
GROUP = "g"
SESSION_MS = 1_000
REBALANCE_MS = 5_000
T0 = TopicPartition("t", 0)
RANGE = (Offer("range", b"r", ("t",)),)
_CLIENT = NodeId(1001)


class ClassicLab:
    """Calls are known by tickets, and ``answers`` has those that came. While ``log_waits`` nothing is committed."""

    def __init__(self) -> None:
        self.config = CONFIG
        self.log = MemoryLog()
        self.now_us = 0
        self.leader_epoch = 0
        self.log_waits = False
        self.answers: dict[str, Any] = {}
        self._tickets: dict[int, str] = {}
        self._own: deque[messages.Message] = deque()
        self.move()

    def move(self) -> None:
        """Another broker coordinates: it has the log, and nothing else."""
        self.leader_epoch += 1
        self._own.clear()
        self.broker = Broker(NodeId(0), self.config, lambda _: self.log, 1)
        led = PartitionState((NodeId(0),), (NodeId(0),), NodeId(0), self.leader_epoch, self.leader_epoch)
        topics = {LOG.topic: TopicState(TopicConfig(), (led,)), T0.topic: TopicState(TopicConfig(), (led,))}
        image = Image(1 + self.leader_epoch, {NodeId(0): BrokerState(1, fenced=False)}, topics)
        self.broker.start(self.now_us)
        self._deliver(CONTROLLER, messages.RegisterBrokerResponse(ErrorCode.NONE, 1, 1))
        self._deliver(CONTROLLER, messages.MetadataUpdate(image))

    def depose(self) -> None:
        """This broker coordinates no more, and knows it."""
        led = PartitionState((NodeId(0),), (NodeId(0),), NodeId(NONE), 99, 99)
        topics = {LOG.topic: TopicState(TopicConfig(), (led,))}
        image = Image(99, {NodeId(0): BrokerState(1, fenced=False)}, topics)
        self._deliver(CONTROLLER, messages.MetadataUpdate(image))

    def pass_ms(self, time_ms: int) -> None:
        """Let time pass, and the coordinator look at what is due."""
        self.now_us += time_ms * 1_000
        self._take(self.broker.on_timer(self.now_us, look_of(LOG, self.leader_epoch)))

    def commit_log(self, *, refuse: bool = False) -> None:
        """Let all that was written meanwhile be committed, or refused."""
        self.log_waits = False
        waiting, self._own = self._own, deque()
        for each in waiting:
            refused = refuse and isinstance(each, messages.ProduceResponse)
            self._deliver(NodeId(0), replace(each, error=ErrorCode.NOT_ENOUGH_REPLICAS) if refused else each)

    def _deliver(self, sender: NodeId, message: messages.Message) -> None:
        self._take(self.broker.on_message(self.now_us, sender, message))

    def _take(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, Deliver) or effect.target == CONTROLLER:
                continue
            if effect.target == 0:
                self._own.append(effect.message)
            else:
                answer: Any = effect.message
                ticket = self._tickets[answer.correlation]
                assert ticket not in self.answers, "a call was answered twice"
                self.answers[ticket] = answer
        while self._own and not self.log_waits:
            self._deliver(NodeId(0), self._own.popleft())

    # --- calls -------------------------------------------------------------------------------------------------------

    def ask(self, ticket: str, kind: type[GroupRequest], *values: Any, **named: Any) -> Any:
        """Make a call; its answer, None while there is none."""
        correlation = len(self._tickets) + 1
        ticket = ticket or f"call {correlation}"
        assert ticket not in self._tickets.values(), "a ticket is for one call"
        self._tickets[correlation] = ticket
        self._deliver(_CLIENT, kind(correlation, *values, **named))
        return self.answers.get(ticket)

    @property
    def open(self) -> set[str]:
        """The tickets of calls without an answer."""
        return set(self._tickets.values()) - self.answers.keys()

    def join(
        self,
        ticket: str,
        member: str = "",
        offers: tuple[Offer, ...] = RANGE,
        *,
        kind: str = "consumer",
        named: bool = False,
        group: str = GROUP,
        session_ms: int = SESSION_MS,
    ) -> Any:
        """Join, or join again."""
        return self.ask(
            ticket,
            messages.GroupJoin,
            group,
            member,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=kind,
            offers=offers,
            named_first=named,
        )

    def sync(self, ticket: str, member: str, generation: int, assignments: Mapping[str, bytes] | None = None) -> Any:
        """Ask for the assignment of a member; the leader brings all."""
        brought = tuple((assignments or {}).items())
        return self.ask(ticket, messages.GroupSync, GROUP, member, generation, brought)

    def beat(self, member: str, generation: int = 1) -> ErrorCode:
        """The error of a heartbeat."""
        error: ErrorCode = self.ask("", messages.GroupHeartbeat, GROUP, member, generation).error
        return error

    def leave(self, member: str, group: str = GROUP) -> ErrorCode:
        """The error of leaving."""
        error: ErrorCode = self.ask("", messages.GroupLeave, group, member).error
        return error

    def commit(self, member: str = "", generation: int = NONE, offset: int = 5) -> ErrorCode:
        """The error of a commit."""
        offsets = ((T0, CommittedOffset(offset, 3, "note")),)
        error: ErrorCode = self.ask("", messages.OffsetCommit, GROUP, member, generation, offsets).error
        return error

    def offset(self) -> CommittedOffset:
        """The offset that the group remembers."""
        answer = self.ask("", messages.OffsetFetch, GROUP, partitions=(T0,))
        assert not answer.error
        offset: CommittedOffset = answer.offsets[0][1]
        return offset

    def joins_by_consumer_protocol(self, member: str = "m", epoch: int = 0) -> Any:
        """A heartbeat of KIP-848."""
        return self.ask("", messages.ConsumerGroupHeartbeat, GROUP, member, epoch, topics=("t",))

    def group(self) -> Group:
        """The group as the coordinator knows it."""
        error, group = self.broker.group(GROUP)
        assert not error
        return group

    @property
    def members(self) -> list[str]:
        """The names of the members, in their order."""
        classic = self.group().classic
        return [] if classic is None else [*classic.members]


class PairLab(ClassicLab):
    """A stable group of two in generation 2; ``a`` leads."""

    def __init__(self) -> None:
        super().__init__()
        self.a = self.join("a1").member
        self.sync("as1", self.a, 1, {self.a: b"all"})
        self.join("b1")
        self.join("a2", self.a)
        self.b = self.answers["b1"].member
        self.sync("bs2", self.b, 2)
        self.sync("as2", self.a, 2, {self.a: b"half", self.b: b"other half"})
