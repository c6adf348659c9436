"""The model of a consumer under a test's control: what it asks is kept, and answered by hand."""

from typing import Any

from typing_extensions import override

from harness.broker.core.messages import (
    EARLIEST,
    Fetch,
    FetchedPartition,
    FetchResponse,
    ListOffsets,
    ListOffsetsResponse,
    Message,
    RecordBatch,
)
from harness.broker.core.types import OFFSETS_TOPIC, ErrorCode, TopicPartition
from harness.worlds.simulated.consumer import ConsumerModel
from tests.harness.worlds.simulated.client_session import ClientSession, image_of
from workloads.client import Offsets, PollOutcome
from workloads.operations import EventType
from workloads.settings import Settings

AT = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def batch(base_offset: int, *values: str, epoch: int = 0) -> RecordBatch:
    return RecordBatch(len(values), 1, tuple((b"", value.encode()) for value in values), base_offset, epoch)


class Session(ClientSession):
    """A consumer whose earliest offsets work by themselves, too; broker n leads partition n."""

    model: ConsumerModel

    def __init__(self, *partitions: TopicPartition, model: ConsumerModel | None = None) -> None:
        model = model or ConsumerModel(range(3), 0, ["t"], Settings())
        super().__init__(model, image_of({"t": (0, 1), OFFSETS_TOPIC: (2,)}))
        self.earliest = 0
        self.fetches: list[tuple[int, Fetch]] = []
        self.end_queries: list[tuple[int, ListOffsets]] = []
        self.polls: list[list[tuple[int, str]]] = []
        self.errors: list[str | None] = []
        self.ends: list[Offsets] = []
        model.assign(partitions or (AT,), from_start=True)

    def poll(self, max_wait_ms: int = 100) -> None:
        self._do(self.model.poll(self.now_us, max_wait_ms, "poll"))

    def answer_fetch(self, *batches: RecordBatch, error: ErrorCode = ErrorCode.NONE) -> None:
        broker, fetch = self.fetches.pop(0)
        parts = tuple(
            FetchedPartition(wanted.partition, error, 99, 0, None, batches if wanted.partition == AT else ())
            for wanted in fetch.partitions
        )
        self._do(self.model.on_message(self.now_us, broker, FetchResponse(fetch.correlation, parts)))

    def ask_ends(self, *partitions: TopicPartition) -> None:
        self._do(self.model.end_offsets(self.now_us, partitions, "ends"))

    def answer_end(self, offset: int, error: ErrorCode = ErrorCode.NONE) -> None:
        broker, ask = self.end_queries.pop(0)
        answer = ListOffsetsResponse(ask.correlation, ask.partition, error, offset)
        self._do(self.model.on_message(self.now_us, broker, answer))

    def wanted(self) -> list[tuple[int, list[tuple[int, int]]]]:
        return [(n, [(p.partition.partition, p.fetch_offset) for p in fetch.partitions]) for n, fetch in self.fetches]

    @override
    def _completed(self, done: Any, outcome: Any) -> None:
        if isinstance(outcome, PollOutcome):
            assert outcome.type in (EventType.OK, EventType.INFO)
            self.errors.append(outcome.error)
            self.polls.append([(record.offset, record.payload.decode()) for record in outcome.records])
        else:
            self.ends.append(outcome)

    @override
    def _serve(self, broker: int, message: Message) -> None:
        if isinstance(message, Fetch):
            self.fetches.append((broker, message))
        elif isinstance(message, ListOffsets) and message.timestamp == EARLIEST:
            answer = ListOffsetsResponse(message.correlation, message.partition, ErrorCode.NONE, self.earliest)
            self._do(self.model.on_message(self.now_us, broker, answer))
        elif isinstance(message, ListOffsets):
            self.end_queries.append((broker, message))
