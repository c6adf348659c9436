"""Transactions from a client's bytes through the core into files, and back."""

import asyncio

import pytest
from client_side import Asked, CannedCore
from kafka.record import MemoryRecords
from lone_broker import LOG, T0, LoneBroker, batches_in
from msgspec.structs import replace

from harness.broker.core import messages as core
from harness.broker.core.transactions import marker_batch
from harness.broker.core.types import ErrorCode
from harness.broker.server.handlers import transactions as handlers
from harness.broker.server.handlers.transactions import TIMEOUT_MS_MAX, TransactionRequests
from harness.broker.server.storage.log import FileLog


def in_transaction(broker, *values, name="one"):
    """Begin a transaction and write these; the identity of its producer."""
    identity = broker.init(name)
    assert broker.add(identity, 0, name=name) == {ErrorCode.NONE}
    for sequence, value in enumerate(values):
        assert broker.put(identity, value, sequence, name=name) == ErrorCode.NONE
    return identity


def values(part):
    """The values that kafka-python reads in a fetch's answer, aborted or not."""
    read = MemoryRecords(bytes(part.records))
    contents = []
    while read.has_next():
        batch = read.next_batch()
        contents += [] if batch.is_control_batch else [record.value for record in batch]
    return contents


def test_an_open_transaction_holds_readers_of_committed_records_back(alone):
    identity = in_transaction(alone, b"a", b"b")
    before = alone.fetch(committed=True)
    assert (values(before), before.high_watermark, before.last_stable_offset) == ([], 2, 0)
    assert (alone.latest(committed=True), alone.latest(committed=False)) == (0, 2)
    other = alone.fetch(committed=False)
    assert (values(other), other.last_stable_offset, other.aborted_transactions) == ([b"a", b"b"], 0, None)
    assert alone.end(identity, commit=True) == ErrorCode.NONE
    after = alone.fetch(committed=True)
    assert (values(after), after.high_watermark, after.last_stable_offset) == ([b"a", b"b"], 3, 3)
    assert after.aborted_transactions == []
    assert alone.latest(committed=True) == 3


def test_readers_of_committed_records_are_told_of_aborted_transactions(alone):
    identity = in_transaction(alone, b"a")
    assert alone.end(identity, commit=False) == ErrorCode.NONE
    assert alone.add(identity, 0) == {ErrorCode.NONE}
    assert alone.put(identity, b"b", 1) == ErrorCode.NONE
    assert alone.end(identity, commit=True) == ErrorCode.NONE
    read = alone.fetch(committed=True)
    assert [(each.producer_id, each.first_offset) for each in read.aborted_transactions] == [(identity[0], 0)]
    assert values(read) == [b"a", b"b"]
    assert alone.fetch(committed=True, offset=2).aborted_transactions == []
    markers = [batch.marker for batch in batches_in(read) if batch.marker is not None]
    assert [(marker.commit, marker.coordinator_epoch) for marker in markers] == [(False, 1), (True, 1)]


def test_the_epoch_of_a_producer_goes_on_after_the_end_of_a_transaction(alone):
    """Clients are offered version 1."""
    identity = in_transaction(alone, b"a")
    assert alone.end(identity, commit=True) == ErrorCode.NONE
    assert alone.end(identity, commit=True) == ErrorCode.NONE
    assert alone.end(identity, commit=False) == ErrorCode.INVALID_TXN_STATE
    assert alone.add(identity, 0, 1) == {ErrorCode.NONE}


def test_a_successor_fences_the_producer_before_it(alone):
    first = in_transaction(alone, b"a")
    answer = alone.ask(alone.transactions.init_producer_id, 22, transactional_id="one", transaction_timeout_ms=60_000)
    assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    second = alone.init()
    assert (second[0], second[1] > first[1]) == (first[0], True)
    assert alone.end(first, commit=True) == ErrorCode.PRODUCER_FENCED
    assert alone.add(first, 0) == {ErrorCode.PRODUCER_FENCED}
    assert alone.put(first, b"late", 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert alone.add((first[0] + 1, 0), 0) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert [each.first_offset for each in alone.fetch(committed=True).aborted_transactions] == [0]


def test_a_broker_that_starts_again_knows_from_its_files_what_is_open_and_who_is_in_charge(alone, tmp_path):
    committed = in_transaction(alone, b"a", name="two")
    assert alone.end(committed, commit=False, name="two") == ErrorCode.NONE
    identity = in_transaction(alone, b"b")
    again = LoneBroker(tmp_path, 2)
    read = again.fetch(committed=True)
    assert (values(read), read.last_stable_offset) == ([b"a"], 2)
    assert [(each.producer_id, each.first_offset) for each in read.aborted_transactions] == [(committed[0], 0)]
    assert again.put(identity, b"c", 1) == ErrorCode.NONE
    assert again.end(identity, commit=True) == ErrorCode.NONE
    assert again.fetch(committed=True).last_stable_offset == 5


def test_a_coordinator_that_starts_again_finishes_what_it_had_decided(alone, tmp_path):
    identity = in_transaction(alone, b"a")
    log = alone.logs[LOG]
    before = log.end_offset
    assert alone.end(identity, commit=True) == ErrorCode.NONE
    assert log.end_offset == before + 2  # The decision, and that all is done.
    alone.logs[LOG].truncate_to(before + 1)
    alone.logs[T0].truncate_to(1)
    again = LoneBroker(tmp_path, 2)
    assert again.end(identity, commit=True) == ErrorCode.CONCURRENT_TRANSACTIONS  # And now it looks at its log.
    again.look()
    assert again.fetch(committed=True).last_stable_offset == 2
    assert again.end(identity, commit=True) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"transactional_id": "", "transaction_timeout_ms": 1}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "x", "transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (
            {"transactional_id": "x", "transaction_timeout_ms": TIMEOUT_MS_MAX + 1},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
    ],
)
def test_an_impossible_transactional_id_or_timeout_never_reaches_the_core(values, error):
    canned = CannedCore()
    requests = TransactionRequests(canned.gateway, unused, None)
    assert Asked(requests.init_producer_id, 22, **values).answer.error_code == error
    assert canned.asked == []


def unused():
    raise AssertionError("nobody asks for the image")


def test_a_client_of_a_silent_coordinator_is_told_to_look_for_another(monkeypatch):
    monkeypatch.setattr(handlers, "COORDINATOR_LIMIT_S", 0.01)
    canned = CannedCore()
    requests = TransactionRequests(canned.gateway, unused, None)

    async def ask():
        values = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, "committed": True}
        asked = Asked(requests.end, 26, **values)
        await asyncio.sleep(0.05)
        return asked

    asked = asyncio.run(ask())
    assert asked.answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    canned.answer(0, core.EndTxnResponse(0, ErrorCode.NONE))  # Too late; a second answer would be refused.


def test_a_log_in_a_file_gives_a_coordinator_what_it_wrote_and_readers_a_marker(tmp_path):
    log = FileLog(tmp_path / "log")
    pairs = ((b"key", b"value"), (b"k" * 300, b"v" * 300))
    log.append(core.RecordBatch(2, 0, pairs, 0, 3))
    log.append(core.RecordBatch(1, 0, pairs[:1], 2, 3, 7, 1, transactional=True))
    log.append(replace(marker_batch(7, 1, core.Marker(True, 5, 1)), base_offset=3, leader_epoch=3))
    log.close()
    read = FileLog(tmp_path / "log").read(0, 4, 100_000)
    assert [log.as_written(batch).records for batch in read] == [pairs, pairs[:1], ()]
    assert [(batch.transactional, batch.producer_id, batch.leader_epoch) for batch in read] == [
        (False, -1, 3),
        (True, 7, 3),
        (True, 7, 3),
    ]
    assert [batch.marker and (batch.marker.commit, batch.marker.coordinator_epoch) for batch in read] == [
        None,
        None,
        (True, 5),
    ]


# --- offsets of groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", ["a", "b", "c", "d"])
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_with_their_transaction(alone, tmp_path, group, commit):
    assert alone.offset_of(group) == (ErrorCode.NONE, -1)
    identity = alone.init()
    assert alone.add_offsets(identity, group) == ErrorCode.NONE
    assert alone.commit_offset(identity, group, 5) == ErrorCode.NONE
    assert alone.offset_of(group) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert alone.offset_of(group, stable=False) == (ErrorCode.NONE, -1)
    again = LoneBroker(tmp_path, 2)
    assert again.offset_of(group) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert again.end(identity, commit=commit) == ErrorCode.NONE
    expected = (ErrorCode.NONE, 5 if commit else -1)
    assert again.offset_of(group) == expected
    assert LoneBroker(tmp_path, 3).offset_of(group) == expected


def test_offsets_of_a_producer_that_was_fenced_are_refused(alone):
    first = alone.init()
    alone.init()
    assert alone.add_offsets(first, "g") == ErrorCode.PRODUCER_FENCED


def test_a_member_commits_in_a_transaction_in_its_present_generation_only(alone):
    """A member whose assignment is not there yet may, too: it has the one of the generation before."""
    values = {"group_id": "g", "session_timeout_ms": 500, "rebalance_timeout_ms": 500, "protocol_type": "consumer"}
    protocols = [{"name": "range", "metadata": b""}]
    name = alone.ask(alone.groups.join, 11, 3, protocols=protocols, member_id="", **values).member_id
    identity = alone.init()
    alone.add_offsets(identity, "g")
    for member, generation, error in [
        (name, 0, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        (name, 1, ErrorCode.NONE),
    ]:
        assert alone.commit_offset(identity, "g", 5, member_id=member, generation_id=generation) == error
    assert alone.commit_offset(identity, "g", 6) == ErrorCode.NONE
