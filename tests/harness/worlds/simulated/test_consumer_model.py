"""The model of the consumer, against answers given by hand."""

from msgspec.structs import replace

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
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.worlds.simulated.consumer import CORRUPT, ConsumerModel
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

    def __init__(self, *partitions: TopicPartition) -> None:
        self.model = ConsumerModel(range(3), 0, ["t"], Settings())
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
            image = Image(1, brokers, {"t": TopicState(TopicConfig(), states)})
            self._do(self.model.on_message(self.now_us, broker, MetadataResponse(message.correlation, image)))


def test_a_poll_ends_with_the_records_of_the_fetch_and_the_next_goes_on_behind_them() -> None:
    session = Session()
    session.poll()
    session.answer_fetch(batch(0, "a", "b"))
    session.poll()
    assert session.polls == [[(0, "a"), (1, "b")]]
    assert session.wanted() == [(0, [(0, 2)])]


def test_a_batch_that_begins_before_the_position_is_read_from_the_position_on() -> None:
    session = Session()
    session.earliest = 3
    session.poll()
    assert session.wanted() == [(0, [(0, 3)])]
    session.answer_fetch(batch(2, "before", "here"))
    assert session.polls == [[(3, "here")]]


def test_an_idle_poll_ends_empty_and_leaves_its_long_poll_standing() -> None:
    session = Session()
    session.poll(max_wait_ms=100)
    session.wait(100)
    session.poll(max_wait_ms=100)
    assert session.polls == [[]]
    assert len(session.fetches) == 1
    session.answer_fetch(batch(0, "late"))
    assert session.polls == [[], [(0, "late")]]


def test_an_offset_out_of_range_is_reset_to_the_earliest() -> None:
    session = Session()
    session.poll(max_wait_ms=1_000)
    session.earliest = 40
    session.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    session.wait(200)
    assert session.wanted() == [(0, [(0, 40)])]


def test_a_batch_whose_checksum_is_wrong_ends_every_poll_with_an_error_at_the_same_place() -> None:
    session = Session()
    session.poll()
    session.answer_fetch(batch(0, "a"), replace(batch(1, "b"), intact=False), batch(2, "c"))
    assert session.polls == [[(0, "a")]]
    session.poll()
    session.wait(200)
    session.poll()
    session.answer_fetch(replace(batch(1, "b"), intact=False))
    assert session.errors == [None, CORRUPT, CORRUPT]


def test_a_refused_fetch_is_repeated_after_the_backoff() -> None:
    session = Session()
    session.poll(max_wait_ms=1_000)
    session.answer_fetch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert session.fetches == []
    session.wait(150)
    assert session.wanted() == [(0, [(0, 0)])]


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    session = Session(AT, OTHER)
    session.poll()
    assert session.wanted() == [(0, [(0, 0)]), (1, [(1, 0)])]


def test_assigning_again_keeps_the_position_unless_it_says_from_start() -> None:
    session = Session()
    session.poll()
    session.answer_fetch(batch(0, "a"))
    session.model.assign([AT], from_start=False)
    session.poll()
    assert session.wanted() == [(0, [(0, 1)])]
    session.model.assign([AT], from_start=True)
    session.answer_fetch()
    assert session.wanted() == [(0, [(0, 0)])]


def test_end_offsets_ask_every_leader_and_insist() -> None:
    session = Session()
    session.ask_ends(AT, OTHER)
    session.answer_end(5)
    session.answer_end(-1, ErrorCode.OFFSET_NOT_AVAILABLE)
    assert session.ends == []
    session.wait(200)
    session.answer_end(6)
    assert session.ends == [Offsets({"t-0": 5, "t-1": 6})]


def test_end_offsets_that_nobody_tells_end_with_an_error() -> None:
    session = Session()
    session.ask_ends(AT, OTHER)
    session.answer_end(5)
    session.wait(10_000)
    assert session.ends == [Offsets({"t-0": 5}, "KafkaTimeoutError")]


def test_closing_ends_a_poll_and_a_question() -> None:
    session = Session()
    session.poll()
    session.ask_ends(AT)
    session.close()
    assert session.polls == [[]]
    assert session.ends == [Offsets({}, "ClientClosed")]
