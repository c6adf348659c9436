"""Finding 003: a producer of librdkafka doubles what is in the log when another record's time is over.

Where one of these fails with a newer release, the library has changed: docs/findings/003 has to follow.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.harness.clients.first_batches import Stage
from tests.harness.clients.senders import RECORDS, Confluent, Sender

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka")]


def test_librdkafka_sends_records_again_in_a_new_epoch_that_are_in_the_log(stage: Stage) -> None:
    seen = stage.withhold_answers(Confluent)
    assert seen.reports.pop(0) == "_MSG_TIMED_OUT"
    assert list(seen.log.values()) == [0, 1, 2, 3, 1, 2, 3]
    again = list(seen.log)[RECORDS:]
    assert list(seen.reports.values()) == again, "each is reported once, at its second offset"
    assert [(batch.producer_epoch, batch.sequence) for batch in seen.sent] == [
        *((0, sequence) for sequence in range(4)),
        *((1, sequence) for sequence in range(3)),
    ]


def test_kafkas_own_client_sends_them_again_as_the_same_batches(
    stage: Stage, java_client: Callable[[str, int], Sender]
) -> None:
    seen = stage.withhold_answers(java_client)
    assert seen.reports.pop(0) == "TimeoutException"
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert list(seen.reports.values()) == list(seen.log)[1:]
    assert {batch.producer_epoch for batch in seen.sent} == {0}
