"""Finding 009: a late request to end a transaction ends the next one of the same producer.

Where this fails with a newer release, Kafka or a library has changed: docs/findings/009 has to follow.
"""

from __future__ import annotations

from typing import Final

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.late_requests import Run, Seen, played
from tests.harness.needs import needs_root

pytestmark = [
    pytest.mark.system,
    pytest.mark.root,
    needs_root("ip", "nft", "ss"),
    pytest.mark.finding,
]

TORN: Final[Run] = ("confluent-kafka", "abort", "end")
READ: Final[Run] = ("confluent-kafka", "commit", "end")
NOT_HELD: Final[Run] = ("confluent-kafka", "abort", "nothing")
#: Clients that raise the epoch: with every transaction, or by a new producer after an end that is not known.
SAFE: Final[tuple[Run, ...]] = (("java", "abort", "end"), ("kafka-python", "abort", "end"))


@pytest.fixture(scope="module")
def seen(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> dict[Run, Seen]:
    return played(str(real_kafka.version), (TORN, READ, NOT_HELD, *SAFE), tmp_path_factory.mktemp("run"))


def test_a_late_abort_tears_the_next_transaction_and_what_was_committed_is_lost(seen: dict[Run, Seen]) -> None:
    torn = seen[TORN]
    assert (torn.first, torn.second, torn.struck) == ("aborted", "committed", True)
    assert torn.dropped > 0
    assert (torn.counts["torn-transaction"], torn.counts["lost-write"]) == (1, 1)


def test_a_late_commit_commits_what_the_next_transaction_aborted(seen: dict[Run, Seen]) -> None:
    read = seen[READ]
    assert (read.first, read.second, read.struck) == ("committed", "aborted", True)
    assert read.counts == {"aborted-read": 1}


def test_where_nothing_is_held_nothing_is_found(seen: dict[Run, Seen]) -> None:
    assert seen[NOT_HELD] == Seen("aborted", "committed", dropped=0, struck=False, counts={})


@pytest.mark.parametrize("run", SAFE)
def test_a_request_with_an_epoch_of_the_past_is_refused(seen: dict[Run, Seen], run: Run) -> None:
    safe = seen[run]
    assert safe.dropped > 0
    assert (safe.second, safe.struck, safe.counts) == ("committed", False, {})
