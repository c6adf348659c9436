"""The model of the producer, against answers given by hand."""

from typing import Any

import pytest
from typing_extensions import override

from harness.broker.core.messages import (
    InitProducerId,
    InitProducerIdResponse,
    Message,
    Produce,
    ProduceResponse,
)
from harness.broker.core.types import ErrorCode, Image, TopicPartition
from harness.worlds.simulated.producer import ProducerModel
from tests.harness.worlds.simulated.client_session import MS, ClientSession, image_of
from workloads.client import SendOutcome
from workloads.operations import EventType
from workloads.settings import Settings

AT = TopicPartition("t", 0)


def image(leader: int, epoch: int = 0) -> Image:
    return image_of({"t": (leader,)}, epoch)


class Session(ClientSession):
    """A producer; its produce requests wait for an answer by hand."""

    model: ProducerModel

    def __init__(self, **settings: Any) -> None:
        super().__init__(ProducerModel(range(3), 0, ["t"], Settings(**settings)), image(leader=0))
        self.refusing: set[int] = set()
        self.silent: set[int] = set()
        self.requests: list[tuple[int, Produce]] = []
        self.outcomes: dict[str, SendOutcome] = {}
        self.producer_ids = 0

    def send(self, *names: str) -> None:
        for name in names:
            self._do(self.model.send(self.now_us, AT, b"", name.encode(), name))

    def answer(self, error: ErrorCode = ErrorCode.NONE, offset: int = 7, request: int = 0) -> None:
        broker, produce = self.requests.pop(request)
        response = ProduceResponse(produce.correlation, AT, error, -1 if error else offset)
        self._do(self.model.on_message(self.now_us, broker, response))

    def sent(self) -> list[list[str]]:
        return [[payload.decode() for _, payload in produce.batch.records] for _, produce in self.requests]

    def numbers(self) -> list[tuple[int, int]]:
        return [(produce.batch.producer_epoch, produce.batch.base_sequence) for _, produce in self.requests]

    @override
    def _connect(self, broker: int) -> None:
        if broker in self.refusing:
            self.disconnect(broker)
        elif broker not in self.silent:
            super()._connect(broker)

    @override
    def _completed(self, done: Any, outcome: Any) -> None:
        assert done not in self.outcomes
        self.outcomes[done] = outcome

    @override
    def _serve(self, broker: int, message: Message) -> None:
        if isinstance(message, Produce):
            self.requests.append((broker, message))
        elif isinstance(message, InitProducerId):
            self.producer_ids += 1
            answer = InitProducerIdResponse(message.correlation, ErrorCode.NONE, 70 + self.producer_ids, 0)
            self._do(self.model.on_message(self.now_us, broker, answer))


def test_an_acknowledged_record_ends_ok_at_its_offset() -> None:
    session = Session()
    session.send("x")
    session.answer(offset=12)
    assert session.outcomes == {"x": SendOutcome(EventType.OK, 12, None, 0)}


def test_records_that_queue_behind_the_in_flight_limit_share_a_batch() -> None:
    session = Session(max_in_flight=1)
    session.send("a", "b", "c")
    assert session.sent() == [["a"]]
    session.answer(offset=3)
    assert session.sent() == [["b", "c"]]
    session.answer(offset=4)
    assert [session.outcomes[name].offset for name in "abc"] == [3, 4, 5]


def test_no_more_requests_are_under_way_than_the_limit() -> None:
    session = Session(max_in_flight=2)
    session.send("a", "b", "c")
    assert session.sent() == [["a"], ["b"]]
    session.answer(offset=0)
    assert session.sent() == [["b"], ["c"]]


def test_linger_waits_for_company() -> None:
    session = Session(linger_ms=5)
    session.send("a", "b")
    assert session.sent() == []
    session.wait(5)
    assert session.sent() == [["a", "b"]]


def test_acks_0_is_ok_without_an_answer_but_not_without_a_connection() -> None:
    session = Session(acks=0)
    session.refusing = {0, 1, 2}
    session.send("x")
    session.wait(1_000)
    assert session.outcomes == {}
    session.refusing = set()
    session.wait(2_000)
    assert session.outcomes == {"x": SendOutcome(EventType.OK, None)}


def test_a_lost_connection_is_retried_and_the_outcome_is_that_of_the_retry() -> None:
    session = Session()
    session.send("x")
    session.disconnect(0)
    assert session.outcomes == {}
    session.requests.clear()
    session.wait(200)
    assert session.sent() == [["x"]]
    session.answer()
    assert session.outcomes["x"].type is EventType.OK


def test_a_silent_leader_is_given_up_after_the_request_timeout() -> None:
    session = Session()
    session.send("x")
    session.requests.clear()
    session.image = image(leader=1, epoch=1)
    session.wait(1_499)
    assert session.requests == []
    session.wait(300)
    assert [broker for broker, _ in session.requests] == [1]


def test_delivery_timeout_after_an_attempt_is_info() -> None:
    session = Session()
    session.send("x")
    session.wait(5_000)
    assert session.outcomes["x"].type is EventType.INFO


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([ErrorCode.NOT_ENOUGH_REPLICAS], EventType.FAIL),
        ([ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND], EventType.INFO),
        ([ErrorCode.NOT_LEADER_OR_FOLLOWER], EventType.INFO),
        ([ErrorCode.REQUEST_TIMED_OUT], EventType.INFO),
    ],
)
def test_without_retries_only_a_refusal_before_the_append_is_a_certain_failure(
    errors: list[ErrorCode], expected: EventType
) -> None:
    session = Session(retries=0)
    session.send("x")
    for error in errors:
        session.answer(error)
    assert session.outcomes["x"].type is expected


def test_a_refusal_after_an_attempt_that_may_have_been_appended_is_info() -> None:
    session = Session(retries=1)
    session.send("x")
    session.answer(ErrorCode.REQUEST_TIMED_OUT)
    session.wait(100)
    session.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert session.outcomes == {"x": SendOutcome(EventType.INFO, None, "NotEnoughReplicasError", 0)}


def test_refusals_until_the_delivery_timeout_are_a_certain_failure() -> None:
    session = Session()
    session.send("x")
    for _ in range(60):
        if session.requests:
            session.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        session.wait(100)
    assert session.outcomes == {"x": SendOutcome(EventType.FAIL, None, "NotEnoughReplicasError", 0)}


def test_what_comes_back_at_the_moment_of_the_delivery_timeout_is_given_up_at_once() -> None:
    session = Session()
    session.send("x")
    session.wait(1_000)
    session.now_us = 5_000 * MS  # No timer has rung.
    session.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert session.outcomes == {"x": SendOutcome(EventType.FAIL, None, "NotEnoughReplicasError", 0)}


def test_retries_without_idempotence_may_reorder() -> None:
    session = Session()
    session.send("q1", "q2")
    session.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    session.answer(offset=0)
    session.wait(100)
    session.answer(offset=1)
    assert (session.outcomes["q1"].offset, session.outcomes["q2"].offset) == (1, 0)


def test_an_idempotent_retry_keeps_its_number_and_its_turn() -> None:
    session = Session(enable_idempotence=True)
    session.send("q1", "q2", "q3")
    assert session.numbers() == [(0, 0), (0, 1), (0, 2)]
    session.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    session.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    session.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    session.wait(100)
    assert (session.sent(), session.numbers()) == ([["q1"]], [(0, 0)])
    session.answer(offset=0)
    assert session.numbers() == [(0, 1)]
    session.answer(offset=1)
    session.answer(offset=2)
    assert [session.outcomes[name].offset for name in ("q1", "q2", "q3")] == [0, 1, 2]


def test_a_batch_that_was_next_and_is_out_of_order_starts_the_numbers_again() -> None:
    session = Session(enable_idempotence=True)
    session.send("a")
    session.answer(offset=0)
    session.send("b")
    assert session.numbers() == [(0, 1)]
    session.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    session.wait(100)
    assert session.numbers() == [(1, 0)]
    session.answer(offset=0)
    assert session.outcomes["b"].type is EventType.OK


def test_after_an_unresolved_batch_nothing_new_is_sent_under_the_old_numbers() -> None:
    session = Session(enable_idempotence=True, request_timeout_ms=3_000)
    session.send("expires")
    session.wait(2_500)
    session.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # the second try is under way when the time for delivery is over
    session.wait(2_490)
    session.send("young")
    session.wait(20)
    session.send("new")
    assert session.outcomes["expires"].type is EventType.INFO
    assert session.numbers() == [(0, 0), (0, 1)]
    session.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    session.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    session.wait(110)
    assert (session.sent()[0], session.numbers()[0]) == (["young"], (1, 0))


def with_five_under_way_to_a_deposed_leader(**settings: Any) -> Session:
    """Five batches that broker 0 does not answer, and another that is written after broker 1 has become the leader."""
    session = Session(enable_idempotence=True, **settings)
    for number in range(5):
        session.send(f"old {number}")
    session.image = image(leader=1, epoch=1)
    session.wait(1_400)
    session.disconnect(2)  # and so it asks for metadata
    session.send("new")
    return session


def test_no_more_batches_are_under_way_than_the_log_remembers_though_two_brokers_have_led() -> None:
    session = with_five_under_way_to_a_deposed_leader()
    assert [broker for broker, _ in session.requests] == [0] * 5
    session.requests.clear()
    session.wait(300)
    assert [(broker, *names) for (broker, _), names in zip(session.requests, session.sent(), strict=True)] == [
        (1, "old 0")
    ]
    for offset in range(6):
        session.answer(offset=offset)
    assert [session.outcomes[name].offset for name in ("old 0", "old 4", "new")] == [0, 4, 5]


def test_counted_for_each_connection_the_sixth_batch_overtakes_the_first_five() -> None:
    session = with_five_under_way_to_a_deposed_leader(idempotence_window="connection")
    assert [broker for broker, _ in session.requests] == [0] * 5 + [1]
    assert session.numbers()[-1] == (0, 5)


def test_metadata_of_an_older_leader_epoch_is_not_believed() -> None:
    session = Session()
    session.image = image(leader=1, epoch=5)
    session.send("x")
    assert [broker for broker, _ in session.requests] == [1]
    session.image = image(leader=0, epoch=4)
    session.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    session.wait(200)
    assert [broker for broker, _ in session.requests] == [1]


def test_closing_ends_everything_as_info() -> None:
    session = Session(max_in_flight=1)
    session.send("under way", "waiting")
    session.close()
    assert {outcome.type for outcome in session.outcomes.values()} == {EventType.INFO}
    assert set(session.outcomes) == {"under way", "waiting"}
