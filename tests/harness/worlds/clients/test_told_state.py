"""A broker's word about a group, a log partition and a transactional id, and what counts as no word."""

from __future__ import annotations

from types import SimpleNamespace as Fields
from typing import Any, Self

import pytest
from kafka.errors import GroupIdNotFoundError, KafkaProtocolError, NotCoordinatorError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from harness.worlds.clients import ToldGroup, told_group, told_stable_end, told_transaction

ADDRESS = ("127.0.0.1", 1)


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
    left = list(answers)

    class Connection:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def ask(self, request: Any) -> Any:
            request.encode()
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr("harness.worlds.clients.told_state.DirectConnection", Connection)


def fetched(offset: int = 3, error: int = 0, of_partition: int = 0) -> Any:
    partition = Fields(partition_index=0, committed_offset=offset, error_code=of_partition)
    return Fields(groups=[Fields(error_code=error, topics=[Fields(name="t", partitions=[partition])])])


def described(*assigned: list[int], error: int = 0) -> Any:
    members = [Fields(assignment=Fields(topic_partitions=[Fields(partitions=each)])) for each in assigned]
    return Fields(groups=[Fields(error_code=error, members=members)])


def classic(*assignments: bytes, error: int = 0) -> Any:
    return Fields(groups=[Fields(error_code=error, members=[Fields(member_assignment=each) for each in assignments])])


LED, LED_NOTHING = (ConsumerProtocolAssignment(0, each, b"").encode() for each in ([("t", [0])], []))
NOT_OF_848 = described(error=GroupIdNotFoundError.errno)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([fetched(), described([0], [])], ToldGroup({"t-0": 3}, (True, False))),
        ([fetched(of_partition=1), described()], ToldGroup({}, ())),
        ([fetched(), described(error=GroupIdNotFoundError.errno), classic()], ToldGroup({"t-0": 3}, ())),
        ([fetched(), NOT_OF_848, classic(LED, LED_NOTHING, b"")], ToldGroup({"t-0": 3}, (True, False, False))),
        ([fetched(), NOT_OF_848, classic(error=NotCoordinatorError.errno)], ToldGroup({"t-0": 3})),
        ([fetched(error=NotCoordinatorError.errno), described(error=NotCoordinatorError.errno)], ToldGroup()),
        ([fetched(), KafkaProtocolError()], ToldGroup()),
        ([TimeoutError()], ToldGroup()),
    ],
)
def test_a_group_is_told_as_far_as_its_coordinator_answers(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any], told: ToldGroup
) -> None:
    answering(monkeypatch, *answers)
    assert told_group(ADDRESS, "mine", 1.0) == told


@pytest.mark.parametrize(("error", "end"), [(0, 5), (6, None)])
def test_a_last_stable_offset_is_told_by_the_leader_alone(
    monkeypatch: pytest.MonkeyPatch, error: int, end: int | None
) -> None:
    answering(monkeypatch, Fields(topics=[Fields(partitions=[Fields(error_code=error, offset=5)])]))
    assert told_stable_end(ADDRESS, "t-0", 1.0) == end


@pytest.mark.parametrize(("error", "word"), [(0, "Ongoing in epoch 3"), (NotCoordinatorError.errno, None)])
def test_a_transactional_id_is_told_by_its_coordinator_alone(
    monkeypatch: pytest.MonkeyPatch, error: int, word: str | None
) -> None:
    state = Fields(error_code=error, transaction_state="Ongoing", producer_epoch=3)
    answering(monkeypatch, Fields(transaction_states=[state]))
    assert told_transaction(ADDRESS, "p", 1.0) == word
