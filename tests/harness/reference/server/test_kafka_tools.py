"""Kafka's own command-line tools against the reference broker."""

import subprocess
from collections import Counter

import pytest
from kafka import KafkaConsumer

from harness.worlds.kafka.jvm import tool_command

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
LIMIT_S = 60
COUNT = 20


@pytest.fixture(scope="module")
def tool(cluster, real_kafka):
    """Runs a tool of Kafka by its class; the answer is what it printed."""

    def run(name, *arguments, given=""):
        words = (f"org.apache.kafka.tools.{name}", "--bootstrap-server", cluster.bootstrap, *arguments)
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
    values = ("--topic", topic, "--from-beginning", "--max-messages", str(COUNT), "--timeout-ms", "30000")
    consumed = tool("consumer.ConsoleConsumer", *values, "--group", "console")
    assert sorted(consumed.split()) == sorted(f"value-{number}" for number in range(COUNT))


def test_a_group_is_listed_and_described_with_its_members_and_without(cluster, tool, topic):
    groups = "consumer.group.ConsumerGroupCommand"
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id="readers",
        client_id="reader",
        auto_offset_reset="earliest",
        consumer_timeout_ms=LIMIT_S * 1000,
    )
    read = [next(consumer) for _ in range(COUNT)]
    consumer.commit()
    assert "readers" in tool(groups, "--list").split()
    assert "readers" in tool(groups, "--list", "--state", "stable")
    rows = [line.split() for line in tool(groups, "--describe", "--group", "readers").splitlines() if topic in line]
    ends = Counter(record.partition for record in read)
    assert sorted(row[:6] for row in rows) == [
        ["readers", topic, str(number), str(ends[number]), str(ends[number]), "0"]
        for number in (0, 1)
        if ends[number] or len(rows) == 2
    ]
    assert all(row[6].startswith("reader-") and row[7:] == ["/127.0.0.1", "reader"] for row in rows)
    consumer.close()
    state = tool(groups, "--describe", "--group", "readers", "--state")
    assert state.split()[-3:] == ["-", "Empty", "0"]
    assert "readers" not in tool(groups, "--list", "--state", "stable")
