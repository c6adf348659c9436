"""A consumer in a group under a test's control: what it asks its coordinator is kept, and answered by hand."""

from typing import Any

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.messages import Message
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.worlds.simulated.group_consumer import GroupConsumerModel
from harness.worlds.simulated.network_client import commits
from tests.harness.worlds.simulated.consumer_session import AT, Session
from workloads.client import Assignment, Membership, OwnCommit
from workloads.settings import GroupProtocol, OffsetReset, Settings

SESSION_MS = 900


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
        if isinstance(message, messages.GroupRequest):
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

    def commit(self, offset: int) -> None:
        self._do(self.model.commit(self.now_us, {AT: offset}, "commit"))

    def lose(self) -> None:
        """Break the connection to the coordinator."""
        self.asked.clear()
        self.disconnect(2)
