"""KAFKA-20742: a share group that knows a topic starts a partition that was added to it at its end.

A consumer of the group has read the topic, so its partitions have their starts. While no consumer is there a partition
is added and written to. The next consumer has to read what is in it, whatever share.auto.offset.reset says of topics
that are new to the group.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewPartitions

from harness.lab.findings.playable import PlayableFinding, Played, Way
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError, OpenCluster
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.jvm import tool_command
from workloads import LogPartition

TOPIC, _ = LogPartition.named(PARTITIONS[0])
GROUP: Final = "share"
ADDED: Final = len(PARTITIONS)
#: Records that are in the added partition before a consumer is there.
WRITTEN: Final = 5
SETTINGS: Final[Mapping[str, object]] = {"acks": "all", "min.insync.replicas": 2}
OF_BROKERS: Final[Mapping[str, object]] = {"share.coordinator.state.topic.num.partitions": 1}
#: A consumer ends by itself after so long without a record, whatever became of the harness.
_IDLE_MS: Final = 90_000
_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
_SEND_S: Final = 30.0
_APART_US: Final = 500_000


class ShareConsumer:
    """Kafka's own console consumer of a share group, and the values that it has read."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self._process = process
        self._output = output

    def read(self) -> list[str]:
        """The values that it has read so far.

        Raises:
            NotObservedError: it has ended.
        """
        if self._process.poll() is not None:
            raise NotObservedError(f"the consumer of the share group ended with exit code {self._process.returncode}")
        return self._output.read_text(encoding="utf-8", errors="replace").split()


class AddedPartition:
    """The script, on one cluster."""

    def __init__(self, stage: FindingStage, cluster: OpenCluster) -> None:
        self._stage = stage
        self._cluster = cluster
        self._servers = ",".join(cluster.world.clients.bootstrap)

    def play(self) -> list[str]:
        """The values that a consumer reads of the partition that was added."""
        with self._consumer("first") as consumer:
            self._write_until("known", 0, lambda: "known" in consumer.read())
        self._add()
        for number in range(WRITTEN):
            self._write(f"added-{number}", ADDED)
        with self._consumer("second") as consumer:
            self._write_until("later", ADDED, lambda: "later" in consumer.read())
            return [value for value in consumer.read() if value != "later"]

    @contextmanager
    def _consumer(self, name: str) -> Iterator[ShareConsumer]:
        """A consumer, which leaves its group at the end."""
        words = (_CONSUMER, "--bootstrap-server", self._servers, "--topic", TOPIC, "--group", GROUP)
        command = tool_command(find(self._stage.version), (*words, "--timeout-ms", str(_IDLE_MS)))
        output = self._stage.directory / f"{name}.txt"
        with output.open("wb") as out, output.with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)  # noqa: S603 - Kafka
            try:
                yield ShareConsumer(process, output)
                process.terminate()
                process.wait(_SEND_S)
            finally:
                process.kill()
                process.wait()

    def _write_until(self, value: str, partition: int, is_read: Callable[[], bool]) -> None:
        def done() -> bool:
            self._write(value, partition)
            self._cluster.let_pass(_APART_US)
            return is_read()

        self._cluster.wait(f"the share group reads partition {partition}", done)

    def _write(self, value: str, partition: int) -> None:
        """Write one record that is acknowledged; a client may not know yet that a partition was added."""
        failed: list[object] = [None]
        producer = confluent_kafka.Producer({"bootstrap.servers": self._servers, "acks": "all", "log_level": 3})
        try:
            producer.produce(
                TOPIC, value.encode(), partition=partition, on_delivery=lambda error, _: failed.append(error)
            )
            left = producer.flush(_SEND_S)
        except confluent_kafka.KafkaException as error:
            raise NotObservedError(f"a record was not sent: {error}") from error
        if left or failed[-1] is not None:
            raise NotObservedError(f"a record was not acknowledged: {failed[-1] or 'no answer'}")

    def _add(self) -> None:
        operator = AdminClient({"bootstrap.servers": self._servers})
        for answer in operator.create_partitions([NewPartitions(TOPIC, ADDED + 1)]).values():
            answer.result(_SEND_S)
        self._cluster.wait(
            "every broker knows the partition that was added",
            lambda: len(operator.list_topics(TOPIC, timeout=_SEND_S).topics[TOPIC].partitions) > ADDED,
        )


def play(stage: FindingStage) -> Played:
    """Play it on a new cluster."""
    with stage.kafka(SETTINGS, OF_BROKERS) as cluster:
        return played(AddedPartition(stage, cluster).play())


def played(read: list[str]) -> Played:
    """It shows where a record of the added partition is not read."""
    missing = [f"added-{number}" for number in range(WRITTEN) if f"added-{number}" not in read]
    facts = [
        f"a share group read {TOPIC}; then partition {ADDED} was added, and {WRITTEN} records written to it",
        f"the next consumer of the group read a later record of it, and {WRITTEN - len(missing)} of those {WRITTEN}",
    ]
    return Played.of(facts, shown=bool(missing))


FINDING: Final = PlayableFinding(
    "KAFKA-20742", {"added": Way("a partition is added while no consumer is there", play)}, minutes=2
)
