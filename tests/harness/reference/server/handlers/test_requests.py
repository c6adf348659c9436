"""How a broker treats requests before and after the core sees them; the core is a table of canned answers here."""

import asyncio

import pytest
from batch_maker import batch, records
from msgspec.structs import replace

from harness.reference.core import messages as core
from harness.reference.core.types import (
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.reference.server import requests as plain
from harness.reference.server.config import NodeConfig
from harness.reference.server.handlers import cluster as cluster_requests
from harness.reference.server.handlers.cluster import ClusterRequests, SettingError, parse_topic_config, written
from harness.reference.server.handlers.data import FETCH_BYTES, DataRequests
from harness.reference.server.handlers.gateway import Gateway
from harness.reference.server.storage.log import SegmentLog

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class CannedCore:
    """Remembers what it was asked; answers when told to."""

    def __init__(self):
        self.asked = []
        self.gateway = Gateway(lambda sender, message: self.asked.append((sender, message)))

    def answer(self, place, **changes):
        question = self.asked[place][1]
        kind = {
            core.Produce: core.ProduceResponse,
            core.ListOffsets: core.ListOffsetsResponse,
            core.OffsetForLeaderEpoch: core.OffsetForLeaderEpochResponse,
        }[type(question)]
        self.gateway.answered(kind(question.correlation, question.partition, **changes))


@pytest.fixture
def canned():
    return CannedCore()


@pytest.fixture
def data(canned):
    return DataRequests(canned.gateway, {})


def produce(*parts, acks=-1, transactional=False):
    return plain.ProduceRequest(transactional, acks, 1000, parts)


def test_a_produce_is_answered_when_every_partition_is_and_in_their_order(canned, data):
    answers = []
    data.produce(1001, produce((T0, records(2)), (T1, records(1))), answers.append)
    canned.answer(1, error=ErrorCode.NONE, base_offset=7)
    assert answers == []
    canned.answer(0, error=ErrorCode.NOT_ENOUGH_REPLICAS)
    [produced] = answers
    assert [(p.partition, p.error, p.base_offset) for p in produced.parts] == [
        (T0, ErrorCode.NOT_ENOUGH_REPLICAS, -1),
        (T1, ErrorCode.NONE, 7),
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
    ],
)
def test_what_may_not_be_appended_never_reaches_the_core(canned, data, part, error):
    answers = []
    data.produce(1001, produce(part), answers.append)
    assert answers[0].parts[0].error == error
    assert canned.asked == []


def test_without_acknowledgement_nothing_is_waited_for_and_silence_is_success(canned, data):
    answers = []
    data.produce(1001, produce((T0, records(1)), acks=0), answers.append)
    assert len(canned.asked) == 1
    assert canned.gateway.pending == 0
    assert [part.error for part in answers[0].parts] == [ErrorCode.NONE]


def test_a_refusal_without_acknowledgement_is_told():
    def refuse(_sender, message):
        gateway.answered(core.ProduceResponse(message.correlation, message.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER))

    gateway = Gateway(refuse)
    answers = []
    DataRequests(gateway, {}).produce(1001, produce((T0, records(1)), (T1, None), acks=0), answers.append)
    assert [part.error for part in answers[0].parts] == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.CORRUPT_MESSAGE]
    assert gateway.pending == 0


def test_a_transactional_produce_is_refused(canned, data):
    answers = []
    data.produce(1001, produce((T0, records(1)), transactional=True), answers.append)
    assert answers[0].parts[0].error == ErrorCode.INVALID_REQUEST


def test_a_fetch_is_bounded_in_bytes_and_time(canned, data):
    parts = tuple(core.FetchPartition(TopicPartition("t", n), 0, max_bytes=2**31 - 1) for n in range(4))
    data.fetch(1001, core.Fetch(0, -1, 2**31 - 1, parts, max_bytes=2**31 - 1), pytest.fail)
    asked = canned.asked[0][1]
    assert sum(part.max_bytes for part in asked.partitions) <= FETCH_BYTES
    assert asked.max_wait_ms == 120_000


def test_an_offset_by_time_is_looked_for_below_the_high_watermark(canned, tmp_path):
    log = SegmentLog(tmp_path / "log")
    for offset in (0, 3, 6):
        log.append(batch(offset, 3))  # times 1000 to 1002
    data = DataRequests(canned.gateway, {T0: log})
    answers = []
    for timestamp in (1002, 1003, -1):
        data.list_offsets(1001, plain.ListOffsetsRequest((core.ListOffsets(0, T0, timestamp),)), answers.append)
        assert canned.asked[-1][1].timestamp == core.LATEST
        canned.answer(len(canned.asked) - 1, error=ErrorCode.NONE, offset=6, leader_epoch=2)
    assert [answer.parts[0].offset for answer in answers] == [0, -1, 6]
    data.list_offsets(1001, plain.ListOffsetsRequest((core.ListOffsets(0, T0, 5),)), answers.append)
    canned.answer(3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answers[-1].parts[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- the cluster -----------------------------------------------------------------------------------------------------

IMAGE = Image(
    5,
    {0: BrokerState(1, True, "h0", 1), 1: BrokerState(2, False, "h1", 2), 2: BrokerState(3, False, "h2", 3)},
    {"t": TopicState(TopicConfig(flush_ms=7), (PartitionState((0, 1), (1,), 1, 0, 0),), 3)},
)
CONFIG = NodeConfig(role="broker", node=1, port=1, directory="", control_socket="", trace="")


def cluster(canned, **changes):
    return ClusterRequests(replace(CONFIG, **changes), canned.gateway, lambda: IMAGE)


def test_metadata_names_live_brokers_and_one_of_them_as_controller(canned):
    answers = []
    cluster(canned).metadata(1001, plain.MetadataRequest(None, auto_create=True), answers.append)
    cluster(canned).metadata(1001, plain.MetadataRequest(("t", "no"), auto_create=True), answers.append)
    assert (set(answers[0].brokers), answers[0].controller) == ({1, 2}, 1)
    assert [topic.name for topic in answers[0].topics] == ["t"]
    assert [topic.error for topic in answers[1].topics] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert canned.asked == []


def test_topics_are_made_on_demand_only_where_that_is_switched_on_and_wanted(canned):
    async def ask():
        on = cluster(canned, auto_create_topics=True, default_partitions=3, default_replication_factor=2)
        on.metadata(1001, plain.MetadataRequest(("no", "t"), auto_create=False), lambda _: None)
        on.metadata(1001, plain.MetadataRequest(("no", "t"), auto_create=True), lambda _: None)

    asyncio.run(ask())
    [(sender, made)] = canned.asked
    assert (sender, made.topic, made.partitions, made.replication_factor) == (1001, "no", 3, 2)


def test_a_silent_controller_is_not_waited_for_for_ever(canned, monkeypatch):
    monkeypatch.setattr(cluster_requests, "CONTROLLER_TIMEOUT_S", 0.01)
    answers = []

    async def ask():
        cluster(canned).delete_topics(1001, plain.DeleteTopicsRequest(("t",)), answers.append)
        await asyncio.sleep(0.05)

    asyncio.run(ask())
    assert answers[0].results[0].error == ErrorCode.REQUEST_TIMED_OUT
    canned.gateway.answered(core.TopicResponse(canned.asked[0][1].correlation, "t", ErrorCode.NONE))
    assert len(answers) == 1


@pytest.mark.parametrize("name", ["", "a b", "..", "x" * 250, "a/b"])
def test_an_illegal_topic_name_is_refused(canned, name):
    answers = []
    new = plain.NewTopic(name, 1, 1, (), {})
    cluster(canned).create_topics(1001, plain.CreateTopicsRequest((new,), validate_only=False), answers.append)
    assert answers[0].results[0].error == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_settings_are_described_under_kafkas_names(canned):
    answers = []
    wanted = (
        plain.ConfigResource(2, "t", ("flush.ms",)),
        plain.ConfigResource(4, "1", ("replica.lag.time.max.ms",)),
        plain.ConfigResource(4, "2", None),
        plain.ConfigResource(2, "no", None),
    )
    cluster(canned).describe_configs(1001, plain.DescribeConfigsRequest(wanted), answers.append)
    results = answers[0].results
    assert [result.configs for result in results] == [{"flush.ms": "7"}, {"replica.lag.time.max.ms": "1500"}, {}, {}]
    assert [result.error for result in results[2:]] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_topic_settings_are_read_from_strings_and_written_back():
    config = parse_topic_config(
        {"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "retention.ms": "1"}
    )
    assert config == TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=True)
    assert written(config)["unclean.leader.election.enable"] == "true"
    for bad in ({"min.insync.replicas": "0"}, {"flush.ms": "x"}, {"flush.msgs": "1"}):
        with pytest.raises(SettingError):
            parse_topic_config(bad)
