"""Offsets that the model of a transactional producer hands over, against answers of coordinators given by hand."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.groups.coordinator import LOG
from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ErrorCode, TopicPartition
from harness.worlds.simulated.network_client import commits
from harness.worlds.simulated.transactional_producer import ABORTABLE, TransactionalProducerModel
from tests.harness.worlds.simulated.client_session import ClientSession, image_of
from workloads import ErrorClass, EventType, SendOutcome, Settings

AT = TopicPartition("t", 0)
MEMBER = ("g", "member-1", 4)
OK = SendOutcome(EventType.OK)
SETTINGS = Settings(enable_idempotence=True)


class Session(ClientSession):
    """A producer in a transaction; broker 1 leads the log of transactions, broker 2 that of groups.

    ``asked`` are the requests to both that have no answer yet, each with the broker that has it.
    """

    model: TransactionalProducerModel

    def __init__(self) -> None:
        model = TransactionalProducerModel(range(3), 0, ["t"], SETTINGS, "mine")
        super().__init__(model, image_of({"t": (0,), TRANSACTIONS_TOPIC: (1,), OFFSETS_TOPIC: (2,)}))
        self.asked: list[tuple[int, Any]] = []
        self.outcomes: dict[str, SendOutcome] = {}
        self._do(self.model.call(0, "init", "init"))
        self.answer(producer_id=7, producer_epoch=0)
        self._do(self.model.begin(self.now_us, "begin"))
        assert self.outcomes == {"init": OK, "begin": OK}

    def hand_over(self) -> None:
        self._do(self.model.send_offsets(self.now_us, MEMBER, {AT: 5}, "offsets"))

    def end(self, what: Any) -> None:
        self._do(self.model.call(self.now_us, what, what))

    def answer(self, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> tuple[int, Any]:
        """Answer the oldest request; it is returned, with its broker."""
        broker, request = self.asked.pop(0)
        self._answer(broker, request, error, **fields)
        return broker, request

    def lose(self, broker: int) -> None:
        """Break a connection."""
        self.asked.clear()
        self.disconnect(broker)

    @override
    def _completed(self, done: Any, outcome: Any) -> None:
        self.outcomes[done] = outcome

    @override
    def _serve(self, broker: int, message: messages.Message) -> None:
        self.asked.append((broker, message))


def test_the_log_of_groups_is_added_first_and_then_the_group_coordinator_is_asked() -> None:
    session = Session()
    session.hand_over()
    broker, adds = session.answer()
    assert (broker, adds.partitions) == (1, (LOG,))
    broker, commit = session.answer()
    assert broker == 2
    expected = messages.TxnOffsetCommit(commit.correlation, *MEMBER, commits({AT: 5}), 7, 0)
    assert (commit, session.outcomes["offsets"]) == (expected, OK)
    session.end("commit")
    broker, end = session.answer(producer_id=7, producer_epoch=1)
    assert (broker, end.commit, session.outcomes["commit"]) == (1, True, OK)


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None])
def test_offsets_are_handed_over_again_until_they_are_answered_for_good(error: ErrorCode | None) -> None:
    session = Session()
    session.hand_over()
    session.answer()
    if error is None:
        session.lose(2)
    else:
        session.answer(error)
    assert "offsets" not in session.outcomes
    session.wait(1_000)
    broker, again = session.answer()
    assert (broker, type(again), session.outcomes["offsets"]) == (2, messages.TxnOffsetCommit, OK)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_transaction_whose_member_is_refused_can_only_be_aborted(error: ErrorCode) -> None:
    session = Session()
    session.hand_over()
    session.answer()
    session.answer(error)
    assert session.outcomes["offsets"] == SendOutcome.of_call("send_offsets", error.name)
    session.end("commit")
    assert session.outcomes["commit"] == SendOutcome.of_call("commit", ABORTABLE)
    assert session.outcomes["commit"].type is EventType.FAIL
    session.end("abort")
    session.answer(producer_id=7, producer_epoch=1)
    assert session.outcomes["abort"] == OK


def test_a_producer_that_is_fenced_hands_nothing_over_any_more() -> None:
    session = Session()
    session.hand_over()
    session.answer()
    session.answer(ErrorCode.INVALID_PRODUCER_EPOCH)
    refused = SendOutcome(EventType.INFO, None, "InvalidProducerEpochError", error_class=ErrorClass.FATAL)
    assert session.outcomes["offsets"] == refused
    session.hand_over()
    assert session.outcomes["offsets"] == refused
    assert session.asked == []


def test_offsets_without_an_answer_in_time_may_be_handed_over_again_and_a_late_answer_ends_no_other_call() -> None:
    session = Session()
    session.hand_over()
    session.answer()
    late = session.asked[-1]
    session.wait(4 * SETTINGS.delivery_timeout_ms)
    assert session.outcomes["offsets"].error_class is ErrorClass.RETRIABLE
    del session.asked[:-1]
    session.end("abort")
    _, late = session.answer()
    assert isinstance(late, messages.TxnOffsetCommit)
    assert "abort" not in session.outcomes
    _, end = session.answer(producer_id=7, producer_epoch=1)
    assert (end.commit, session.outcomes["abort"]) == (False, OK)


@pytest.mark.parametrize("what", ["commit", "abort"])
def test_an_end_without_an_answer_in_time_is_unknown_and_the_producer_can_do_nothing_more(what: str) -> None:
    session = Session()
    session.hand_over()
    session.answer()
    session.answer()
    session.end(what)
    session.wait(4 * SETTINGS.delivery_timeout_ms)
    assert session.outcomes[what] == SendOutcome.of_call("commit", "KafkaTimeoutError")
    assert session.outcomes[what].error_class is ErrorClass.UNKNOWN
    session.end("abort")
    assert session.outcomes["abort"].error_class is ErrorClass.FATAL
