"""Every request in every version that is served: from a client's bytes through its handler and back."""

import asyncio
import uuid
from types import SimpleNamespace

import pytest
from batch_maker import batch, records
from client_side import STATE, T0, T1, U0, Asked, CannedCore, asked_in_a_loop, topic_ids, versions

from harness.broker.core import messages as core
from harness.broker.core.groups.group import Group
from harness.broker.core.types import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerState,
    ErrorCode,
    Image,
    TopicConfig,
    TopicState,
)
from harness.broker.server.codec import ADVERTISED
from harness.broker.server.config import NodeConfig
from harness.broker.server.handlers import groups as handlers
from harness.broker.server.handlers.coordinators import OFFSETS_PARTITIONS, Coordinators, partition_of
from harness.broker.server.handlers.data import DataRequests
from harness.broker.server.handlers.groups import GroupRequests
from harness.broker.server.handlers.metadata_and_topics import ClusterRequests
from harness.broker.server.handlers.transactions import TransactionRequests
from harness.broker.server.storage.batches import split

IMAGE = Image(
    5,
    {0: BrokerState(1, False, "h0", 1), 1: BrokerState(2, False, "h1", 2)},
    {
        "t": STATE,
        "u": TopicState(TopicConfig(flush_ms=5), STATE.partitions[:1], 12),
        OFFSETS_TOPIC: TopicState(TopicConfig(), STATE.partitions[:1] * OFFSETS_PARTITIONS, 13),
        TRANSACTIONS_TOPIC: TopicState(TopicConfig(), STATE.partitions[:1], 14),
    },
)
CONFIG = NodeConfig(role="broker", node=0, port=1, directory="", control_socket="", trace="")


@pytest.fixture
def canned():
    return CannedCore()


@pytest.fixture
def ids():
    return topic_ids()


@pytest.fixture
def data(canned, ids):
    return DataRequests(canned.gateway, {}, ids)


@pytest.fixture
def cluster(canned, ids):
    return ClusterRequests(CONFIG, canned.gateway, lambda: IMAGE, ids)


@pytest.fixture
def coordinators(cluster):
    return Coordinators(0, lambda: IMAGE, cluster, CONFIG.topics)


@pytest.fixture
def transactions(canned, coordinators):
    return TransactionRequests(canned.gateway, lambda: IMAGE, coordinators)


# --- data ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "version"), versions(0))
def test_produce_round_trips_in_every_version(key, version, canned, data):
    rows = [{"index": 0, "records": records(2)}]
    topics = [{"name": "t", "partition_data": rows}, {"name": "u", "partition_data": rows}]
    asked = Asked(data.produce, key, version, transactional_id=None, acks=-1, timeout_ms=700, topic_data=topics)
    assert [(q.partition, q.acks, q.timeout_ms, q.batch.count) for q in canned.questions] == [
        (T0, -1, 700, 2),
        (U0, -1, 700, 2),
    ]
    canned.answer(1, core.ProduceResponse(0, U0, ErrorCode.NOT_ENOUGH_REPLICAS))
    canned.answer(0, core.ProduceResponse(0, T0, ErrorCode.NONE, 55, 3))
    read = asked.answer
    assert [t.name for t in read.responses] == ["t", "u"]
    first, second = read.responses[0].partition_responses[0], read.responses[1].partition_responses[0]
    assert (first.error_code, first.base_offset) == (0, 55)
    assert (second.error_code, second.base_offset) == (19, -1)


@pytest.mark.parametrize(("key", "version"), versions(1))
def test_fetch_round_trips_in_every_version_by_name_or_by_id(key, version, ids, canned, data):
    part = {"partition": 1, "fetch_offset": 7, "partition_max_bytes": 1000}
    if version >= 9:
        part["current_leader_epoch"] = 5
    if version >= 12:
        part["last_fetched_epoch"] = 4
    topic = {"topic_id": ids.identity("t")} if version >= 13 else {"topic": "t"}
    replica = {"replica_state": {"replica_id": 2, "replica_epoch": 9}} if version >= 15 else {"replica_id": 2}
    topics = [{**topic, "partitions": [part]}]
    asked = Asked(data.fetch, key, version, max_wait_ms=10, min_bytes=1, max_bytes=99, topics=topics, **replica)
    [question] = canned.questions
    assert (question.replica_id, question.max_wait_ms, question.min_bytes, question.max_bytes) == (2, 10, 1, 99)
    assert question.broker_epoch == (9 if version >= 15 else -1)
    [wanted] = question.partitions
    assert (wanted.partition, wanted.fetch_offset, wanted.max_bytes) == (T1, 7, 1000)
    assert wanted.current_leader_epoch == (5 if version >= 9 else -1)
    assert wanted.last_fetched_epoch == (4 if version >= 12 else -1)
    batches = (batch(7, 2, epoch=3), batch(9, 1, epoch=4))
    canned.answer(0, core.FetchResponse(0, (core.FetchedPartition(T1, ErrorCode.NONE, 10, 0, None, batches),)))
    [topic_read] = asked.answer.responses
    assert (topic_read.topic_id == ids.identity("t")) if version >= 13 else (topic_read.topic == "t")
    [part_read] = topic_read.partitions
    assert (part_read.error_code, part_read.high_watermark, part_read.last_stable_offset) == (0, 10, 10)
    stored = list(split(part_read.records, verify=True))
    assert [(b.base_offset, b.count, b.leader_epoch) for b in stored] == [(7, 2, 3), (9, 1, 4)]


def test_a_topic_known_only_by_an_unknown_id_is_answered_under_that_id(canned, data):
    stranger = uuid.UUID(int=5)
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    topics = [{"topic_id": stranger, "partitions": [part]}]
    asked = Asked(data.fetch, 1, 13, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics)
    partition = canned.questions[0].partitions[0].partition
    assert partition.topic not in ("t", "u")
    unknown = core.FetchedPartition(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    canned.answer(0, core.FetchResponse(0, (unknown,)))
    assert asked.answer.responses[0].topic_id == stranger


@pytest.mark.parametrize(("key", "version"), versions(2))
def test_list_offsets_round_trips_in_every_version(key, version, canned, data):
    part = {"partition_index": 1, "timestamp": -1}
    topics = [{"name": "t", "partitions": [part]}]
    asked = Asked(data.list_offsets, key, version, replica_id=-1, topics=topics)
    assert canned.questions == [core.ListOffsets(0, T1, -1, -1, -1)]
    canned.answer(0, core.ListOffsetsResponse(0, T1, ErrorCode.NONE, 8, 2))
    read = asked.answer.topics[0].partitions[0]
    assert (read.partition_index, read.error_code, read.offset, read.timestamp) == (1, 0, 8, -1)
    assert read.leader_epoch == (2 if version >= 4 else -1)


@pytest.mark.parametrize(("key", "version"), versions(23))
def test_offset_for_leader_epoch_round_trips_in_every_version(key, version, canned, data):
    part = {"partition": 1, "current_leader_epoch": 6, "leader_epoch": 4}
    asked = Asked(data.offset_for_leader_epoch, key, version, topics=[{"topic": "t", "partitions": [part]}])
    assert canned.questions == [core.OffsetForLeaderEpoch(0, T1, 4, 6, -1)]
    canned.answer(0, core.OffsetForLeaderEpochResponse(0, T1, ErrorCode.NONE, core.EpochEnd(3, 12)))
    read = asked.answer.topics[0].partitions[0]
    assert (read.error_code, read.leader_epoch, read.end_offset) == (0, 3, 12)


# --- transactions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "version"), versions(22))
def test_init_producer_id_round_trips_in_every_version(key, version, canned, transactions):
    own = {"producer_id": 4000, "producer_epoch": 6} if version >= 3 else {}
    values = {"transactional_id": "x", "transaction_timeout_ms": 900, **own}
    refused = asked_in_a_loop(transactions.init_producer_id, key, version, **values)
    assert canned.questions == [core.InitProducerId(0, "x", 900, *((4000, 6) if own else (-1, -1)))]
    canned.answer(0, core.InitProducerIdResponse(0, ErrorCode.PRODUCER_FENCED))
    read = refused.answer
    fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert (read.error_code, read.producer_id, read.producer_epoch) == (fenced, -1, -1)
    asked = Asked(transactions.init_producer_id, key, version, transactional_id=None, transaction_timeout_ms=1)
    canned.answer(1, core.InitProducerIdResponse(0, ErrorCode.NONE, 4000, 0))
    read = asked.answer
    assert (read.error_code, read.producer_id, read.producer_epoch) == (0, 4000, 0)


@pytest.mark.parametrize(("key", "version"), versions(24))
def test_add_partitions_to_txn_round_trips_in_every_version(key, version, canned, transactions):
    def asked(*topics):
        rows = [{"name": name, "partitions": numbers} for name, numbers in topics]
        producer = {"v3_and_below_producer_id": 7, "v3_and_below_producer_epoch": 3}
        values = {"v3_and_below_transactional_id": "x", "v3_and_below_topics": rows, **producer}
        return asked_in_a_loop(transactions.add_partitions, key, version, **values)

    def errors(answer):
        return [
            (topic.name, part.partition_index, part.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        ]

    added = asked(("t", [0, 1]), ("u", [0]))
    assert canned.questions == [core.AddPartitionsToTxn(0, "x", 7, 3, (T0, T1, U0))]
    canned.answer(0, core.AddPartitionsToTxnResponse(0, ErrorCode.CONCURRENT_TRANSACTIONS))
    assert errors(added.answer) == [("t", 0, 51), ("t", 1, 51), ("u", 0, 51)]
    refused = asked(("t", [0]), ("gone", [0]), (OFFSETS_TOPIC, [0]), (TRANSACTIONS_TOPIC, [0]))
    assert errors(refused.answer) == [
        ("t", 0, ErrorCode.OPERATION_NOT_ATTEMPTED),
        ("gone", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (OFFSETS_TOPIC, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TRANSACTIONS_TOPIC, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert len(canned.asked) == 1


@pytest.mark.parametrize(("key", "version"), versions(26))
def test_end_txn_round_trips_in_every_version(key, version, canned, transactions):
    producer = {"producer_id": 7, "producer_epoch": 3}
    for number, committed_ in enumerate((True, False)):
        values = {"transactional_id": "x", "committed": committed_, **producer}
        asked = asked_in_a_loop(transactions.end, key, version, **values)
        assert canned.questions[number] == core.EndTxn(0, "x", 7, 3, committed_)
        canned.answer(number, core.EndTxnResponse(0, ErrorCode.NONE if committed_ else ErrorCode.PRODUCER_FENCED))
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert asked.answer.error_code == (ErrorCode.NONE if committed_ else fenced)


@pytest.mark.parametrize(("key", "version"), versions(27))
def test_write_txn_markers_round_trips_in_every_version(key, version, canned, transactions):
    of = {"transaction_version": 1} if version >= 2 else {}
    topics = [{"name": "t", "partition_indexes": [0, 1]}, {"name": "u", "partition_indexes": [0]}]
    markers = [
        {"producer_id": 7, "producer_epoch": 3, "transaction_result": True, "topics": topics, "coordinator_epoch": 5},
        {"producer_id": 8, "producer_epoch": 0, "transaction_result": False, "topics": topics[1:], **of},
    ]
    asked = Asked(
        transactions.write_markers, key, version, markers=[{"coordinator_epoch": 5, **of, **m} for m in markers]
    )
    assert [(q.partition, q.acks, q.batch.producer_id, q.batch.marker.commit) for q in canned.questions] == [
        (T0, -1, 7, True),
        (T1, -1, 7, True),
        (U0, -1, 7, True),
        (U0, -1, 8, False),
    ]
    assert {type(question) for question in canned.questions} == {core.WriteTxnMarkers}
    assert {question.batch.marker.coordinator_epoch for question in canned.questions} == {5}
    for number, (partition, error) in enumerate([(T0, 0), (T1, 19), (U0, 0), (U0, 47)]):
        assert asked.fields is None
        canned.answer(number, core.ProduceResponse(0, partition, ErrorCode(error)))
    assert [
        (marker.producer_id, topic.name, [(part.partition_index, part.error_code) for part in topic.partitions])
        for marker in asked.answer.markers
        for topic in marker.topics
    ] == [(7, "t", [(0, 0), (1, 19)]), (7, "u", [(0, 0)]), (8, "u", [(0, 47)])]


# --- the cluster ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "version"), versions(3))
def test_metadata_round_trips_in_every_version(key, version, ids, cluster):
    everything = Asked(cluster.metadata, key, version, topics=[] if version == 0 else None).answer
    assert [topic.name for topic in everything.topics] == list(IMAGE.topics)
    read = Asked(cluster.metadata, key, version, topics=[{"name": "t"}, {"name": "gone"}]).answer
    assert [(b.node_id, b.host, b.port) for b in read.brokers] == [(0, "h0", 1), (1, "h1", 2)]
    topic, gone = read.topics
    assert (gone.error_code, list(gone.partitions)) == (3, [])
    assert [(p.error_code, p.leader_id, list(p.isr_nodes)) for p in topic.partitions] == [(0, 0, [0]), (5, -1, [1])]
    if version >= 7:
        assert [p.leader_epoch for p in topic.partitions] == [3, 2]
    if version >= 10:
        assert topic.topic_id == ids.identity("t")


@pytest.mark.parametrize(("key", "version"), versions(18))
def test_api_versions_lists_what_is_served(key, version, cluster):
    read = Asked(cluster.api_versions, key, version).answer
    assert read.error_code == ErrorCode.NONE
    assert {k.api_key: (k.min_version, k.max_version) for k in read.api_keys} == ADVERTISED
    assert ADVERTISED[0][0] == 0  # KAFKA-18659


@pytest.mark.parametrize(("key", "version"), versions(19))
def test_create_topics_round_trips_in_every_version(key, version, cluster):
    new = {
        "name": "n",
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 1, "broker_ids": [2]}, {"partition_index": 0, "broker_ids": [0, 1]}],
        "configs": [{"name": "min.insync.replicas", "value": "2"}],
    }
    made = []
    cluster._ask_controller = lambda _, question, done: (
        made.append(question),
        done(cluster._result("n", 36, "exists")),
    )
    asked = Asked(cluster.create_topics, key, version, topics=[new], timeout_ms=1, validate_only=False)
    assert made == [core.CreateTopic(0, "n", 1, 1, TopicConfig(min_insync_replicas=2), ((0, 1), (2,)))]
    read = asked.answer.topics[0]
    assert (read.name, read.error_code, read.error_message) == ("n", 36, "exists")
    only_checked = Asked(cluster.create_topics, key, version, topics=[new], timeout_ms=1, validate_only=True)
    assert (only_checked.answer.topics[0].error_code, len(made)) == (0, 1)


@pytest.mark.parametrize(("key", "version"), versions(20))
def test_delete_topics_round_trips_in_every_version(key, version, ids, cluster):
    asked = []
    cluster._ask_controller = lambda _, question, done: (asked.append(question.topic), done(cluster._result("t", 0)))
    by_id = {"topics": [{"name": None, "topic_id": ids.identity("t")}, {"name": "u", "topic_id": None}]}
    values = by_id if version >= 6 else {"topic_names": ["t", "u"]}
    read = Asked(cluster.delete_topics, key, version, timeout_ms=1, **values).answer
    assert asked == ["t", "u"]
    assert read.responses[0].name == "t"


@pytest.mark.parametrize(("key", "version"), versions(32))
def test_describe_configs_round_trips_in_every_version(key, version, cluster):
    wanted = [{"resource_type": 2, "resource_name": "u", "configuration_keys": None}]
    [read] = Asked(cluster.describe_configs, key, version, resources=wanted).answer.results
    assert (read.error_code, read.resource_type, read.resource_name) == (0, 2, "u")
    assert ("flush.ms", "5", True) in [(c.name, c.value, c.read_only) for c in read.configs]


# --- groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "version"), versions(10))
def test_find_coordinator_round_trips_in_every_version(key, version, coordinators):
    values = {"coordinator_keys": ["g", "h"]} if version >= 4 else {"key": "g"}
    for kind in ({"key_type": 0}, {"key_type": 1}) if version >= 1 else ({},):
        read = Asked(coordinators.find, key, version, **values, **kind).answer
        for coordinator in read.coordinators if version >= 4 else [read]:
            assert (coordinator.error_code, coordinator.node_id, coordinator.host, coordinator.port) == (0, 0, "h0", 1)
        if version >= 4:
            assert [coordinator.key for coordinator in read.coordinators] == ["g", "h"]


def join(alone, version, name=""):
    rebalance = {"rebalance_timeout_ms": 900} if version >= 1 else {}
    protocols = [{"name": "range", "metadata": b"m"}]
    values = {"group_id": "g", "session_timeout_ms": 500, "member_id": name, "protocol_type": "consumer"}
    return Asked(alone.groups.join, 11, version, protocols=protocols, **values, **rebalance).answer


def joined(alone, version=9):
    """The name of the only member of group g, which leads it in generation 1 and waits for its assignment."""
    named = join(alone, version)
    return join(alone, version, named.member_id).member_id if version >= 4 else named.member_id


@pytest.mark.parametrize(("key", "version"), versions(11))
def test_join_group_round_trips_in_every_version(key, version, alone):
    read = join(alone, version)
    if version >= 4:
        assert (read.error_code, read.member_id[:7]) == (79, "someone")
        assert read.protocol_name == (None if version >= 7 else "")
        read = join(alone, version, read.member_id)
    assert (read.error_code, read.generation_id, read.protocol_name, read.leader) == (0, 1, "range", read.member_id)
    assert [(m.member_id, m.metadata) for m in read.members] == [(read.member_id, b"m")]
    refused = join(alone, version, "nobody")
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "nobody")


@pytest.mark.parametrize(("key", "version"), versions(14))
def test_sync_group_round_trips_in_every_version(key, version, alone):
    name = joined(alone)
    rows = [{"member_id": name, "assignment": b"1"}]
    values = {"group_id": "g", "member_id": name}
    read = Asked(alone.groups.sync, key, version, generation_id=1, assignments=rows, **values).answer
    assert (read.error_code, read.assignment) == (0, b"1")
    if version >= 5:
        assert (read.protocol_type, read.protocol_name) == ("consumer", "range")
    refused = Asked(alone.groups.sync, key, version, generation_id=9, assignments=[], **values).answer
    assert refused.error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(("key", "version"), versions(12))
def test_group_heartbeat_round_trips_in_every_version(key, version, alone):
    name = joined(alone)
    for group, generation, error in (("g", 1, 0), ("g", 2, 22), ("", 1, 24)):
        values = {"group_id": group, "generation_id": generation, "member_id": name}
        assert Asked(alone.groups.heartbeat, key, version, **values).answer.error_code == error


@pytest.mark.parametrize(("key", "version"), versions(13))
def test_leave_group_round_trips_in_every_version(key, version, alone):
    name = joined(alone)
    for leaving, error in (("nobody", 25), (name, 0)):
        members = {"members": [{"member_id": leaving}]} if version >= 3 else {"member_id": leaving}
        read = Asked(alone.groups.leave, key, version, group_id="g", **members).answer
        assert (read.members[0].error_code if version >= 3 else read.error_code) == error


def fetched(alone, key, version, topics, group="g"):
    """The offsets of these topics, None: of all; and the error of the whole where the version has one."""
    wanted = {"group_id": group, "topics": topics}
    read = asked_in_a_loop(
        alone.groups.offset_fetch, key, version, **({"groups": [wanted]} if version >= 8 else wanted)
    ).answer
    told = read.groups[0] if version >= 8 else read
    rows = [
        (r.partition_index, r.committed_offset, r.metadata, r.error_code) for t in told.topics for r in t.partitions
    ]
    return rows, told.error_code if version >= 2 else 0


@pytest.mark.parametrize(("key", "version"), versions(8))
def test_offset_commit_round_trips_in_every_version(key, version, alone):
    part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "note"}
    if version >= 6:
        part["committed_leader_epoch"] = 3
    topics = [{"name": name, "partitions": [part]} for name in ("t", "gone")]
    values = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    answer = alone.ask(alone.groups.offset_commit, key, version, **values)
    assert [(t.name, t.partitions[0].error_code) for t in answer.topics] == [("t", 0), ("gone", 3)]
    [committed] = alone.broker.groups[1]["g"].offsets.everything().values()
    assert committed == core.CommittedOffset(5, 3 if version >= 6 else -1, "note")
    refused = alone.ask(alone.groups.offset_commit, key, version, **{**values, "group_id": ""})
    assert [(t.name, t.partitions[0].error_code) for t in refused.topics] == [("t", 24), ("gone", 24)]


@pytest.mark.parametrize(("key", "version"), versions(9))
def test_offset_fetch_round_trips_in_every_version(key, version, alone):
    alone.commit_plainly("g", 9)
    asked = [{"name": "t", "partition_indexes": [0, 1]}]
    assert fetched(alone, key, version, asked) == ([(0, 9, "", 0), (1, -1, "", 0)], 0)
    assert fetched(alone, key, version, asked, "")[0] == [(0, -1, "", 24), (1, -1, "", 24)]
    if version >= 2:
        assert fetched(alone, key, version, None) == ([(0, 9, "", 0)], 0)


@pytest.mark.parametrize(("key", "version"), versions(25))
def test_add_offsets_to_txn_round_trips_in_every_version(key, version, canned, transactions):
    values = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 3, "group_id": "g"}
    asked = asked_in_a_loop(transactions.add_offsets, key, version, **values)
    assert canned.questions == [core.AddPartitionsToTxn(0, "x", 7, 3, (partition_of("g"),))]
    canned.answer(0, core.AddPartitionsToTxnResponse(0, ErrorCode.PRODUCER_FENCED))
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert asked.answer.error_code == fenced


@pytest.mark.parametrize(("key", "version"), versions(28))
def test_txn_offset_commit_round_trips_in_every_version(key, version, alone):
    part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "note"}
    topics = [{"name": name, "partitions": [part]} for name in ("t", "gone")]
    values = {"transactional_id": "x", "group_id": "g", "producer_id": 7, "producer_epoch": 3, "topics": topics}
    answer = alone.ask(alone.groups.txn_offset_commit, key, version, **values)
    assert [(t.name, t.partitions[0].error_code) for t in answer.topics] == [("t", 0), ("gone", 3)]
    [batch] = alone.logs[partition_of("g")].read(0, 9, 10_000)
    assert (batch.transactional, batch.producer_id, batch.producer_epoch) == (True, 7, 3)
    assert alone.offset_of("g") == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    if version >= 3:
        refused = alone.ask(alone.groups.txn_offset_commit, key, version, **values, member_id="m", generation_id=1)
        assert [(t.name, t.partitions[0].error_code) for t in refused.topics] == [("t", 25), ("gone", 25)]


@pytest.mark.parametrize(("key", "version"), versions(15))
def test_describe_groups_round_trips_in_every_version(key, version, alone):
    def described(*names):
        return Asked(alone.groups.describe_groups, key, version, groups=list(names)).answer.groups

    alone.commit_plainly("committed", 9)
    empty, unknown, nameless = described("committed", "gone", "")
    assert [(g.error_code, g.group_state, g.members) for g in (empty, unknown)] == [(0, "Empty", []), (0, "Dead", [])]
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    name = joined(alone)
    [group] = described("g")
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("CompletingRebalance", "consumer", "")
    rows = [{"member_id": name, "assignment": b"mine"}]
    Asked(alone.groups.sync, 14, group_id="g", generation_id=1, member_id=name, assignments=rows)
    [group] = described("g")
    assert (group.error_code, group.group_id, group.group_state) == (0, "g", "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    [member] = group.members
    assert (member.member_id, member.client_id, member.client_host) == (name, "someone", "/10.0.0.9")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"mine")


@pytest.mark.parametrize(("key", "version"), versions(16))
def test_list_groups_round_trips_in_every_version(key, version, alone):
    def listed(**filters):
        return [group.group_id for group in Asked(alone.groups.list_groups, key, version, **filters).answer.groups]

    alone.commit_plainly("committed", 9)
    joined(alone)
    assert listed() == ["committed", "g"]
    if version >= 4:
        assert listed(states_filter=["empty"]) == ["committed"]
        assert listed(states_filter=["Stable"]) == []
    if version >= 5:
        assert listed(types_filter=["Classic"]) == ["committed", "g"]
        assert listed(types_filter=["consumer"]) == []


@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_what_no_coordinator_knows_is_not_told(canned, error):
    listed = error if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else ErrorCode.NONE
    groups = GroupRequests(canned.gateway, SimpleNamespace(groups=(listed, {}), group=lambda _: (error, Group())))
    assert Asked(groups.list_groups, 16).answer.error_code == listed
    [group] = Asked(groups.describe_groups, 15, groups=["g"]).answer.groups
    assert group.error_code == error


def test_a_log_that_takes_too_long_is_answered_for(canned, monkeypatch):
    monkeypatch.setattr(handlers, "OFFSETS_LIMIT_S", 0.01)
    groups = GroupRequests(canned.gateway, SimpleNamespace(image=IMAGE))

    async def ask():
        asked = Asked(groups.offset_commit, 8, group_id="g", member_id="", topics=[])
        deletion = Asked(groups.delete_groups, 42, groups_names=["g"])
        await asyncio.sleep(0.05)
        return asked.fields, deletion.answer.results[0].error_code

    assert asyncio.run(ask()) == ({"topics": []}, ErrorCode.COORDINATOR_NOT_AVAILABLE)
