"""Finding 013: what a producer with one request in flight, and without idempotence, sends after a refused batch.

Where one of these fails with a newer release, a library has changed: docs/findings/013 has to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from tests.harness.clients.first_batches import READY_US, REFUSED, Seen, Stage
from tests.harness.clients.senders import RECORDS, Confluent, Sender

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("findings")]


#: A busy machine may need longer to make a request ready, or have the leader refuse another one.
TRIES: Final = 3


def overtaken(stage: Stage) -> Seen:
    """A try in which the order changed, else the last one. Each further try has twice the time."""
    for doubling in range(TRIES):
        seen = stage.refuse_the_first(partial(Confluent, in_flight=1, idempotent=False), READY_US << doubling)
        if list(seen.log.values()) == [1, 0, 2, 3] and len(seen.answers) == RECORDS + 1:
            break
    return seen


def test_librdkafka_has_the_next_request_ready_and_sends_it_before_the_refused_one(stage: Stage) -> None:
    seen = overtaken(stage)
    assert [answer.error for answer in seen.answers] == [REFUSED, *["NoError"] * 4]
    assert list(seen.log.values()) == [1, 0, 2, 3]
    assert {offset: number for number, offset in seen.reports.items()} == seen.log, "all are reported as delivered"


@pytest.mark.parametrize("stage", ["processes"], indirect=True)
def test_kafkas_own_client_sends_the_refused_batch_again_first(
    stage: Stage, java_client: Callable[..., Sender]
) -> None:
    seen = stage.refuse_the_first(partial(java_client, in_flight=1, idempotent=False))
    assert list(seen.log.values()) == [0, 1, 2, 3]
    assert list(seen.reports.values()) == list(seen.log)
