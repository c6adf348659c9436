"""Requests before and after the core sees them; the core is a table of canned answers here."""

import asyncio

import pytest
from batch_maker import batch, records
from client_side import T0, T1, Asked, CannedCore, topic_ids
from msgspec.structs import replace

from harness.broker.core import messages as core
from harness.broker.core.transactions import marker_batch
from harness.broker.core.types import (
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.broker.server.codec.wire import by_topic
from harness.broker.server.config import NodeConfig
from harness.broker.server.handlers import metadata_and_topics
from harness.broker.server.handlers.data import FETCH_BYTES, DataRequests
from harness.broker.server.handlers.gateway import Gateway
from harness.broker.server.handlers.metadata_and_topics import (
    ClusterRequests,
    SettingError,
    parse_topic_config,
    written,
)
from harness.broker.server.storage.batches import LEADER_CHANGE, of_broker
from harness.broker.server.storage.log import FileLog


@pytest.fixture
def canned():
    return CannedCore()


@pytest.fixture
def data(canned):
    return DataRequests(canned.gateway, {}, topic_ids())


def produced(data, *parts, acks=-1, transactional=None):
    """A produce of (partition, records) pairs."""
    topics = by_topic(
        ((partition, {"records": each}) for partition, each in parts), partitions="partition_data", index="index"
    )
    values = {"acks": acks, "timeout_ms": 1000, "topic_data": topics}
    return Asked(data.produce, 0, transactional_id=transactional, **values)


def errors(asked):
    return [part.error_code for topic in asked.answer.responses for part in topic.partition_responses]


def test_a_produce_is_answered_when_every_partition_is_and_in_their_order(canned, data):
    asked = produced(data, (T0, records(2)), (T1, records(1)))
    canned.answer(1, core.ProduceResponse(0, T1, ErrorCode.NONE, 7))
    assert asked.fields is None
    canned.answer(0, core.ProduceResponse(0, T0, ErrorCode.NOT_ENOUGH_REPLICAS))
    [topic] = asked.answer.responses
    assert [(p.index, p.error_code, p.base_offset) for p in topic.partition_responses] == [
        (0, ErrorCode.NOT_ENOUGH_REPLICAS, -1),
        (1, ErrorCode.NONE, 7),
    ]
    assert canned.gateway.pending == 0


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ((T0, records(1)[:-1]), ErrorCode.CORRUPT_MESSAGE),
        ((T0, None), ErrorCode.CORRUPT_MESSAGE),
        ((T0, records(1)[:-1] + b"!"), ErrorCode.CORRUPT_MESSAGE),
        ((T0, records(1)[:16] + b"\1" + records(1)[17:]), ErrorCode.INVALID_RECORD),
        ((T0, records(1, b"x" * 1_048_600)), ErrorCode.MESSAGE_TOO_LARGE),
        ((TopicPartition("__consumer_offsets", 0), records(1)), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((TopicPartition("__transaction_state", 0), records(1)), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_may_not_be_appended_never_reaches_the_core(canned, data, part, error):
    assert errors(produced(data, part)) == [error]
    assert canned.asked == []


def test_without_acknowledgement_nothing_is_waited_for_and_silence_is_success(canned, data):
    asked = produced(data, (T0, records(1)), acks=0)
    assert len(canned.asked) == 1
    assert canned.gateway.pending == 0
    assert errors(asked) == [ErrorCode.NONE]


def test_a_refusal_without_acknowledgement_is_told():
    def refuse(_sender, message):
        gateway.answered(core.ProduceResponse(message.correlation, message.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER))

    gateway = Gateway(refuse)
    asked = produced(DataRequests(gateway, {}, topic_ids()), (T0, records(1)), (T1, None), acks=0)
    assert errors(asked) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.CORRUPT_MESSAGE]
    assert gateway.pending == 0


PRODUCER = (7, 0, 0)
MARKER = of_broker(marker_batch(7, 0, core.Marker(True, 1, 1))).records


@pytest.mark.parametrize(
    ("given", "transactional", "error"),
    [
        (records(1, producer=PRODUCER, transactional=True), None, ErrorCode.INVALID_REQUEST),
        (records(1, transactional=True), "x", ErrorCode.INVALID_RECORD),
        (MARKER, "x", ErrorCode.INVALID_RECORD),
        (LEADER_CHANGE.records, None, ErrorCode.INVALID_RECORD),
    ],
)
def test_only_a_producer_with_a_transactional_id_writes_in_transactions_and_no_client_ends_one_by_itself(
    canned, data, given, transactional, error
):
    assert errors(produced(data, (T0, given), transactional=transactional)) == [error]
    assert canned.asked == []


def test_a_batch_of_a_transaction_reaches_the_core_as_one(canned, data):
    produced(data, (T0, records(2, producer=PRODUCER, transactional=True)), transactional="x")
    [question] = canned.questions
    assert (question.batch.transactional, question.batch.marker, question.batch.producer_id) == (True, None, 7)


def test_a_fetch_is_bounded_in_bytes_and_time(canned, data):
    most = 2**31 - 1
    parts = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": most} for n in range(4)]
    topics = [{"topic": "t", "partitions": parts}]
    Asked(data.fetch, 1, 12, replica_id=-1, max_wait_ms=most, min_bytes=1, max_bytes=most, topics=topics)
    [question] = canned.questions
    assert sum(part.max_bytes for part in question.partitions) <= FETCH_BYTES
    assert question.max_wait_ms == 120_000


@pytest.mark.parametrize(("version", "rack"), [(12, "a"), (11, "a"), (10, "")])
def test_a_consumers_rack_reaches_the_leader_and_the_replica_that_it_names_the_consumer(canned, data, version, rack):
    topics = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}]}]
    carried = {"rack_id": rack} if rack else {}
    asked = Asked(
        data.fetch, 1, version, replica_id=-1, max_wait_ms=9, min_bytes=1, max_bytes=100, topics=topics, **carried
    )
    assert canned.questions[-1].rack == rack
    canned.answer(0, core.FetchResponse(0, (core.FetchedPartition(T0, ErrorCode.NONE, 5, 0, read_replica=2),)))
    [part] = asked.answer.responses[0].partitions
    assert not rack or part.preferred_read_replica == 2


def test_an_offset_by_time_is_looked_for_below_the_high_watermark(canned, tmp_path):
    log = FileLog(tmp_path / "log")
    for offset in (0, 3, 6):
        log.append(batch(offset, 3))  # times 1000 to 1002
    data = DataRequests(canned.gateway, {T0: log}, topic_ids())

    def answer_by_time(timestamp, response):
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
        asked = Asked(data.list_offsets, 2, replica_id=-1, topics=topics)
        assert canned.questions[-1].timestamp == core.LATEST
        canned.answer(len(canned.asked) - 1, response)
        return asked.answer.topics[0].partitions[0]

    latest = core.ListOffsetsResponse(0, T0, ErrorCode.NONE, 6, 2)
    assert [answer_by_time(timestamp, latest).offset for timestamp in (1002, 1003, -1)] == [0, -1, 6]
    assert [answer_by_time(timestamp, latest).timestamp for timestamp in (1002, 1003, -1)] == [1002, -1, -1]
    refused = core.ListOffsetsResponse(0, T0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answer_by_time(5, refused).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- the cluster -----------------------------------------------------------------------------------------------------

IMAGE = Image(
    5,
    {0: BrokerState(1, True, "h0", 1), 1: BrokerState(2, False, "h1", 2), 2: BrokerState(3, False, "h2", 3)},
    {"t": TopicState(TopicConfig(flush_ms=7), (PartitionState((0, 1), (1,), 1, 0, 0),), 3)},
)
CONFIG = NodeConfig(role="broker", node=1, port=1, directory="", control_socket="", trace="")


def cluster(canned, **changes):
    return ClusterRequests(replace(CONFIG, **changes), canned.gateway, lambda: IMAGE, topic_ids())


def test_metadata_names_live_brokers_and_one_of_them_as_controller(canned):
    everything = Asked(cluster(canned).metadata, 3, 4, topics=None, allow_auto_topic_creation=True).answer
    assert ([broker.node_id for broker in everything.brokers], everything.controller_id) == ([1, 2], 1)
    assert [topic.name for topic in everything.topics] == ["t"]
    wanted = [{"name": "t"}, {"name": "no"}]
    some = Asked(cluster(canned).metadata, 3, 4, topics=wanted, allow_auto_topic_creation=True).answer
    assert [topic.error_code for topic in some.topics] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert canned.asked == []


def test_topics_are_made_on_demand_only_where_that_is_switched_on_and_wanted(canned):
    async def ask():
        on = cluster(canned, auto_create_topics=True, default_partitions=3, default_replication_factor=2)
        for wanted in (False, True):
            topics = [{"name": "no"}, {"name": "t"}, {"name": "a b"}]
            Asked(on.metadata, 3, topics=topics, allow_auto_topic_creation=wanted)

    asyncio.run(ask())
    [(sender, made)] = canned.asked
    assert (sender, made.topic, made.partitions, made.replication_factor) == (1001, "no", 3, 2)


def test_a_silent_controller_is_not_waited_for_for_ever(canned, monkeypatch):
    monkeypatch.setattr(metadata_and_topics, "CONTROLLER_TIMEOUT_S", 0.01)

    async def ask():
        asked = Asked(cluster(canned).delete_topics, 20, 5, topic_names=["t"], timeout_ms=1)
        await asyncio.sleep(0.05)
        return asked

    asked = asyncio.run(ask())
    assert asked.answer.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    canned.answer(0, core.TopicResponse(0, "t", ErrorCode.NONE))  # answers twice would be refused
    assert asked.answer.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("name", ["", "a b", "..", "x" * 250, "a/b"])
def test_an_illegal_topic_name_is_refused(canned, name):
    new = {"name": name, "num_partitions": 1, "replication_factor": 1}
    for only in (False, True):
        asked = Asked(cluster(canned).create_topics, 19, topics=[new], timeout_ms=1, validate_only=only)
        assert asked.answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert canned.asked == []


def test_settings_are_described_under_kafkas_names(canned):
    wanted = [(2, "t", ["flush.ms"]), (4, "1", ["replica.lag.time.max.ms"]), (4, "2", None), (2, "no", None)]
    names = ("resource_type", "resource_name", "configuration_keys")
    resources = [dict(zip(names, each, strict=True)) for each in wanted]
    results = Asked(cluster(canned).describe_configs, 32, resources=resources).answer.results
    configs = [{config.name: config.value for config in result.configs} for result in results]
    assert configs == [{"flush.ms": "7"}, {"replica.lag.time.max.ms": "1500"}, {}, {}]
    assert [result.error_code for result in results[2:]] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_topic_settings_are_read_from_strings_and_written_back():
    config = parse_topic_config(
        {"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "retention.ms": "1"}
    )
    assert config == TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=True)
    assert written(config)["unclean.leader.election.enable"] == "true"
    assert parse_topic_config({"message.timestamp.type": "CreateTime"}) == TopicConfig()
    for bad in (
        {"min.insync.replicas": "0"},
        {"flush.ms": "x"},
        {"flush.msgs": "1"},
        {"message.timestamp.type": "LogAppendTime"},
    ):
        with pytest.raises(SettingError):
            parse_topic_config(bad)
