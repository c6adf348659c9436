"""Finding 006: a broker that was away longer than markers and tombstones stay, and is elected.

Where this fails with a newer release, Kafka has changed: docs/findings/006 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.away import ABORTED, STUCK, Played, State, Trial, played

pytestmark = [pytest.mark.system, pytest.mark.finding]


@pytest.fixture(scope="module")
def seen(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return played(Trial(str(real_kafka.version)), tmp_path_factory.mktemp("run"))


def test_before_the_election_all_is_as_it_was_acknowledged(seen: Played) -> None:
    assert seen.cleaned
    end = seen.before.ends[1]
    assert seen.before == State(
        group={ABORTED: 1, STUCK: 2},
        deleted={},
        aborted={"k": "committed", "j": "committed"},
        stuck={"k": "plain"},
        ends=(end, end),
    )


def test_after_it_an_aborted_commit_counts_and_a_deleted_group_is_back(seen: Played) -> None:
    assert (seen.after.group, seen.after.deleted) == ({ABORTED: 3, STUCK: 2}, {ABORTED: 5})


def test_after_it_an_aborted_value_stands_in_the_place_of_the_committed_one(seen: Played) -> None:
    assert seen.after.aborted == {"k": "ABORTED", "j": "committed"}


def test_after_it_the_last_stable_offset_stands_before_a_committed_transaction(seen: Played) -> None:
    assert seen.after.stuck == {}
    assert seen.after.ends[0] < seen.after.ends[1]


def test_with_an_empty_disk_nothing_comes_back(real_kafka: Installation, tmp_path: Path) -> None:
    """The control: all else is the same."""
    control = played(Trial(str(real_kafka.version), wiped=True), tmp_path)
    assert control.cleaned
    assert control.before == control.after
