"""Real Apache Kafka, end to end: fetched with Maven, started, broken, judged.

What cannot be had on a machine is said in the reason of a skip: Maven's repository, or root.
"""

from pathlib import Path

import pytest

from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    IsrChanged,
    LeaderElected,
)
from harness.plan import Kafka, Namespaces, RunSpec
from harness.records.cluster_file import read_observations
from harness.records.run_record import read_record
from nemesis.plan import FaultPlan
from tests.harness.needs import needs_root
from tests.harness.worlds.trials import hit_by, lose_or_hold
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka-run")]
on_namespaces = needs_root("ip", "nft", "nsenter", "mkfs.ext4")


def spec(family: str, client: str, **settings: object) -> RunSpec:
    return RunSpec(
        world=Kafka(host=Namespaces(), client=client),
        cell=f"cell/{family}",
        family=family,
        settings=Settings.from_mapping({"min.insync.replicas": 2} | settings).to_mapping(),
        # Enough for some to reach the last in-sync replica in the tenth of a second before its power goes.
        workload=WorkloadPlan(writes_per_second=180.0, duration_ms=8_000, drain_limit_ms=60_000),
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
        pytest.param(
            "power", {"acks": "all"}, True, "confluent-kafka", id="the last in-sync replica forgets what it had (S09)"
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
            "confluent-kafka",
            id="flushed writes outlive the power (S09)",
        ),
    ],
)
def test_kafka_loses_exactly_what_its_settings_permit(tmp_path: Path, family, settings, loses, client) -> None:
    broke = "kill" if family == "kill" else "powerloss"
    shown = lose_or_hold(spec(family, client, **settings), tmp_path, loses=loses, exercised=hit_by("partition", broke))
    reported = {type(seen.fact) for seen in read_observations(shown.directory)}
    assert {BecameLeader, BecameFollower, LeaderElected, IsrChanged, BrokerFenced, BrokerRegistered} <= reported
    if client == "kafka-python":  # which logs each refusal that reaches it: the power may go before any does
        log = (shown.directory / "logs" / "clients.log").read_text(encoding="utf-8")
        refused = shown.judgement.coverage["refused_before_append"]
        assert refused is not None
        assert refused >= max(1, log.count("attempts left): NotEnoughReplicasError"))
    ended = read_record(shown.directory).ended
    assert ended.configuration is not None
    assert ended.configuration["producer"].get("library", "kafka-python").startswith(client)
