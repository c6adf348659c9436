"""Operators ask about producers and transactions: from a client's bytes through the core and back."""

import time
from types import SimpleNamespace

import pytest
from client_side import Asked, versions
from lone_broker import IMAGE, LoneBroker

from harness.broker.core.transaction_coordinator import TransactionRecord, TransactionState
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.broker.server.handlers import reports
from harness.broker.server.handlers.reports import Reports


def producers(asker, *partitions, key=61, version=0):
    """The error of each log partition and its producers: epoch, last sequence, time, coordinator, open since."""
    topics = [{"name": partition.topic, "partition_indexes": [partition.partition]} for partition in partitions]
    answer = Asked(asker.describe_producers, key, version, topics=topics).answer
    return [
        (
            part.error_code,
            {
                each.producer_id: (
                    each.producer_epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    each.current_txn_start_offset,
                )
                for each in part.active_producers
            },
        )
        for topic in answer.topics
        for part in topic.partitions
    ]


def listed(asker, version=1, **filters):
    answer = Asked(asker.list_transactions, 66, version, **{"state_filters": [], "producer_id_filters": []} | filters)
    rows = {row.transactional_id: row.transaction_state for row in answer.answer.transaction_states}
    return answer.answer.error_code, rows, answer.answer.unknown_state_filters


def described(asker, *names, key=65, version=0):
    return Asked(asker.describe_transactions, key, version, transactional_ids=list(names)).answer.transaction_states


@pytest.mark.parametrize(("key", "version"), versions(61))
def test_producers_are_described_as_the_replica_has_them(alone, tmp_path, key, version):
    open_, ended = alone.init("open"), alone.init("ended")
    for name, identity in (("ended", ended), ("open", open_)):
        alone.add(identity, 0, name=name)
        alone.put(identity, b"a", 0, name=name)
    alone.end(ended, commit=False, name="ended")
    expected = {open_[0]: (0, 0, 1000, -1, 1), ended[0]: (0, 0, 1000, 1, -1)}
    t0, elsewhere, nowhere = TopicPartition("t", 0), TopicPartition("t", 9), TopicPartition("gone", 0)
    assert producers(alone.reports, t0, key=key, version=version) == [(ErrorCode.NONE, expected)]
    assert producers(LoneBroker(tmp_path, 2).reports, t0) == [(ErrorCode.NONE, expected)]
    assert producers(alone.reports, elsewhere, nowhere) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})] * 2
    assert producers(Reports(lambda: IMAGE, {}, None), t0) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, {})]


@pytest.mark.parametrize(("key", "version"), versions(66))
def test_transactions_are_listed_by_state_producer_and_time(alone, monkeypatch, key, version):
    assert key == 66
    alone.init("empty")
    open_ = alone.init("open")
    alone.add(open_, 0, name="open")
    every = {"empty": "Empty", "open": "Ongoing"}
    assert listed(alone.reports, version) == (ErrorCode.NONE, every, [])
    assert listed(alone.reports, version, state_filters=["Ongoing", "Odd"])[1:] == ({"open": "Ongoing"}, ["Odd"])
    assert listed(alone.reports, version, state_filters=["Odd"])[1:] == ({}, ["Odd"])
    assert listed(alone.reports, version, producer_id_filters=[open_[0]])[1] == {"open": "Ongoing"}
    assert listed(alone.reports, version, state_filters=["Dead", "PrepareEpochFence"])[1:] == ({}, [])
    if version >= 1:
        monkeypatch.setattr(reports, "now_us", lambda: 5_000_000)
        assert listed(alone.reports, version, duration_filter=4_999)[1] == every
        assert listed(alone.reports, version, duration_filter=5_000)[1] == {"empty": "Empty"}


@pytest.mark.parametrize(("key", "version"), versions(65))
def test_a_transaction_is_described_by_its_coordinator(alone, monkeypatch, key, version):
    monkeypatch.setattr(reports, "now_us", lambda: 7_000_000)
    monkeypatch.setattr(reports, "time", SimpleNamespace(time_ns=lambda: 1_007 * 10**9))
    identity = alone.init("open")
    alone.add(identity, 0, 1, name="open")
    alone.add_offsets(identity, "g", name="open")
    row, unknown = described(alone.reports, "open", "unknown", key=key, version=version)
    assert (row.error_code, row.transaction_state, row.transaction_timeout_ms) == (0, "Ongoing", 60_000)
    assert (row.producer_id, row.producer_epoch) == identity
    assert row.transaction_start_time_ms == 1_000_000
    assert {topic.topic: len(topic.partitions) for topic in row.topics} == {"t": 2, "__consumer_offsets": 1}
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    alone.end(identity, commit=True, name="open")
    [row] = described(alone.reports, "open")
    assert (row.transaction_state, row.transaction_start_time_ms, row.topics) == ("CompleteCommit", 1_000_000, [])
    alone.init("open")
    [row] = described(alone.reports, "open")
    assert (row.transaction_state, row.transaction_start_time_ms) == ("Empty", -1)


@pytest.mark.parametrize(
    ("error", "of_list"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_a_broker_that_does_not_coordinate_says_so_and_lists_nothing(error, of_list):
    away = Reports(lambda: IMAGE, {}, lambda: (error, {}))
    assert listed(away) == (of_list, {}, [])
    assert [row.error_code for row in described(away, "one")] == [error]


def test_a_time_is_one_on_the_wall():
    record = TransactionRecord(1, 0, 9, TransactionState.PREPARE_ABORT, begun_ms=reports.now_us() // 1000 - 500)
    [row] = described(Reports(lambda: IMAGE, {}, lambda: (ErrorCode.NONE, {"one": record})), "one")
    assert row.transaction_state == "PrepareAbort"
    assert 400 <= time.time() * 1000 - row.transaction_start_time_ms <= 5_000
