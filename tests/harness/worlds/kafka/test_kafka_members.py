"""Nodes of real Apache Kafka that leave their cluster and join it again, by what the cluster says of its members."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.plan import Kafka, RunSpec
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import Installation
from nemesis.evidence import Observed, by_node
from nemesis.open_faults import OpenFaults
from nemesis.plan import FaultPlan
from nemesis.receipts import Receipt
from nemesis.rollout import Rollout, rollout_steps
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka-upgrade")]
#: Controllers join with the first records in bootstrap.checkpoint, and in their own log (KIP-1170).
RELEASES = ("4.3.1", "4.4.0")
CONTROLLER, BROKER = 101, 1
LIMIT_US = 300_000_000


@pytest.fixture(params=RELEASES)
def spec(kafka_release: Callable[[str], Installation], request: pytest.FixtureRequest) -> RunSpec:
    kafka_release(request.param)
    return RunSpec(
        world=Kafka(version=request.param, controllers=3, upgrade_by="move-and-replace"),
        cell="cell/upgrade",
        family="upgrade",
        settings=Settings.from_mapping({"min.insync.replicas": 2}).to_mapping(),
        workload=WorkloadPlan(partitions=2, duration_ms=120_000),
        faults=FaultPlan(families=("upgrade",)),
        seed=1,
    )


def test_a_controller_and_a_broker_leave_are_replaced_and_join(spec: RunSpec, tmp_path: Path) -> None:
    world = kafka_world(spec, tmp_path)
    world.open()
    try:
        ended: dict[int, Receipt] = {}
        faults = OpenFaults(world.target, world.clock.now_us, lambda receipt: ended.update({receipt.sequence: receipt}))
        steps = rollout_steps((CONTROLLER, BROKER), way="move-and-replace")
        rollout = Rollout(steps, faults, world.target, world.clock)
        rollout.start()
        world.drive(lambda: rollout.over, LIMIT_US)
        rollout.stop("it took too long")
        replicas = {name: state.replicas for name, state in world.target.view().partitions.items()}
    finally:
        world.close()
    receipts = [ended[turn] for turn in range(len(steps))]
    assert [(receipt.fault, receipt.mark, receipt.reason) for receipt in receipts] == [
        (kind, "end", "observed when it began") for kind in ("leave", "replace", "join") * 2
    ]

    def seen(receipt: Receipt, *, end: bool = False) -> Observed:
        (evidence,) = by_node(receipt.end_evidence if end else receipt.begin_evidence).values()
        return evidence

    left, replaced, joined, moved_away, renewed, moved_back = receipts
    assert seen(left)["voters"] == seen(replaced, end=True)["voters"] == [100, 102]
    assert seen(joined)["voters"] == [100, CONTROLLER, 102]
    assert set(seen(moved_away)["assigned"]) >= set(replicas)
    assert all(BROKER not in after for after in seen(moved_away)["assigned"].values())
    assert seen(renewed, end=True)["registered"] == [0, 2]
    assert seen(replaced, end=True)["wiped"]["files"] > 0
    assert seen(renewed, end=True)["wiped"]["files"] > 0
    assert renewed.touched == ()
    assert all(BROKER in after for after in seen(moved_back)["assigned"].values())
    assert {len(after) for after in replicas.values()} == {3}
