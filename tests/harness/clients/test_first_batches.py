"""Finding 001: what clients report of batches that a leader refused before it took a later one of the same producer.

Where one of these fails with a newer release, a library or Kafka has changed: docs/findings/001 has to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from tests.harness.clients.first_batches import DELIVERY_MS, JAVA_DELIVERY_MS, REFUSED, Seen, Stage
from tests.harness.clients.senders import Confluent, KafkaPython, Sender

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("findings")]


#: A busy machine may break the late batch's connection, so that those before it are sent again ahead of it, and taken.
TRIES: Final = 3


def until_the_fourth(seen: Seen) -> set[tuple[int, str]]:
    """Sequences and errors of the answers before the fourth batch was accepted."""
    answers = [(answer.batch.sequence, answer.error) for answer in seen.answers]
    return set(answers[: answers.index((3, "NoError"))])


def after_the_fourth(seen: Seen) -> list[str]:
    """Errors since the fourth batch was accepted."""
    errors = [(answer.batch.sequence, answer.error) for answer in seen.answers]
    return [error for _, error in errors[errors.index((3, "NoError")) + 1 :]]


def played(stage: Stage, make: Callable[[str, int], Sender], delivery_ms: int) -> Seen:
    """A try in which the leader refused the first three batches, and nothing else, before it took the fourth."""
    for number in range(TRIES):
        seen = stage.play(make, delivery_ms << number)
        if until_the_fourth(seen) == {(0, REFUSED), (1, REFUSED), (2, REFUSED)}:
            return seen
    pytest.fail(f"in none of {TRIES} tries the fourth batch came first; in the last: {until_the_fourth(seen)}")


def test_librdkafka_reports_batches_as_delivered_that_were_refused_and_never_sent_again(stage: Stage) -> None:
    seen = played(stage, Confluent, DELIVERY_MS)
    assert after_the_fourth(seen) == []
    assert seen.sent[-1].sequence == 3
    assert len({(batch.producer_id, batch.producer_epoch) for batch in seen.sent}) == 1
    assert list(seen.log.values()) == [3]
    assert seen.reports == {0: None, 1: None, 2: None, 3: next(iter(seen.log))}
    assert seen.nowhere == [0, 1, 2]


def test_kafkas_own_client_sends_them_again_in_vain_and_reports_each_as_timed_out(
    stage: Stage, java_client: Callable[[str, int], Sender]
) -> None:
    seen = played(stage, java_client, JAVA_DELIVERY_MS)
    assert set(after_the_fourth(seen)) == {"OutOfOrderSequenceNumberError"}
    assert list(seen.log.values()) == [3]
    assert [seen.reports[number] for number in range(3)] == ["TimeoutException"] * 3
    assert seen.nowhere == []


def test_librdkafka_with_one_request_in_flight_loses_none(stage: Stage) -> None:
    seen = stage.play(partial(Confluent, in_flight=1), DELIVERY_MS, under_way=1)
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert seen.nowhere == []


def test_kafka_python_has_one_batch_under_way_and_loses_none(stage: Stage) -> None:
    seen = stage.play(KafkaPython, DELIVERY_MS, under_way=1)
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert list(seen.reports.values()) == list(seen.log)
    ends = [(answer.batch.sequence, answer.error) for answer in seen.answers[-4:]]
    assert ends == [(number, "NoError") for number in range(4)]
