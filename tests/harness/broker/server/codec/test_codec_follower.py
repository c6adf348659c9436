import contextlib
import random
from pathlib import Path

import pytest
from batch_maker import batch
from client_side import T0, T1, U0, CannedCore, topic_ids
from msgspec.structs import replace

from harness.broker.core import messages as core
from harness.broker.core.messages import EpochEnd
from harness.broker.core.transactions import marker_batch
from harness.broker.core.types import ErrorCode, Image
from harness.broker.server import codec
from harness.broker.server.codec import APIS, decode_request, encode_response
from harness.broker.server.codec.follower import decode_response, encode_request
from harness.broker.server.codec.wire import ApiKey, request_frame
from harness.broker.server.handlers.data import DataRequests
from harness.broker.server.handlers.gateway import Call
from harness.broker.server.handlers.transactions import MARKER_LIMIT_MS, TransactionRequests
from harness.broker.server.links import BadFrameError


@pytest.fixture
def ids():
    return topic_ids()


# --- as a follower -------------------------------------------------------------------------------------------------


def over_the_wire(request, response, ids):
    """The core's answer to a follower's request after both crossed the wire; and what the leader's core was asked."""
    canned = CannedCore()
    leader = DataRequests(canned.gateway, {}, ids)
    handle = leader.fetch if isinstance(request, core.Fetch) else leader.list_offsets
    if isinstance(request, core.OffsetForLeaderEpoch):
        handle = leader.offset_for_leader_epoch
    if isinstance(request, core.WriteTxnMarkers):
        handle = TransactionRequests(canned.gateway, Image, None).write_markers
    header, understood = decode_request(memoryview(encode_request(request, 9, "ackproof-broker-1", ids))[4:])
    answers = []
    handle(Call(1, header, "", understood, answers.append))
    canned.answer(0, response)
    answer = encode_response(header, answers[0])
    return canned.questions[0], decode_response(request, memoryview(answer)[8:], ids)


def test_a_followers_fetch_crosses_the_wire_whole(ids):
    wanted = (core.FetchPartition(T0, 5, 3, 2, 1000), core.FetchPartition(U0, 0, 1, -1, 50))
    request = core.Fetch(77, 1, 500, wanted, broker_epoch=12)
    parts = (
        core.FetchedPartition(T0, ErrorCode.NONE, 8, 0, None, (batch(5, 2, epoch=3),)),
        core.FetchedPartition(U0, ErrorCode.NONE, 4, 0, EpochEnd(1, 2)),
    )
    understood, answer = over_the_wire(request, core.FetchResponse(0, parts), ids)
    assert understood == core.Fetch(0, 1, 500, wanted, broker_epoch=12)
    assert answer.correlation == 77
    first, second = answer.partitions
    assert (first.partition, first.high_watermark, first.diverging) == (T0, 8, None)
    assert [(b.base_offset, b.count, b.leader_epoch) for b in first.batches] == [(5, 2, 3)]
    assert (second.partition, second.diverging, second.batches) == (U0, EpochEnd(1, 2), ())


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_followers_fetch_error_crosses_the_wire(ids, error):
    request = core.Fetch(7, 1, 0, (core.FetchPartition(T0, 5),))
    refused = core.FetchResponse(0, (core.FetchedPartition(T0, error),))
    assert over_the_wire(request, refused, ids)[1].partitions[0].error == error


def test_a_followers_questions_cross_the_wire(ids):
    epoch = core.OffsetForLeaderEpoch(5, T1, 4, 6, 1)
    response = core.OffsetForLeaderEpochResponse(5, T1, ErrorCode.NONE, EpochEnd(3, 12))
    understood, answer = over_the_wire(epoch, response, ids)
    assert understood.replica_id == 1
    assert answer == response
    offset = core.ListOffsets(6, T1, -2, 1, 8)
    understood, answer = over_the_wire(offset, core.ListOffsetsResponse(0, T1, ErrorCode.NONE, 3, 8), ids)
    assert understood == core.ListOffsets(0, T1, -2, 1, 8)
    assert answer == core.ListOffsetsResponse(6, T1, ErrorCode.NONE, 3, 8)


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_coordinators_marker_crosses_the_wire(ids, error):
    batch_ = marker_batch(7, 3, core.Marker(False, 5, 1))
    request = core.WriteTxnMarkers(77, T1, -1, 10**9, batch_)
    understood, answer = over_the_wire(request, core.ProduceResponse(0, T1, error), ids)
    assert understood == core.WriteTxnMarkers(0, T1, -1, MARKER_LIMIT_MS, batch_)
    assert answer == core.ProduceResponse(77, T1, error)


def test_a_damaged_batch_from_the_leader_is_an_error_of_its_partition_alone(ids):
    request = core.Fetch(7, 1, 0, (core.FetchPartition(T0, 5), core.FetchPartition(T1, 5)))
    damaged = replace(batch(5, 2), records=batch(5, 2).records[:-1] + b"!")
    parts = [
        core.FetchedPartition(partition, ErrorCode.NONE, 8, 0, None, (b,))
        for partition, b in ((T0, damaged), (T1, batch(5, 2)))
    ]
    bad, good = over_the_wire(request, core.FetchResponse(0, tuple(parts)), ids)[1].partitions
    assert (bad.error, bad.batches) == (ErrorCode.CORRUPT_MESSAGE, ())
    assert (good.error, len(good.batches)) == (ErrorCode.NONE, 1)


# --- what is refused -----------------------------------------------------------------------------------------------


def test_unknown_apis_and_versions_are_refused_by_name():
    with pytest.raises(BadFrameError, match=r"GetTelemetrySubscriptions \(API 71\) is not served"):
        decode_request(memoryview(b"\0\x47\0\0\0\0\0\x01\xff\xff"))
    with pytest.raises(BadFrameError, match="3 to 12, not 2"):
        decode_request(memoryview(b"\0\0\0\x02\0\0\0\x01\xff\xff"))


@pytest.mark.parametrize("key", sorted(APIS))
def test_a_request_that_is_cut_short_anywhere_is_refused(key):
    version = APIS[key].versions[1]
    samples = {
        0: {
            "acks": 1,
            "timeout_ms": 1,
            "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": b"xy"}]}],
        },
        3: {"topics": [{"name": "t"}]},
        11: {"group_id": "g", "session_timeout_ms": 1, "member_id": "m", "protocol_type": "c", "protocols": []},
    }
    frame = request_frame(APIS[key].request, samples.get(key, {}), version, 1, "c")[4:]
    decode_request(memoryview(frame))
    for size in range(len(frame)):
        with pytest.raises(BadFrameError):
            decode_request(memoryview(frame[:size]))
    if key != ApiKey.METADATA:  # librdkafka's may be too long
        with pytest.raises(BadFrameError, match="takes"):
            decode_request(memoryview(frame + b"\0"))


def test_garbage_is_refused_and_never_anything_else():
    chance = random.Random(4)
    for _ in range(3_000):
        key = chance.choice(sorted(APIS))
        low, high = APIS[key].versions
        head = key.to_bytes(2, "big") + chance.randint(low, high).to_bytes(2, "big") + b"\0\0\0\1\0\1c\0"
        body = bytes(chance.choice((0, 0, 0, 1, 2, chance.randrange(256))) for _ in range(chance.randrange(60)))
        with contextlib.suppress(BadFrameError):
            assert decode_request(memoryview(head + body))[0].api_key == key


PROTOCOL_CLIENTS = {
    f"harness/worlds/clients/{name}.py"
    for name in ("direct_connection", "direct", "listed_groups", "membership", "told_state")
}
#: Scripts of findings that send or read single requests of a client.
PROTOCOL_SCRIPTS = {
    f"harness/lab/findings/{name}.py" for name in ("group_requests", "slow_network", "truncated_commits")
}


def test_only_the_codec_package_and_direct_clients_import_the_protocol_classes():
    root = Path(codec.__file__).parents[4]
    users = {
        path.relative_to(root).as_posix()
        for package in ("harness", "nemesis", "checkers", "workloads")
        for path in (root / package).rglob("*.py")
        if "kafka.protocol" in path.read_text().replace("``kafka.protocol``", "") and path.name != "wire.py"
    }
    assert {user for user in users if not user.startswith("harness/broker/server/codec/")} == (
        PROTOCOL_CLIENTS | PROTOCOL_SCRIPTS
    )
