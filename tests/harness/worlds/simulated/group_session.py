"""A consumer in a group under a test's control: what it asks its coordinator is kept, and answered by hand."""

from typing import Any

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.messages import CommittedOffset, Message
from harness.broker.core.types import NONE, ErrorCode, TopicPartition
from harness.worlds.simulated.group_consumer import GroupConsumerModel
from harness.worlds.simulated.network_client import commits
from tests.harness.worlds.simulated.consumer_session import AT, Session
from workloads.client import Assignment, Membership, OwnCommit
from workloads.settings import GroupProtocol, OffsetReset, Settings

SESSION_MS = 900
NOT_KNOWN = messages.EpochEnd(NONE, NONE)


def reached(offset: int, epoch: int = 0) -> tuple[tuple[TopicPartition, CommittedOffset], ...]:
    """A commit of what was read of the first log partition, the last of it of this leader epoch."""
    return ((AT, CommittedOffset(offset, epoch)),)


class GroupSession(Session):
    """A member; broker 2 is the coordinator. ``asked`` are the requests to it that have no answer yet."""

    model: GroupConsumerModel

    def __init__(
        self,
        *,
        protocol: GroupProtocol = "consumer",
        auto_commit_ms: int | None = None,
        reset: OffsetReset = "earliest",
        delivery_timeout_ms: int = 5_000,
    ) -> None:
        self.asked: list[Any] = []
        self.epochs_asked: list[tuple[int, messages.OffsetForLeaderEpoch]] = []
        self.assignments: list[tuple[str, ...]] = []
        self.generations: list[int | None] = []
        self.told: list[OwnCommit] = []
        membership = Membership("g", None, protocol, SESSION_MS, auto_commit_ms, reset)
        settings = Settings(delivery_timeout_ms=delivery_timeout_ms)
        model = GroupConsumerModel(range(3), 7, ["t"], settings, "read_uncommitted", membership=membership)
        super().__init__(model=model)
        model.assign([], from_start=True)
        model.subscribe(["t"], self.changed)
        model.watch_own_commits(self.told.append)

    def changed(self, assigned: Assignment) -> None:
        self.assignments.append(assigned.partitions)
        self.generations.append(assigned.generation)

    @override
    def _completed(self, done: Any, outcome: Any) -> None:
        if isinstance(outcome, Assignment | OwnCommit):
            done(outcome)
        else:
            super()._completed(done, outcome)

    @override
    def _serve(self, broker: int, message: Message) -> None:
        if isinstance(message, messages.OffsetForLeaderEpoch):
            self.epochs_asked.append((broker, message))
        elif isinstance(message, messages.GroupRequest):
            assert broker == 2
            self.asked.append(message)
        else:
            super()._serve(broker, message)

    def answer(self, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> Any:
        """Answer the oldest request to the coordinator; it is returned."""
        request = self.asked.pop(0)
        self._answer(2, request, error, **fields)
        return request

    def assigned(self, *partitions: TopicPartition, epoch: int = 1, places: tuple[int, ...] = ()) -> None:
        """Poll until these are assigned, each at its place; the heartbeat that says so is under way then."""
        self.poll()
        self.answer(member_epoch=epoch, assigned=partitions)
        wanted = [each for each in self.asked if isinstance(each, messages.OffsetFetch)]
        for request in wanted:
            self.asked.remove(request)
            self.asked.insert(0, request)
            self.answer(offsets=commits(dict(zip(request.partitions or (), places, strict=True))))

    def answer_end_of_epoch(self, end: messages.EpochEnd = NOT_KNOWN, error: ErrorCode = ErrorCode.NONE) -> None:
        broker, asked = self.epochs_asked.pop(0)
        answer = messages.OffsetForLeaderEpochResponse(asked.correlation, asked.partition, error, end)
        self._do(self.model.on_message(self.now_us, broker, answer))

    def commit(self, offset: int) -> None:
        self._do(self.model.commit(self.now_us, {AT: offset}, "commit"))

    def lose(self) -> None:
        """Break the connection to the coordinator."""
        self.asked.clear()
        self.disconnect(2)
