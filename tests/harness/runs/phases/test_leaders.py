"""The leaders that closings of a workload move."""

from __future__ import annotations

from typing import Any, cast

import pytest

from harness.runs.phases.leaders import TargetLeaders
from nemesis.cluster import ClusterView, PartitionView, Target
from nemesis.evidence import LeaderMoved

LOGS_OF_GROUPS = ("__consumer_offsets-0", "__consumer_offsets-1")


class Cluster:
    """Three brokers; those in ``out_of_sync`` cannot lead these log partitions."""

    def __init__(self, out_of_sync: dict[str, int]) -> None:
        self.leads = dict.fromkeys(("t-0", "t-1", *LOGS_OF_GROUPS, "__transaction_state-0"), 0)
        self.moved: list[str] = []
        self._out_of_sync = out_of_sync

    def view(self) -> ClusterView:
        states = {
            name: PartitionView(leader=leader, leader_epoch=0, isr=(0, 1, 2), replicas=(0, 1, 2))
            for name, leader in self.leads.items()
        }
        internal = {name: state for name, state in states.items() if name.startswith("__")}
        own = {name: state for name, state in states.items() if name not in internal}
        return ClusterView(partitions=own, running=(0, 1, 2), brokers=(0, 1, 2), internal=internal)

    def move_leader(self, partition: str, broker: int) -> LeaderMoved:
        self.moved.append(partition)
        if self._out_of_sync.get(partition) != broker:
            self.leads[partition] = broker
        return cast("LeaderMoved", {"leader": self.leads[partition]})


def leaders_of(cluster: Any) -> TargetLeaders:
    return TargetLeaders(Target(view=cluster.view, leadership=cluster))


def test_leaders_are_moved_where_another_broker_leads() -> None:
    cluster = Cluster({"t-1": 2})
    leaders = leaders_of(cluster)
    assert leaders.brokers == (0, 1, 2)
    assert leaders.lead(["t-0", "t-1"], 0) == {"t-0", "t-1"}
    assert cluster.moved == []
    assert leaders.lead(["t-0", "t-1", "t-9"], 2) == {"t-0"}
    assert cluster.moved == ["t-0", "t-1"]


@pytest.mark.parametrize(
    ("out_of_sync", "coordinates"),
    [({}, True), ({LOGS_OF_GROUPS[0]: 1}, True), (dict.fromkeys(LOGS_OF_GROUPS, 1), False)],
)
def test_a_broker_coordinates_if_it_leads_a_log_of_groups(out_of_sync: dict[str, int], coordinates: bool) -> None:
    cluster = Cluster(out_of_sync)
    assert leaders_of(cluster).coordinate(1) is coordinates
    assert cluster.moved == [*LOGS_OF_GROUPS]


def test_where_no_leader_can_be_moved_no_broker_can_be_made_a_leader() -> None:
    leaders = TargetLeaders(Target(view=Cluster({}).view))
    assert leaders.brokers == ()
    assert leaders.lead(["t-0"], 1) == frozenset()
    assert leaders.coordinate(1) is False
