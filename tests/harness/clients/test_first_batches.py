"""Finding 001: what clients report of batches that a leader refused before it took a later one of the same producer.

Where one of these fails with a newer release, a library or Kafka has changed: docs/findings/001 has to follow.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.harness.clients.first_batches import DELIVERY_MS, JAVA_DELIVERY_MS, REFUSED, Seen, Stage
from tests.harness.clients.senders import Confluent, Java, KafkaPython

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka")]


def after_the_fourth(seen: Seen) -> list[str]:
    """Errors since the fourth batch was accepted; until then the three before it were refused, and nothing else."""
    answers = [(answer.batch.sequence, answer.error) for answer in seen.answers]
    accepted = answers.index((3, "NoError"))
    assert set(answers[:accepted]) == {(0, REFUSED), (1, REFUSED), (2, REFUSED)}
    return [error for _, error in answers[accepted + 1 :]]


def test_librdkafka_reports_batches_as_delivered_that_were_refused_and_never_sent_again(stage: Stage) -> None:
    seen = stage.play(Confluent, DELIVERY_MS)
    assert after_the_fourth(seen) == []
    assert seen.sent[-1].sequence == 3
    assert len({(batch.producer_id, batch.producer_epoch) for batch in seen.sent}) == 1
    assert list(seen.log.values()) == [3]
    assert seen.reports == {0: None, 1: None, 2: None, 3: next(iter(seen.log))}
    assert seen.nowhere == [0, 1, 2]


@pytest.mark.usefixtures("java_client")
def test_kafkas_own_client_sends_them_again_in_vain_and_reports_each_as_timed_out(stage: Stage) -> None:
    seen = stage.play(Java, JAVA_DELIVERY_MS)
    assert set(after_the_fourth(seen)) == {"OutOfOrderSequenceNumberError"}
    assert list(seen.log.values()) == [3]
    assert [seen.reports[number] for number in range(3)] == ["TimeoutException"] * 3
    assert seen.nowhere == []


def test_librdkafka_with_one_request_in_flight_loses_none(stage: Stage) -> None:
    seen = stage.play(partial(Confluent, in_flight=1), DELIVERY_MS)
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert seen.nowhere == []


def test_kafka_python_has_one_batch_under_way_and_loses_none(stage: Stage) -> None:
    seen = stage.play(KafkaPython, DELIVERY_MS)
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert list(seen.reports.values()) == list(seen.log)
    ends = [(answer.batch.sequence, answer.error) for answer in seen.answers[-4:]]
    assert ends == [(number, "NoError") for number in range(4)]
