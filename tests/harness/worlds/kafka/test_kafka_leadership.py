"""Real Kafka: leaders that move and replicas that are reassigned, as an operator does it."""

from pathlib import Path

import pytest

from harness.plan import Kafka, Namespaces, RunSpec
from nemesis.plan import FaultPlan
from tests.harness.needs import needs_root
from tests.harness.worlds.trials import hit_by, lose_or_hold
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [
    pytest.mark.system,
    pytest.mark.root,
    pytest.mark.xdist_group("kafka"),
    pytest.mark.usefixtures("real_kafka"),
    needs_root("ip", "nft", "nsenter"),
]
#: The fault of each family; in this story nothing else happens but a cut that lets followers lag.
PLANNED = {"move": "moveleader", "reassign": "reassign"}


@pytest.mark.parametrize(
    ("family", "brokers", "acks", "loses"),
    [
        pytest.param("move", 3, 1, True, id="acks 1 loses by a planned move, nobody dies (S03, KAFKA-20554)"),
        pytest.param("move", 3, "all", False, id="acks all holds under planned moves (S03)"),
        pytest.param("reassign", 4, "all", False, id="acks all holds while replicas are replaced"),
    ],
)
def test_kafka_loses_by_planned_changes_what_its_settings_permit(tmp_path: Path, family, brokers, acks, loses) -> None:
    one = RunSpec(
        world=Kafka(host=Namespaces()),
        cell=f"cell/{family}",
        family=family,
        settings=Settings.from_mapping({"min.insync.replicas": 2, "acks": acks}).to_mapping(),
        workload=WorkloadPlan(writes_per_second=60.0, duration_ms=15_000, drain_limit_ms=60_000),
        faults=FaultPlan(families=(family,), stories=("S03",), count=6),
        seed=11,
        brokers=brokers,
    )
    lose_or_hold(one, tmp_path, loses=loses, exercised=hit_by("partition", PLANNED[family]))
