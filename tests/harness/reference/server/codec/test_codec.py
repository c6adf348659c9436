import uuid

import pytest
from batch_maker import batch, records
from client_side import STATE, T0, T1, U0, answered, asked, topic_ids

from harness.reference.core import messages as core
from harness.reference.core.types import BrokerState, EpochEnd, ErrorCode, TopicConfig, TopicState
from harness.reference.server import requests as plain
from harness.reference.server.codec import ADVERTISED, APIS, decode_request, encode_response
from harness.reference.server.storage.batches import split


@pytest.fixture
def ids():
    return topic_ids()


def versions(key):
    low, high = APIS[key].versions
    return [(key, version) for version in range(low, high + 1)]


@pytest.mark.parametrize(("key", "version"), versions(0))
def test_produce_round_trips_in_every_version(key, version, ids):
    data = [{"name": "t", "partition_data": [{"index": 0, "records": records(2)}, {"index": 1, "records": records(1)}]}]
    request = asked(key, version, ids, transactional_id=None, acks=-1, timeout_ms=700, topic_data=data)
    assert request == plain.ProduceRequest(False, -1, 700, ((T0, records(2)), (T1, records(1))))
    answer = plain.ProduceResponse(
        (
            core.ProduceResponse(1, T0, ErrorCode.NONE, 55, 3),
            core.ProduceResponse(2, U0, ErrorCode.NOT_ENOUGH_REPLICAS),
        )
    )
    read = answered(key, version, ids, answer)
    assert [t.name for t in read.responses] == ["t", "u"]
    first, second = read.responses[0].partition_responses[0], read.responses[1].partition_responses[0]
    assert (first.error_code, first.base_offset) == (0, 55)
    assert (second.error_code, second.base_offset) == (19, -1)


@pytest.mark.parametrize(("key", "version"), versions(1))
def test_fetch_round_trips_in_every_version_by_name_or_by_id(key, version, ids):
    part = {"partition": 1, "fetch_offset": 7, "partition_max_bytes": 1000}
    if version >= 9:
        part["current_leader_epoch"] = 5
    if version >= 12:
        part["last_fetched_epoch"] = 4
    topic = {"topic_id": ids.identity("t")} if version >= 13 else {"topic": "t"}
    replica = {"replica_state": {"replica_id": 2, "replica_epoch": 9}} if version >= 15 else {"replica_id": 2}
    request = asked(
        key,
        version,
        ids,
        max_wait_ms=10,
        min_bytes=1,
        max_bytes=99,
        topics=[{**topic, "partitions": [part]}],
        **replica,
    )
    assert request.replica_id == 2
    assert request.broker_epoch == (9 if version >= 15 else -1)
    [wanted] = request.partitions
    assert (wanted.partition, wanted.fetch_offset, wanted.max_bytes) == (T1, 7, 1000)
    assert wanted.current_leader_epoch == (5 if version >= 9 else -1)
    assert wanted.last_fetched_epoch == (4 if version >= 12 else -1)
    batches = (batch(7, 2, epoch=3), batch(9, 1, epoch=4))
    answer = core.FetchResponse(1, (core.FetchedPartition(T1, ErrorCode.NONE, 10, 0, None, batches),))
    read = answered(key, version, ids, answer)
    [topic_read] = read.responses
    assert (topic_read.topic_id == ids.identity("t")) if version >= 13 else (topic_read.topic == "t")
    [part_read] = topic_read.partitions
    assert (part_read.error_code, part_read.high_watermark, part_read.last_stable_offset) == (0, 10, 10)
    stored = list(split(part_read.records, verify=True))
    assert [(b.base_offset, b.count, b.leader_epoch) for b in stored] == [(7, 2, 3), (9, 1, 4)]


def test_a_topic_known_only_by_an_unknown_id_is_answered_under_that_id(ids):
    stranger = uuid.UUID(int=5)
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    topics = [{"topic_id": stranger, "partitions": [part]}]
    request = asked(1, 13, ids, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics)
    at = request.partitions[0].partition
    assert at.topic not in ("t", "u")
    unknown = core.FetchResponse(1, (core.FetchedPartition(at, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),))
    assert answered(1, 13, ids, unknown).responses[0].topic_id == stranger


def test_a_topic_made_again_has_another_id(ids):
    before = ids.identity("t")
    ids.learn({"t": TopicState(TopicConfig(), (), 99)})
    assert ids.identity("t") != before
    assert ids.name(before) != "t"


@pytest.mark.parametrize(("key", "version"), versions(2))
def test_list_offsets_round_trips_in_every_version(key, version, ids):
    part = {"partition_index": 1, "timestamp": -1}
    request = asked(key, version, ids, replica_id=-1, topics=[{"name": "t", "partitions": [part]}])
    assert request.parts == (core.ListOffsets(0, T1, -1, -1, -1),)
    found = plain.ListOffsetsResponse((plain.FoundOffset(T1, ErrorCode.NONE, 8, 2, 77),))
    read = answered(key, version, ids, found).topics[0].partitions[0]
    assert (read.partition_index, read.error_code, read.offset, read.timestamp) == (1, 0, 8, 77)


@pytest.mark.parametrize(("key", "version"), versions(23))
def test_offset_for_leader_epoch_round_trips_in_every_version(key, version, ids):
    part = {"partition": 1, "current_leader_epoch": 6, "leader_epoch": 4}
    request = asked(key, version, ids, topics=[{"topic": "t", "partitions": [part]}])
    assert request.parts == (core.OffsetForLeaderEpoch(0, T1, 4, 6, -1),)
    found = plain.OffsetForLeaderEpochResponse(
        (core.OffsetForLeaderEpochResponse(1, T1, ErrorCode.NONE, EpochEnd(3, 12)),)
    )
    read = answered(key, version, ids, found).topics[0].partitions[0]
    assert (read.error_code, read.leader_epoch, read.end_offset) == (0, 3, 12)


@pytest.mark.parametrize(("key", "version"), versions(3))
def test_metadata_round_trips_in_every_version(key, version, ids):
    request = asked(key, version, ids, topics=[{"name": "t"}])
    assert request.topics == ("t",)
    everything = asked(key, version, ids, topics=[] if version == 0 else None)
    assert everything.topics is None
    brokers = {0: BrokerState(1, False, "h0", 1), 1: BrokerState(2, False, "h1", 2)}
    missing = plain.TopicMetadata("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    answer = plain.MetadataResponse("c", 0, brokers, (plain.TopicMetadata("t", ErrorCode.NONE, STATE), missing))
    read = answered(key, version, ids, answer)
    assert [(b.node_id, b.host, b.port) for b in read.brokers] == [(0, "h0", 1), (1, "h1", 2)]
    topic, gone = read.topics
    assert (gone.error_code, list(gone.partitions)) == (3, [])
    assert [(p.error_code, p.leader_id, list(p.isr_nodes)) for p in topic.partitions] == [(0, 0, [0]), (5, -1, [1])]
    if version >= 7:
        assert [p.leader_epoch for p in topic.partitions] == [3, 2]
    if version >= 10:
        assert topic.topic_id == ids.identity("t")


@pytest.mark.parametrize(("key", "version"), versions(18))
def test_api_versions_lists_what_is_served(key, version, ids):
    assert asked(key, version, ids) == plain.ApiVersionsRequest()
    read = answered(key, version, ids, plain.ApiVersionsResponse(ErrorCode.NONE))
    assert {k.api_key: (k.min_version, k.max_version) for k in read.api_keys} == ADVERTISED
    assert ADVERTISED[0][0] == 0  # KAFKA-18659


def test_an_api_versions_from_the_future_is_answered_in_version_0_with_error_35(ids):
    header, request = decode_request(memoryview(b"\0\x12\0\x63\0\0\0\x2a\0\x01x\0whatever"), ids)
    assert request == plain.ApiVersionsRequest(supported=False)
    frame = encode_response(header, plain.ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION), ids)
    assert frame[4:10] == b"\0\0\0\x2a\0\x23"
    assert len(frame) == 4 + 4 + 2 + 4 + 6 * len(ADVERTISED)


@pytest.mark.parametrize(("key", "version"), versions(10))
def test_find_coordinator_round_trips_in_every_version(key, version, ids):
    values = {"coordinator_keys": ["g", "h"]} if version >= 4 else {"key": "g"}
    kind = {"key_type": 0} if version >= 1 else {}
    request = asked(key, version, ids, **values, **kind)
    assert request == plain.FindCoordinatorRequest(0, ("g", "h") if version >= 4 else ("g",))
    answer = plain.FindCoordinatorResponse((plain.Coordinator("g", ErrorCode.NONE, 2, "host", 9),))
    read = answered(key, version, ids, answer)
    found = read.coordinators[0] if version >= 4 else read
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 2, "host", 9)


@pytest.mark.parametrize(("key", "version"), versions(11))
def test_join_group_round_trips_in_every_version(key, version, ids):
    rebalance = {"rebalance_timeout_ms": 900} if version >= 1 else {}
    request = asked(
        key,
        version,
        ids,
        group_id="g",
        session_timeout_ms=500,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"m"}],
        **rebalance,
    )
    expected = plain.JoinGroupRequest(
        "g", "", 500, 900 if version else 500, "consumer", (("range", b"m"),), version >= 4, "someone"
    )
    assert request == expected
    answer = plain.JoinGroupResponse(ErrorCode.NONE, 3, "consumer", "range", "a", "a", (("a", b"x"), ("b", b"y")))
    read = answered(key, version, ids, answer)
    assert (read.error_code, read.generation_id, read.protocol_name, read.leader) == (0, 3, "range", "a")
    assert [(m.member_id, m.metadata) for m in read.members] == [("a", b"x"), ("b", b"y")]
    refused = answered(key, version, ids, plain.JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member="n"))
    assert (refused.error_code, refused.member_id) == (79, "n")


@pytest.mark.parametrize(("key", "version"), versions(14))
def test_sync_group_round_trips_in_every_version(key, version, ids):
    assignments = [{"member_id": "a", "assignment": b"1"}]
    request = asked(key, version, ids, group_id="g", generation_id=2, member_id="a", assignments=assignments)
    assert request == plain.SyncGroupRequest("g", 2, "a", (("a", b"1"),))
    read = answered(key, version, ids, plain.SyncGroupResponse(ErrorCode.NONE, "consumer", "range", b"1"))
    assert (read.error_code, read.assignment) == (0, b"1")


@pytest.mark.parametrize(("key", "version"), versions(12))
def test_group_heartbeat_round_trips_in_every_version(key, version, ids):
    request = asked(key, version, ids, group_id="g", generation_id=2, member_id="a")
    assert request == plain.HeartbeatRequest("g", 2, "a")
    read = answered(key, version, ids, plain.HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    assert read.error_code == 27


@pytest.mark.parametrize(("key", "version"), versions(13))
def test_leave_group_round_trips_in_every_version(key, version, ids):
    members = {"members": [{"member_id": "a"}, {"member_id": "b"}]} if version >= 3 else {"member_id": "a"}
    request = asked(key, version, ids, group_id="g", **members)
    assert request == plain.LeaveGroupRequest("g", ("a", "b") if version >= 3 else ("a",))
    left = plain.LeaveGroupResponse(ErrorCode.NONE, (("a", ErrorCode.UNKNOWN_MEMBER_ID),))
    read = answered(key, version, ids, left)
    assert (read.members[0].error_code if version >= 3 else read.error_code) == 25


@pytest.mark.parametrize(("key", "version"), versions(8))
def test_offset_commit_round_trips_in_every_version(key, version, ids):
    part = {"partition_index": 1, "committed_offset": 5, "committed_metadata": "note"}
    if version >= 6:
        part["committed_leader_epoch"] = 3
    request = asked(
        key,
        version,
        ids,
        group_id="g",
        generation_id_or_member_epoch=2,
        member_id="a",
        topics=[{"name": "t", "partitions": [part]}],
    )
    committed = plain.CommittedOffset(5, 3 if version >= 6 else -1, "note")
    assert request == plain.OffsetCommitRequest("g", 2, "a", ((T1, committed),))
    answer = plain.OffsetCommitResponse(((T1, ErrorCode.NONE), (U0, ErrorCode.NOT_COORDINATOR)))
    read = answered(key, version, ids, answer)
    assert [(t.name, t.partitions[0].error_code) for t in read.topics] == [("t", 0), ("u", 16)]


@pytest.mark.parametrize(("key", "version"), versions(9))
def test_offset_fetch_round_trips_in_every_version(key, version, ids):
    topics = [{"name": "t", "partition_indexes": [0, 1]}]
    values = {"groups": [{"group_id": "g", "topics": topics}]} if version >= 8 else {"group_id": "g", "topics": topics}
    assert asked(key, version, ids, **values).groups == (plain.WantedOffsets("g", (T0, T1)),)
    if version >= 2:
        values = {"groups": [{"group_id": "g", "topics": None}]} if version >= 8 else {"group_id": "g", "topics": None}
        assert asked(key, version, ids, **values).groups == (plain.WantedOffsets("g", None),)
    offsets = ((T0, plain.CommittedOffset(9, 1, "m")), (T1, None))
    read = answered(key, version, ids, plain.OffsetFetchResponse((plain.FetchedOffsets("g", ErrorCode.NONE, offsets),)))
    rows = (read.groups[0] if version >= 8 else read).topics[0].partitions
    assert [(r.partition_index, r.committed_offset, r.metadata) for r in rows] == [(0, 9, "m"), (1, -1, "")]


@pytest.mark.parametrize(("key", "version"), versions(19))
def test_create_topics_round_trips_in_every_version(key, version, ids):
    new = {
        "name": "n",
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 1, "broker_ids": [2]}, {"partition_index": 0, "broker_ids": [0, 1]}],
        "configs": [{"name": "min.insync.replicas", "value": "2"}],
    }
    request = asked(key, version, ids, topics=[new], timeout_ms=1, validate_only=True)
    expected = plain.NewTopic("n", -1, -1, ((0, 1), (2,)), {"min.insync.replicas": "2"})
    assert request == plain.CreateTopicsRequest((expected,), validate_only=True)
    result = plain.TopicsResponse((plain.TopicResult("n", ErrorCode.TOPIC_ALREADY_EXISTS, "there is one"),))
    read = answered(key, version, ids, result).topics[0]
    assert (read.name, read.error_code, read.error_message) == ("n", 36, "there is one")


@pytest.mark.parametrize(("key", "version"), versions(20))
def test_delete_topics_round_trips_in_every_version(key, version, ids):
    by_id = {"topics": [{"name": None, "topic_id": ids.identity("t")}, {"name": "u", "topic_id": None}]}
    request = asked(key, version, ids, timeout_ms=1, **(by_id if version >= 6 else {"topic_names": ["t", "u"]}))
    assert request == plain.DeleteTopicsRequest(("t", "u"))
    result = plain.TopicsResponse((plain.TopicResult("t", ErrorCode.NONE),))
    assert answered(key, version, ids, result).responses[0].name == "t"


@pytest.mark.parametrize(("key", "version"), versions(22))
def test_init_producer_id_round_trips_in_every_version(key, version, ids):
    assert asked(key, version, ids, transactional_id=None, transaction_timeout_ms=1) == plain.InitProducerIdRequest(
        False
    )
    assert asked(key, version, ids, transactional_id="x", transaction_timeout_ms=1) == plain.InitProducerIdRequest(True)
    read = answered(key, version, ids, core.InitProducerIdResponse(1, ErrorCode.NONE, 4000, 0))
    assert (read.error_code, read.producer_id, read.producer_epoch) == (0, 4000, 0)


@pytest.mark.parametrize(("key", "version"), versions(32))
def test_describe_configs_round_trips_in_every_version(key, version, ids):
    wanted = [{"resource_type": 2, "resource_name": "t", "configuration_keys": None}]
    request = asked(key, version, ids, resources=wanted)
    resource = plain.ConfigResource(2, "t", None)
    assert request == plain.DescribeConfigsRequest((resource,))
    result = plain.DescribedResource(resource, ErrorCode.NONE, configs={"flush.ms": "5"})
    read = answered(key, version, ids, plain.DescribeConfigsResponse((result,))).results[0]
    assert [(c.name, c.value) for c in read.configs] == [("flush.ms", "5")]
