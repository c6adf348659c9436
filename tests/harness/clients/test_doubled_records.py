"""Findings 003 and 004: producers that write records again which are in the log.

Where one of these fails with a newer release, the library has changed: the page of the finding has to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.harness.clients.first_batches import UNDER_WAY, Seen, Stage
from tests.harness.clients.senders import RECORDS, Confluent, Sender
from tests.harness.needs import ON_KAFKA

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("findings")]


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


#: The most age of the client's knowledge of leaders. It asks over the connection that gives no answers if not all
#: five are under way by then; a record's time is over after four times that.
METADATA_MS = 3_500
TRIES = 3


def overtaken(stage: Stage, client: Callable[..., Sender]) -> Seen:
    """Two records reach the next leader while five are under way to the one before, and the second has time left.

    Where its time is over too, the rest are known again: nothing is refused any more, and nothing written again. Each
    further try has twice the time, for a machine that does not keep up.
    """
    for doubling in range(TRIES):
        metadata_ms = METADATA_MS << doubling
        seen = stage.overtake(partial(client, metadata_ms=metadata_ms), 4 * metadata_ms)
        in_order = [batch.sequence for batch in seen.sent[: UNDER_WAY + 2]] == list(range(UNDER_WAY + 2))
        if in_order and seen.reports[1] != "TimeoutException":
            return seen
    raise AssertionError(f"this machine did not keep up, {TRIES} times")


def test_kafkas_own_client_writes_records_again_when_more_than_five_batches_were_under_way(
    stage: Stage, java_client: Callable[..., Sender]
) -> None:
    seen = overtaken(stage, java_client)
    offsets, records = list(seen.log), list(seen.log.values())
    again = list(range(1, UNDER_WAY))
    assert records == [*range(UNDER_WAY + 2), *again]
    assert seen.reports.pop(0) == "TimeoutException"
    second = dict(zip(again, offsets[UNDER_WAY + 2 :], strict=True))
    assert {number: seen.reports[number] for number in again} == second, "reported at their second offsets"
    assert {batch.producer_epoch for batch in seen.sent[: UNDER_WAY + 2]} == {0}
    assert seen.sent[-1].producer_epoch > 0


@pytest.mark.parametrize("stage", [ON_KAFKA], indirect=True)
def test_librdkafka_begins_a_new_epoch_when_a_batch_comes_after_a_refused_one(stage: Stage) -> None:
    seen = stage.lose_an_answer(Confluent)
    assert list(seen.log.values()) == [0, 0, 1, 2, 3]
    assert list(seen.reports.values()) == list(seen.log)[1:], "all are reported as delivered, none expired"
    again = [(batch.producer_epoch, batch.sequence) for batch in seen.sent[-RECORDS:]]
    assert again == [(1, sequence) for sequence in range(RECORDS)]
    assert seen.answers[-RECORDS - 1].error == "OutOfOrderSequenceNumberError"


@pytest.mark.parametrize("stage", ["processes"], indirect=True)
def test_kafkas_own_client_keeps_the_epoch_after_a_refused_batch(
    stage: Stage, java_client: Callable[[str, int], Sender]
) -> None:
    seen = stage.lose_an_answer(java_client)
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert list(seen.reports.values()) == list(seen.log)
    assert {batch.producer_epoch for batch in seen.sent} == {0}
