"""Transactions with a record that was never sent: which clients commit without it (docs/guides/clients.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

import pytest

from harness.ground.progress import Progress
from harness.lab.findings.script import Script
from harness.lab.findings.stage import PARTITIONS, FindingStage
from harness.plan.worlds import ClientName
from harness.worlds.kafka.installation import Installation
from nemesis.cluster import require
from workloads import EventType, SendOutcome, values

pytestmark = [pytest.mark.system, pytest.mark.finding]

#: More than max.request.size, which is 1 MiB by default.
TOO_LARGE: Final = bytes(2_000_000)
SETTINGS: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 5_000,
    "delivery.timeout.ms": 9_000,
    "transaction.timeout.ms": 60_000,
}


@pytest.fixture(scope="module")
def stage(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> FindingStage:
    directory = tmp_path_factory.mktemp("run")
    return FindingStage(
        version=str(real_kafka.version), client="confluent-kafka", directory=directory, progress=Progress()
    )


@pytest.fixture(scope="module")
def scripts(stage: FindingStage) -> Iterator[dict[ClientName, Script]]:
    """A script with each library, all on one cluster."""
    names: tuple[ClientName, ...] = ("java", "confluent-kafka", "kafka-python")
    with ExitStack() as resources:
        libraries = {name: stage.library(resources, name) for name in names}
        cluster = resources.enter_context(stage.kafka(SETTINGS))
        yield {
            name: Script(cluster, resources.enter_context(cluster.clients_until_closed(library)))
            for name, library in libraries.items()
        }


@pytest.mark.parametrize(
    ("client", "commit", "read"),
    [("java", EventType.FAIL, 0), ("confluent-kafka", EventType.OK, 1), ("kafka-python", EventType.OK, 1)],
)
def test_only_kafkas_own_client_refuses_to_commit_without_a_record_that_was_too_large(
    client: ClientName, commit: EventType, read: int, scripts: dict[ClientName, Script]
) -> None:
    """KAFKA-9279 and its like."""
    script = scripts[client]
    before = len(script.read([PARTITIONS[1]]))
    producer, calls = script.transactional(f"refused-{client}")
    script.done(calls.begin)
    script.send(producer, [(PARTITIONS[1], b"key")])
    refused: SendOutcome = script.ask(partial(producer.send, PARTITIONS[1], b"key", TOO_LARGE))
    ended: SendOutcome = script.ask(calls.commit)
    if ended.type is not EventType.OK:
        script.ask(calls.abort)
    producer.close()
    assert refused.type is EventType.FAIL
    assert (ended.type, len(script.read([PARTITIONS[1]])) - before) == (commit, read)


@pytest.mark.parametrize(("client", "commit"), [("confluent-kafka", EventType.FAIL), ("kafka-python", EventType.OK)])
def test_kafka_python_commits_without_a_write_that_expired(
    client: ClientName, commit: EventType, scripts: dict[ClientName, Script]
) -> None:
    """The write is sent nowhere, because its partition has no leader; librdkafka asks for an abort."""
    script, partition = scripts[client], PARTITIONS[0]
    cluster = script.cluster
    producer, calls = script.transactional(f"expiry-{client}")
    broker = cluster.leads(partition)
    processes = require(cluster.target.processes)
    processes.kill(broker)
    cluster.wait("the partition has no leader", lambda: cluster.leader(partition) is None)
    script.ask(calls.begin)
    outcomes: list[SendOutcome] = []
    payload = values.encode(partition, b"key", values.join(cluster.next_process(), 0))
    producer.send(partition, b"key", payload, outcomes.append)
    ended: SendOutcome = script.ask(calls.commit)
    cluster.wait("the write has ended", lambda: bool(outcomes))
    processes.restart(broker)
    cluster.leads(partition)
    producer.close()
    assert outcomes[0].type is not EventType.OK
    assert ended.type is commit
