"""Real Apache Kafka, end to end: fetched with Maven, started, broken, judged.

What cannot be had on a machine is said in the reason of a skip: Maven's repository, or root.
"""

import time
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.observations import BecameFollower, BecameLeader, BrokerFenced, BrokerRegistered, IsrChanged, LeaderElected
from harness.plan import AnyHost, Kafka, Loopback, Namespaces, RunSpec
from harness.records.cluster_file import read_observations
from harness.records.journal import FILE_NAME, not_undone
from harness.records.run_record import read_record
from harness.worlds.kafka import kafka_world
from nemesis.cluster import Capability
from nemesis.plan import FaultPlan
from tests.harness.needs import needs_root
from tests.harness.worlds.trials import hit_by, lose_or_hold
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka-run")]
on_namespaces = needs_root("ip", "nft", "nsenter", "mkfs.ext4")
#: Of the project's own machine; twice that is for one that does something else besides.
START_LIMIT_S = 30.0
ON_NAMESPACES = Namespaces()
MEMORY_LIMIT_BYTES = 2.5 * 2**30


def spec(family: str, host: AnyHost = ON_NAMESPACES, **settings: object) -> RunSpec:
    return RunSpec(
        world=Kafka(host=host),
        cell=f"cell/{family}",
        family=family,
        settings=Settings.from_mapping({"min.insync.replicas": 2} | settings).to_mapping(),
        workload=WorkloadPlan(writes_per_second=60.0, duration_ms=12_000, drain_limit_ms=60_000),
        faults=FaultPlan(families=(family,), count=2),
        seed=11,
    )


@on_namespaces
@pytest.mark.root
@pytest.mark.usefixtures("real_kafka")
@pytest.mark.parametrize(
    ("family", "settings", "loses", "client"),
    [
        pytest.param("kill", {"acks": 1}, True, "confluent-kafka", id="acks 1 loses a killed leader's tail (S01)"),
        pytest.param("kill", {"acks": "all"}, False, "kafka-python", id="acks all holds under kill (S01)"),
        pytest.param(
            "power", {"acks": "all"}, True, "kafka-python", id="the last in-sync replica forgets what it had (S09)"
        ),
        pytest.param(
            "power",
            {"acks": "all", "eligible.leader.replicas": True},
            False,
            "kafka-python",
            id="eligible leaders outlive the last in-sync replica's power (S09, KIP-966)",
        ),
        pytest.param(
            "power",
            {"acks": "all", "flush.messages": 1},
            False,
            "kafka-python",
            id="flushed writes outlive the power (S09)",
        ),
    ],
)
def test_kafka_loses_exactly_what_its_settings_permit(tmp_path: Path, family, settings, loses, client) -> None:
    broke = "kill" if family == "kill" else "powerloss"
    run = msgspec.structs.replace(spec(family, **settings), world=Kafka(host=ON_NAMESPACES, client=client))
    shown = lose_or_hold(run, tmp_path, loses=loses, exercised=hit_by("partition", broke))
    reported = {type(seen.fact) for seen in read_observations(shown.directory)}
    assert {BecameLeader, BecameFollower, LeaderElected, IsrChanged, BrokerFenced, BrokerRegistered} <= reported
    ended = read_record(shown.directory).ended
    assert ended.configuration is not None
    assert ended.configuration["producer"].get("library", "kafka-python").startswith(client)


@pytest.mark.usefixtures("real_kafka")
def test_a_cluster_starts_in_time_and_memory_without_root(tmp_path: Path) -> None:
    world = kafka_world(spec("kill", Loopback(), acks="all"), tmp_path)
    began = time.monotonic()
    try:
        world.open()
        took_s = time.monotonic() - began
        pids = [action.facts["pid"] for action in not_undone(tmp_path / FILE_NAME) if action.kind == "process"]
        taken = sum(psutil.Process(pid).memory_info().rss for pid in pids)
        view, lacks = world.target.view(), world.target.lacks
        evidence = world.target.processes.kill(0)
    finally:
        world.close()
    assert took_s < START_LIMIT_S
    assert len(pids) == 4
    assert taken < MEMORY_LIMIT_BYTES
    assert "namespaces" in lacks[Capability.LINKS]
    assert {state.isr for state in view.partitions.values()} == {state.replicas for state in view.partitions.values()}
    assert (evidence["exit"], evidence["connect"]) == ("signal 9", "refused")
    assert not_undone(tmp_path / FILE_NAME) == []
