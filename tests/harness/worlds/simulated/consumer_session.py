"""The model of a consumer under a test's control: what it asks is kept, and answered by hand."""

from harness.reference.core.effects import Arm, Deliver
from harness.reference.core.messages import (
    EARLIEST,
    Fetch,
    FetchedPartition,
    FetchResponse,
    ListOffsets,
    ListOffsetsResponse,
    Message,
    Metadata,
    MetadataResponse,
    RecordBatch,
)
from harness.reference.core.types import (
    OFFSETS_TOPIC,
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.worlds.simulated.consumer import ConsumerModel
from harness.worlds.simulated.network_client import ClientEffect, Completed, Connect
from workloads.client import Offsets, PollOutcome
from workloads.operations import EventType
from workloads.settings import Settings

AT = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
MS = 1_000


def batch(base_offset: int, *values: str) -> RecordBatch:
    return RecordBatch(len(values), 1, tuple((b"", value.encode()) for value in values), base_offset, 0)


class Session:
    """A consumer whose connections, metadata and earliest offsets work by themselves; broker n leads partition n."""

    def __init__(self, *partitions: TopicPartition, model: ConsumerModel | None = None) -> None:
        self.model = model or ConsumerModel(range(3), 0, ["t"], Settings())
        self.now_us = 0
        self.earliest = 0
        self.fetches: list[tuple[int, Fetch]] = []
        self.end_queries: list[tuple[int, ListOffsets]] = []
        self.polls: list[list[tuple[int, str]]] = []
        self.errors: list[str | None] = []
        self.ends: list[Offsets] = []
        self._timers: list[int] = []
        self.model.assign(partitions or (AT,), from_start=True)

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

    def close(self) -> None:
        self._do(self.model.close("ClientClosed"))

    def wait(self, duration_ms: int) -> None:
        until_us = self.now_us + duration_ms * MS
        while self._timers and min(self._timers) <= until_us:
            self.now_us = min(self._timers)
            self._timers.remove(self.now_us)
            self._do(self.model.on_timer(self.now_us, None))  # type: ignore[arg-type]
        self.now_us = until_us

    def wanted(self) -> list[tuple[int, list[tuple[int, int]]]]:
        return [(n, [(p.partition.partition, p.fetch_offset) for p in fetch.partitions]) for n, fetch in self.fetches]

    def _do(self, effects: list[ClientEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Arm):
                self._timers.append(effect.at_us)
            elif isinstance(effect, Connect):
                self._do(self.model.on_connected(self.now_us, effect.broker))
            elif isinstance(effect, Deliver):
                self._serve(effect.target, effect.message)
            elif isinstance(effect, Completed) and isinstance(effect.outcome, PollOutcome):
                assert effect.outcome.type in (EventType.OK, EventType.INFO)
                self.errors.append(effect.outcome.error)
                self.polls.append([(record.offset, record.payload.decode()) for record in effect.outcome.records])
            elif isinstance(effect, Completed):
                self.ends.append(effect.outcome)

    def _serve(self, broker: int, message: Message) -> None:
        if isinstance(message, Fetch):
            self.fetches.append((broker, message))
        elif isinstance(message, ListOffsets) and message.timestamp == EARLIEST:
            answer = ListOffsetsResponse(message.correlation, message.partition, ErrorCode.NONE, self.earliest)
            self._do(self.model.on_message(self.now_us, broker, answer))
        elif isinstance(message, ListOffsets):
            self.end_queries.append((broker, message))
        elif isinstance(message, Metadata):
            states = tuple(PartitionState((0, 1, 2), (0, 1, 2), leader, 0, 0) for leader in (0, 1))
            brokers = {n: BrokerState(n, fenced=False) for n in range(3)}
            coordinator = PartitionState((2,), (2,), 2, 0, 0)
            topics = {"t": TopicState(TopicConfig(), states), OFFSETS_TOPIC: TopicState(TopicConfig(), (coordinator,))}
            image = Image(1, brokers, topics)
            self._do(self.model.on_message(self.now_us, broker, MetadataResponse(message.correlation, image)))
