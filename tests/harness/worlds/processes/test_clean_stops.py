"""Clean stops, slow links and clocks on a running cluster of the reference broker."""

import psutil
import pytest

from harness.worlds.processes import processes_world
from nemesis.cluster import Capability, Link
from nemesis.plan import FaultPlan
from workloads.operations import EventType

pytestmark = pytest.mark.system


def test_a_stopped_leader_hands_over_before_its_session_ends_and_comes_back(cluster) -> None:
    leader = cluster.leads()
    evidence = cluster.target.processes.stop(leader)
    assert evidence["signal"] == 15
    assert cluster.target.processes.stop(leader) == {}
    assert leader not in cluster.target.view().running
    assert cluster.until(lambda: cluster.leader() not in (leader, None))
    assert cluster.write(1, process=cluster.next_process())[0].type is EventType.OK
    assert cluster.until(lambda: psutil.Process(evidence["pid"]).status() == psutil.STATUS_ZOMBIE)
    assert cluster.target.processes.restart(leader)["exit"] == "status 0"
    assert cluster.until(cluster.is_well)


def test_a_broker_that_is_still_ending_is_started_when_it_has(cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, nodes = cluster.leads(), cluster.target.processes.nodes
    starts, process = nodes.starts(leader), nodes.process(leader)
    with monkeypatch.context() as late:  # else it may have ended before it is asked for again
        late.setattr(type(process), "terminate", lambda _: {})
        cluster.target.processes.stop(leader)
    assert cluster.target.processes.restart(leader) == {"state": "ending"}
    assert cluster.target.processes.restart(leader) == {}
    process.terminate()
    assert cluster.until(lambda: nodes.starts(leader) > starts and cluster.is_well())


def test_what_the_last_in_sync_replica_acknowledged_is_there_after_its_stop(cluster) -> None:
    leader = cluster.leads()
    followers = [node for node in (0, 1, 2) if node != leader]
    links = [link for node in followers for link in (Link(leader, node), Link(node, leader))]
    before = cluster.end_offset()
    cluster.write(5, process=cluster.next_process())
    cluster.target.links.cut(links)
    cluster.write(1, process=cluster.next_process())  # a follower lags only where there is something to fetch
    assert cluster.until(lambda: cluster.target.view().partitions["ackproof-0"].isr == (leader,))
    cluster.target.processes.stop(leader)
    assert cluster.until(lambda: cluster.leader() is None)
    cluster.target.processes.restart(leader)
    cluster.target.links.heal(links)
    assert cluster.until(cluster.is_well)
    end = cluster.end_offset()
    assert end >= before + 5
    assert len(cluster.read(end)) == end


def test_without_addresses_of_their_own_links_are_not_slow_and_the_reason_is_told(tmp_path, make_spec) -> None:
    run_spec = make_spec(faults=FaultPlan(families=("slow-link",)))
    world = processes_world(run_spec, tmp_path)
    try:
        world.open()
        assert "namespaces" in world.target.lacks[Capability.LINK_SPEED]
        assert "no clock fault was planned" in world.target.lacks[Capability.CLOCKS]
        assert world.target.link_speed is None
        assert Capability.CLOCKS in world.target.unplanned
        assert Capability.LINK_SPEED not in world.target.unplanned
    finally:
        world.close()
