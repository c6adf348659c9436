"""Compacted topics on three brokers: each cleans for itself, copies have gaps, and an absence brings back a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.core.messages import Deletion
from harness.broker.core.types import BrokerConfig, TopicConfig
from harness.ground.observations import LogCleaned
from tests.harness.broker.core.compacted import COMPACTED, record, records, table

MakeLab = Callable[..., Any]


def write(cluster: Any, *keys: str) -> None:
    """Write records to the leader, in half a second each, so that segments end."""
    for key in keys:
        cluster.write_ok(cluster.state().leader, (record(key),))
        cluster.run(600)


def held(cluster: Any, node: int) -> list[str]:
    return [name for _, name in records(cluster.log(node))]


def stop(cluster: Any, node: int) -> None:
    """Stop a broker in order."""
    cluster.cluster.stop(node)
    cluster.wait(lambda: cluster.cluster.broker(node) is None)


def test_each_replica_cleans_for_itself(lab: MakeLab) -> None:
    cluster = lab(None, TopicConfig(**COMPACTED))
    write(cluster, "a", "b", "a", "c", "b")
    cluster.run(2_000)
    assert all(held(cluster, node) == held(cluster, 0) for node in range(3))
    assert held(cluster, 0)[:2] != ["a", "b"]
    assert {fact.records for fact in cluster.seen(LogCleaned)} - {0}
    assert len(cluster.seen(LogCleaned)) >= 3
    assert len({cluster.log_end(node) for node in range(3)}) == 1


def test_logs_of_other_topics_are_never_cleaned(lab: MakeLab) -> None:
    cluster = lab(None, TopicConfig(segment_ms=1))
    write(cluster, "a", "a", "a", "a")
    cluster.run(2_000)
    assert cluster.records(0) == ["base", *[(record("a"),)] * 4]
    assert not cluster.seen(LogCleaned)


def test_an_empty_follower_copies_a_cleaned_log(lab: MakeLab) -> None:
    cluster = lab(None, TopicConfig(**COMPACTED))
    write(cluster, *"abababababab")
    cluster.run(2_000)
    cluster.kill(2)
    cluster.wipe(2)
    cluster.fence(2)
    cluster.start(2)
    cluster.settle()
    assert cluster.log_end(2) == cluster.log_end(0) == 12
    assert records(cluster.log(2)) == records(cluster.log(0))
    assert len(records(cluster.log(2))) < 12
    cluster.move_leader(2)
    cluster.wait(lambda: cluster.leads(2))
    write(cluster, "a", "c")
    cluster.settle()
    assert table(cluster.log(0).batches) == table(cluster.log(2).batches)


def test_a_leader_that_returns_cuts_off_what_was_not_committed_behind_a_gap(lab: MakeLab) -> None:
    cluster = lab(None, TopicConfig(**{**COMPACTED, "min_insync_replicas": 2}))
    write(cluster, *"abababab")
    cluster.run(2_000)
    cluster.isolate(0)
    cluster.write(0, (record("lost"),), acks=1)
    cluster.run(100)
    assert cluster.log_end(0) == 9
    cluster.wait(lambda: cluster.leads(1))
    write(cluster, "c", "d")
    cluster.heal()
    cluster.settle()
    assert "lost" not in held(cluster, 0)
    assert table(cluster.log(0).batches) == table(cluster.log(1).batches)
    assert cluster.log_end(0) == cluster.log_end(1) == 10


@pytest.mark.parametrize(
    ("retention_ms", "waits", "wiped", "returned"),
    [
        (1_000, False, False, True),
        (3_600_000, False, False, False),
        (1_000, False, True, False),
        (1_000, True) + 2 * (False,),
    ],
)
def test_a_deleted_key_is_back_under_a_broker_that_was_away_for_longer_than_the_retention(
    lab: MakeLab, retention_ms: int, waits: bool, wiped: bool, returned: bool
) -> None:
    topic = TopicConfig(**{**COMPACTED, "delete_retention_ms": retention_ms, "min_insync_replicas": 2})
    cluster = lab(BrokerConfig(tombstones_wait_for_replicas=waits), topic)
    write(cluster, "a", "b")
    stop(cluster, 2)
    write(cluster, "-a", "c", "d", "e", "f", "g")
    cluster.run(2_000)
    assert "a" not in held(cluster, 0)
    assert ("-a" in held(cluster, 0)) is (waits or retention_ms > 1_000)
    if wiped:
        cluster.wipe(2)
    cluster.start(2)
    cluster.settle()
    cluster.move_leader(2)
    cluster.wait(lambda: cluster.leads(2))
    write(cluster, "h")
    assert ("a" in table(cluster.log(2).batches)) is returned
    assert "a" not in table(cluster.log(0).batches)
    write(cluster, *"ijklm")
    assert "-a" not in held(cluster, 2) or retention_ms > 1_000


def test_where_a_leader_opens_its_epoch_with_a_record_of_its_own_segments_end_too(lab: MakeLab) -> None:
    by_majority = BrokerConfig(commit_rule="majority", leader_election="largest-epoch-and-log-end")
    cluster = lab(by_majority, TopicConfig(**COMPACTED))
    write(cluster, *"abababab")
    cluster.run(2_000)
    assert len(cluster.log(0).segments) > 1
    assert len(records(cluster.log(0))) < 8


def test_a_tombstone_is_told_from_a_record(lab: MakeLab) -> None:
    cluster = lab(None, TopicConfig(**COMPACTED))
    write(cluster, "a", "-a")
    assert [type(entry) is Deletion for batch in cluster.log(0).batches for entry in batch.records] == [False, True]
