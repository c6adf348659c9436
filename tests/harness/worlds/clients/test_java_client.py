"""Kafka's Java client with the reference broker, and the life of its JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from harness.ground.errors import HostError
from harness.plan import Processes
from harness.worlds.clients import JAVA
from harness.worlds.clients.programs.client import RemoteClient, StartedProgram
from harness.worlds.clients.programs.messages import Method
from harness.worlds.clients.programs.process import START_LIMIT_S, ClientError
from harness.worlds.kafka import client_library
from harness.worlds.kafka.installation import Installation
from harness.worlds.processes import processes_world
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec
from tests.waiting import wait_until
from workloads import values
from workloads.client import SendOutcome
from workloads.errors import TIME_LIMIT
from workloads.operations import EventType

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def running(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("java")
    settings = {"acks": "all", "min.insync.replicas": 2, "enable.idempotence": True}
    settings |= {"request.timeout.ms": 5_000, "delivery.timeout.ms": 15_000}
    world = processes_world(spec(settings, world=Processes(client=JAVA)), directory)
    world.open()
    yield Cluster(world, directory)
    world.close()


def program_of(cluster: Cluster) -> StartedProgram:
    """The JVM of the world's clients."""
    made = cluster.world.clients._library.producer
    return made.args[0]  # type: ignore[attr-defined, no-any-return]


def test_records_are_written_and_read(running: Cluster) -> None:
    outcomes = running.write(20, process=0)
    begin = outcomes[0].offset
    assert begin is not None
    assert [(outcome.type, outcome.offset) for outcome in outcomes] == [
        (EventType.OK, begin + number) for number in range(20)
    ]
    expected = [values.encode(PARTITIONS[0], b"key", values.join(0, number)) for number in range(20)]
    decoded = [values.decode(payload, PARTITIONS[0], b"key")[0] for payload in expected]
    assert running.read(running.end_offset())[begin:] == decoded


def test_a_run_record_names_the_client_and_what_it_worked_with(running: Cluster) -> None:
    assert running.world.clients.name.startswith("java 4.")
    producer = running.world.effective_configuration()["producer"]
    assert (producer["max.block.ms"], producer["enable.idempotence"], producer["acks"]) == (5_000, True, -1)
    assert producer["buffer.memory"] == "33554432", "its own"


def test_a_record_that_is_too_large_certainly_failed(running: Cluster) -> None:
    producer, outcomes = running.world.clients.producer(30), list[SendOutcome]()
    producer.send(PARTITIONS[0], b"key", b"x" * 2_000_000, outcomes.append)
    producer.send(PARTITIONS[0], b"key", b"after it", outcomes.append)
    assert running.until(lambda: len(outcomes) == 2)
    too_large = next(outcome for outcome in outcomes if outcome.type is not EventType.OK)
    assert too_large.type is EventType.FAIL
    assert str(too_large.error).startswith("NeverSent: RecordTooLargeException")
    assert [outcome.type for outcome in outcomes].count(EventType.OK) == 1, "the producer goes on"
    producer.close()


def test_a_topic_that_does_not_exist_refuses_records_after_max_block_ms(running: Cluster) -> None:
    producer, outcomes = running.world.clients.producer(31), list[SendOutcome]()
    producer.send("no-such-topic-0", b"key", b"payload", outcomes.append)
    assert running.until(lambda: len(outcomes) == 1)
    assert outcomes[0].type is EventType.FAIL
    assert str(outcomes[0].error).startswith("NeverSent: TimeoutException")
    producer.close()


def test_a_property_that_java_refuses_is_its_exception_and_leaves_no_client(running: Cluster) -> None:
    with pytest.raises(ClientError, match="ConfigException"):
        RemoteClient.make(
            program_of(running), Method.NEW_PRODUCER, {"bootstrap.servers": "127.1.2.3:1", "acks": "some"}
        )


def test_secrets_are_not_on_the_command_line_of_the_jvm(running: Cluster) -> None:
    words = " ".join(program_of(running).process.command)
    assert "Start.java" in words
    assert "bootstrap" not in words


HARNESS = """
import sys, time
from contextlib import ExitStack
from pathlib import Path
from harness.plan import Processes
from harness.worlds.kafka import client_library
library = client_library(Processes(client="java"), Path(sys.argv[1]), ExitStack())
print(library.producer.args[0].process._process.pid, flush=True)
time.sleep(300)
"""


def test_the_jvm_does_not_outlive_a_harness_that_is_killed(real_kafka: Installation, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        jvm = psutil.Process(int(harness.stdout.readline()))
        assert jvm.is_running()
        os.kill(harness.pid, signal.SIGKILL)
        jvm.wait(START_LIMIT_S)


def test_where_the_jvm_dies_every_call_ends_and_no_thread_is_left(real_kafka: Installation, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    ending = ExitStack()
    program = client_library(Processes(client=JAVA), tmp_path, ending).producer.args[0]  # type: ignore[attr-defined]
    consumer = RemoteClient.make(program, Method.NEW_CONSUMER, {"bootstrap.servers": "127.1.2.3:1"})
    program.process._process.kill()
    with pytest.raises(OSError, match=r"the Java client 4.* has ended"):
        consumer.call(Method.POLL, 60.0, timeout_ms=60_000)
    with pytest.raises(HostError, match="ended by itself with exit status -9"):
        ending.close()
    wait_until(lambda: set(threading.enumerate()) <= before, "no thread is left")


def test_a_jvm_that_stands_still_stops_neither_the_clock_nor_the_end(running: Cluster) -> None:
    jvm = psutil.Process(program_of(running).process._process.pid)  # type: ignore[union-attr]
    producer, outcomes = running.world.clients.producer(40), list[SendOutcome]()
    producer.send(PARTITIONS[0], b"key", b"before", outcomes.append)
    assert running.until(lambda: len(outcomes) == 1)
    jvm.suspend()
    try:
        assert running.until(lambda: jvm.status() == psutil.STATUS_STOPPED)
        for _ in range(100):
            producer.send(PARTITIONS[0], b"key", b"x" * 10_000, outcomes.append)
        assert running.until(lambda: len(outcomes) == 101)
    finally:
        jvm.resume()
    assert {(outcome.type, outcome.error) for outcome in outcomes[1:]} == {(EventType.INFO, TIME_LIMIT)}
    producer.close()
