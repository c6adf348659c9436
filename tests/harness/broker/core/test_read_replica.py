"""Rule 22 (KIP-392): consumers read from a follower that the leader names, up to that follower's high watermark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers import check_one
from harness.broker.core.messages import Fetch, FetchedPartition, FetchPartition
from harness.broker.core.read_replica import rack_of
from harness.broker.core.types import NONE, BrokerConfig, BrokerState, ErrorCode, TopicConfig
from harness.plan import RunSpec, Simulated
from harness.runs.run.performing import perform_run
from harness.worlds.simulated.consumer import Assigned, ConsumerModel
from nemesis.plan import FaultPlan
from tests.checkers.findings import forbidden
from tests.harness.broker.core.test_proposals import fetches_of
from tests.harness.worlds.simulated.driven import AT
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

NEAR = BrokerConfig(follower_fetching=True)
SAFE = TopicConfig(min_insync_replicas=2)


def rack(node: int) -> str:
    """The rack of a broker without a named one."""
    return rack_of(node, {})


def read(cluster: Any, broker: int, offset: int, near: str = "", *, epoch: int = NONE) -> Any:
    """The records that one fetch of a consumer gets of the partition."""
    wanted = FetchPartition(AT, offset, epoch)
    answer = cluster.ask(broker, lambda correlation: Fetch(correlation, NONE, 0, (wanted,), rack=near))
    return answer.partitions[0]


def values(answer: Any) -> list[str]:
    return [batch.records for batch in answer.batches]


def test_a_leader_names_the_in_sync_follower_of_the_consumers_rack(lab: Any) -> None:
    cluster = lab(NEAR)
    named = read(cluster, 0, 0, rack(2))
    assert (named.read_replica, named.error, values(named)) == (2, ErrorCode.NONE, [])
    assert values(read(cluster, 2, 0, rack(2))) == ["base"]


@pytest.mark.parametrize("where", ["", rack(0), "elsewhere"])
def test_a_leader_serves_whoever_has_no_follower_near(lab: Any, where: str) -> None:
    served = read(lab(NEAR), 0, 0, where)
    assert (served.read_replica, values(served)) == (NONE, ["base"])


def test_brokers_with_named_racks_are_near_whom_their_rack_has() -> None:
    brokers = {0: BrokerState(0, fenced=False, rack="a"), 1: BrokerState(1, fenced=False)}
    assert [rack_of(node, brokers) for node in (0, 1, 2)] == ["a", "r1", "r2"]


def test_a_leader_names_nobody_who_is_out_of_sync_or_lacks_the_offset(lab: Any) -> None:
    cluster = lab(NEAR, SAFE)
    cluster.lose = fetches_of(2)
    cluster.write(0, "x")
    cluster.run(20)
    assert read(cluster, 0, 1, rack(2)).read_replica == 2
    assert read(cluster, 0, 2, rack(2)).read_replica == NONE
    cluster.wait(lambda: 2 not in cluster.state().isr)
    assert read(cluster, 0, 1, rack(2)).read_replica == NONE


def test_what_a_follower_serves_is_stale_and_committed(lab: Any) -> None:
    """x is acknowledged and on the follower, which has not heard yet that it is committed; y is on it and never was."""
    cluster = lab(NEAR, SAFE)
    cluster.write_ok(0, "x")
    assert cluster.records(2) == ["base", "x"]
    assert values(read(cluster, 0, 0)) == ["base", "x"]
    assert values(read(cluster, 2, 0)) == ["base"]
    cluster.settle()
    assert values(read(cluster, 2, 0)) == ["base", "x"]
    cluster.lose = fetches_of(1)
    cluster.write(0, "y")
    cluster.run(1_000)
    assert cluster.records(2) == ["base", "x", "y"]
    assert values(read(cluster, 2, 0)) == values(read(cluster, 0, 0)) == ["base", "x"]


def test_a_read_that_waits_at_a_follower_ends_when_its_high_watermark_moves(lab: Any) -> None:
    cluster = lab(NEAR)
    correlation = cluster.correlation()
    cluster.send(2, Fetch(correlation, NONE, 400, (FetchPartition(AT, 1),)))
    cluster.run(20)
    cluster.write_ok(0, "x")
    cluster.write_ok(0, "y")
    cluster.run(10)
    assert "x" in values(cluster.answer(correlation).partitions[0])


def test_a_follower_fences_readers_of_other_epochs_and_knows_its_end(lab: Any) -> None:
    cluster = lab(NEAR)
    cluster.move_leader(1)
    cluster.settle()
    assert read(cluster, 2, 0, epoch=0).error == ErrorCode.FENCED_LEADER_EPOCH
    assert read(cluster, 2, 0, epoch=9).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert read(cluster, 2, 5, epoch=1).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values(read(cluster, 2, 0, epoch=1)) == ["base"]


def test_without_the_setting_only_leaders_serve_and_name_nobody(lab: Any) -> None:
    cluster = lab()
    assert read(cluster, 2, 0).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(cluster, 0, 0, rack(2)).read_replica == NONE


@pytest.mark.parametrize("family", ["kill", "partition"])
def test_consumers_that_read_from_followers_see_no_anomaly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    taken: list[int] = []
    take = ConsumerModel._take

    def count(self: ConsumerModel, assigned: Assigned, part: FetchedPartition) -> None:
        if assigned.read_replica != NONE:
            taken.append(sum(batch.count for batch in part.batches))
        take(self, assigned, part)

    monkeypatch.setattr(ConsumerModel, "_take", count)
    spec = RunSpec(
        world=Simulated(),
        cell="near",
        family=family,
        settings=Settings(min_insync_replicas=2, follower_fetching=True, enable_idempotence=True).to_mapping(),
        workload=WorkloadPlan(writes_per_second=50.0, duration_ms=10_000),
        faults=FaultPlan(families=(family,), count=3),
        seed=5,
    )
    assert perform_run(spec, tmp_path / "run").status == "completed"
    assert sum(taken) > 300
    assert forbidden(check_one(tmp_path / "run" / "history")) == []
