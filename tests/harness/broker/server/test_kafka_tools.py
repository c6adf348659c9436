"""Kafka's own command-line tools against the reference broker."""

import json
import subprocess
import time
from collections import Counter

import pytest
from batch_maker import records
from kafka import KafkaConsumer
from process_cluster import CONTROLLER, LIMIT_S, wait_for

from harness.broker.core.types import ErrorCode, TopicPartition
from harness.broker.server.codec.wire import by_topic
from harness.broker.server.handlers.coordinators import partition_of
from harness.worlds.kafka.jvm import tool_command

pytestmark = pytest.mark.system
COUNT = 20
GROUPS = "consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "TransactionsCommand"
#: The most that brokers take: a tool starts a Java of its own, and a test that of many.
TRANSACTION_MS = 900_000


@pytest.fixture(scope="module")
def tool(cluster, real_kafka):
    """Runs a tool of Kafka by its class; the answer is what it printed."""

    def run(name, *arguments, given="", servers="--bootstrap-server"):
        words = (f"org.apache.kafka.tools.{name}", servers, cluster.bootstrap, *arguments)
        ended = subprocess.run(
            tool_command(real_kafka, words),
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return run


@pytest.fixture(scope="module")
def topic(cluster, tool):
    """A topic of two partitions with records, made and filled by Kafka's tools."""
    tool("TopicCommand", "--create", "--topic", "tools", "--partitions", "2", "--replication-factor", "3")
    cluster.wait_for_topic("tools", 2)
    lines = "".join(f"value-{number}\n" for number in range(COUNT))
    tool("ConsoleProducer", "--topic", "tools", given=lines)
    return "tools"


def test_topics_are_described_and_their_offsets_found(tool, topic):
    described = tool("TopicCommand", "--describe", "--topic", topic)
    assert described.count("Leader:") == 2
    offsets = [line.split(":") for line in tool("GetOffsetShell", "--topic", topic).split()]
    assert sum(int(offset) for _, _, offset in offsets) == COUNT


def test_a_group_of_kafkas_own_consumer_reads_everything(tool, topic):
    values = (
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        str(COUNT),
        "--timeout-ms",
        str(int(LIMIT_S * 1000)),
    )
    consumed = tool("consumer.ConsoleConsumer", *values, "--group", "console")
    assert sorted(consumed.split()) == sorted(f"value-{number}" for number in range(COUNT))


def test_a_group_is_listed_and_described_with_its_members_and_without(cluster, tool, topic):
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id="readers",
        client_id="reader",
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(LIMIT_S * 1000),
    )
    read = [next(consumer) for _ in range(COUNT)]
    consumer.commit()
    assert "readers" in tool(GROUPS, "--list").split()
    assert "readers" in tool(GROUPS, "--list", "--state", "stable")
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", "readers").splitlines() if topic in line]
    ends = Counter(record.partition for record in read)
    assert sorted(row[:6] for row in rows) == [
        ["readers", topic, str(number), str(ends[number]), str(ends[number]), "0"]
        for number in (0, 1)
        if ends[number] or len(rows) == 2
    ]
    assert all(row[6].startswith("reader-") and row[7:] == ["/127.0.0.1", "reader"] for row in rows)
    consumer.close()
    state = tool(GROUPS, "--describe", "--group", "readers", "--state")
    assert state.split()[-3:] == ["-", "Empty", "0"]
    assert "readers" not in tool(GROUPS, "--list", "--state", "stable")


# --- transactions ----------------------------------------------------------------------------------------------------


def rows_of(printed):
    """The rows of a table that a tool has printed, each with its values by their column."""
    head, *rows = [[word.strip() for word in line.split("\t")] for line in printed.splitlines() if line.strip()]
    return [dict(zip(head, row, strict=False)) for row in rows]


def led_by(cluster, partition):
    return cluster.partition(str(partition))["leader"]


class Producer:
    """A transactional producer, request by request."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        wait_for(lambda: self._init().error_code == ErrorCode.NONE, "a producer is in charge")
        self.identity = self.answer.producer_id, self.answer.producer_epoch

    def _init(self):
        self.answer = self.of_coordinator(22, transactional_id=self.name, transaction_timeout_ms=TRANSACTION_MS)
        return self.answer

    def of_coordinator(self, key, **values):
        [coordinator] = self.cluster.ask(0, 10, key_type=1, coordinator_keys=[self.name]).coordinators
        return self.cluster.ask(max(coordinator.node_id, 0), key, **values)

    @property
    def named(self):
        return {
            "transactional_id": self.name,
            "producer_id": self.identity[0],
            "producer_epoch": self.identity[1],
        }

    def add(self, topic):
        values = {f"v3_and_below_{name}": value for name, value in self.named.items()}
        topics = [{"name": topic, "partitions": [0]}]
        answer = self.of_coordinator(24, v3_and_below_topics=topics, **values)
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    def put(self, topic, sequence):
        """Write a record; its offset."""
        partition, now_ms = TopicPartition(topic, 0), time.time_ns() // 1_000_000
        encoded = records(1, producer=(*self.identity, sequence), transactional=True, time_ms=now_ms)
        rows = by_topic([(partition, {"records": encoded})], partitions="partition_data", index="index")
        values = {"transactional_id": self.name, "acks": -1, "timeout_ms": 5_000, "topic_data": rows}
        part = self.cluster.ask(led_by(self.cluster, partition), 0, **values).responses[0].partition_responses[0]
        assert part.error_code == ErrorCode.NONE
        return part.base_offset

    def abort(self):
        return self.of_coordinator(26, committed=False, **self.named).error_code


def test_a_hanging_transaction_is_told_from_an_open_one_and_aborted(cluster, tool):
    """Under version 1 a late write hangs. The other producer is in a transaction of its own."""
    topic = "hanging"
    cluster.create(topic)
    late, busy = Producer(cluster, "late"), Producer(cluster, "busy")
    for producer in (late, busy):
        assert (producer.add(topic), producer.put(topic, 0) >= 0) == (ErrorCode.NONE, True)
    assert late.abort() == ErrorCode.NONE
    start = late.put(topic, 1)
    listed = {row["TransactionalId"]: row for row in rows_of(tool(TRANSACTIONS, "list"))}
    assert [listed[name]["TransactionState"] for name in ("late", "busy")] == ["CompleteAbort", "Ongoing"]
    [row] = rows_of(tool(TRANSACTIONS, "describe", "--transactional-id", "busy"))
    assert (row["TransactionState"], row["TransactionTimeoutMs"], row["TopicPartitions"]) == (
        "Ongoing",
        str(TRANSACTION_MS),
        f"{topic}-0",
    )
    assert 0 <= int(row["TransactionDurationMs"]) < TRANSACTION_MS
    wanted = ("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    [row] = rows_of(tool(TRANSACTIONS, *wanted))
    assert (row["ProducerId"], row["StartOffset"]) == (str(late.identity[0]), str(start))
    tool(TRANSACTIONS, "abort", "--topic", topic, "--partition", "0", "--start-offset", str(start))
    described = rows_of(tool(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0"))
    assert {row["ProducerId"]: row["CurrentTransactionStartOffset"] for row in described} == {
        str(late.identity[0]): "None",
        str(busy.identity[0]): "1",
    }
    tool(TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", "busy")
    wait_for(lambda: stable_end(cluster, topic) == start + 3, "nothing is open any more")


def stable_end(cluster, topic):
    """The end that readers of committed records are told."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    asked = cluster.ask(led_by(cluster, TopicPartition(topic, 0)), 2, replica_id=-1, isolation_level=1, topics=topics)
    return asked.topics[0].partitions[0].offset


def told(printed, name):
    """The events of this name among the lines of a tool that prints JSON."""
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [event for event in events if event.get("name", event.get("stage")) == name]


def test_a_copier_copies_exactly_once_and_verifiable_clients_agree(cluster, tool):
    for topic in ("copied-from", "copied-to"):
        cluster.create(topic)
    sent = tool("VerifiableProducer", "--topic", "copied-from", "--max-messages", str(COUNT), "--acks", "-1")
    values = sorted(event["value"] for event in told(sent, "producer_send_success"))
    assert len(values) == COUNT
    words = ("--transactional-id", "copier", "--consumer-group", "copiers", "--input-topic", "copied-from")
    words += ("--input-partition", "0", "--output-topic", "copied-to", "--max-messages", str(COUNT))
    words += ("--transaction-size", "3", "--enable-random-aborts")
    copied = tool("TransactionalMessageCopier", *words, servers="--broker-list")
    assert told(copied, "ShutdownComplete")[0]["totalProcessed"] == COUNT
    words = ("--topic", "copied-from", "--group-id", "verifiers", "--max-messages", str(COUNT))
    read = tool("VerifiableConsumer", *words, "--reset-policy", "earliest", "--verbose")
    assert sorted(event["value"] for event in told(read, "record_data")) == values
    assert told(read, "offsets_committed")[-1]["success"] is True
    assert offset(cluster, "verifiers", "copied-from") == COUNT
    consumer = KafkaConsumer(
        "copied-to",
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    seen = []
    wait_for(lambda: read_to(consumer, seen) >= stable_end(cluster, "copied-to"), "all is read")
    assert sorted(seen) == values
    consumer.close()


def read_to(consumer, seen):
    """Read on into ``seen``; the offset that was reached in the only log partition."""
    for batch in consumer.poll(200).values():
        seen += [record.value.decode() for record in batch]
    return max((consumer.position(partition) for partition in consumer.assignment()), default=-1)


# --- groups are changed ----------------------------------------------------------------------------------------------


def test_offsets_are_reset_and_a_deleted_group_is_gone_for_the_next_coordinator(cluster, tool, topic):
    for group in ("reset", "kept"):
        commit(cluster, group, topic, 3)
    tool(GROUPS, "--reset-offsets", "--to-earliest", "--topic", topic, "--group", "reset", "--execute")
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", "reset").splitlines() if topic in line]
    assert [row[3] for row in rows] == ["0", "0"]
    assert "successful" in tool(GROUPS, "--delete", "--group", "reset")
    for group in ("reset", "kept"):
        partition = partition_of(group)
        old = led_by(cluster, partition)
        new = next(node for node in cluster.brokers if node != old)
        assert cluster.control(CONTROLLER, op="move", partition=str(partition), leader=new)["ok"]
    wait_for(lambda: offset(cluster, "kept", topic) == 3, "the next coordinator has read its log")
    wait_for(lambda: offset(cluster, "reset", topic) == -1, "the next coordinator has read its log")
    assert {"reset", "kept"}.intersection(tool(GROUPS, "--list").split()) == {"kept"}


def commit(cluster, group, topic, offset):
    part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    topics = [{"name": topic, "partitions": [part]}]
    values = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}

    def committed():
        [coordinator] = cluster.ask(0, 10, key_type=0, coordinator_keys=[group]).coordinators
        answer = cluster.ask(max(coordinator.node_id, 0), 8, **values)
        return answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    wait_for(committed, f"an offset of group {group} is committed")


def offset(cluster, group, topic):
    """The offset that a group is told, None while its coordinator refuses."""
    groups = [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]
    [answer] = cluster.ask(led_by(cluster, partition_of(group)), 9, groups=groups, require_stable=False).groups
    part = answer.topics[0].partitions[0]
    return None if part.error_code else part.committed_offset
