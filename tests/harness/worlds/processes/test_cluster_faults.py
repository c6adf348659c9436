"""Faults on a running cluster: each takes effect, leaves evidence, and can be undone."""

import msgspec
import pytest
from kafka.errors import KafkaTimeoutError

from harness.ground.observations import BecameLeader
from harness.records.journal import FILE_NAME, not_undone
from nemesis.cluster import CLIENTS, CONTROLLER, Link, require
from tests.harness.worlds.processes.conftest import LIMIT_US
from workloads.operations import EventType

pytestmark = pytest.mark.system


def both(first: int, second: int) -> list[Link]:
    return [Link(first, second), Link(second, first)]


def test_acknowledged_writes_are_read_back_in_order(cluster) -> None:
    before = cluster.end_offset()
    outcomes = cluster.write(20, process=cluster.next_process())
    assert [outcome.type for outcome in outcomes] == [EventType.OK] * 20
    assert [outcome.offset for outcome in outcomes] == list(range(before, before + 20))
    assert cluster.end_offset() == before + 20
    assert len(cluster.read(before + 20)) == before + 20


def test_a_killed_leader_is_gone_and_replaced_and_comes_back(cluster) -> None:
    leader = cluster.leads()
    evidence = cluster.target.processes.kill(leader)
    assert evidence["exit"] == "signal 9"
    assert evidence["connect"] == "refused"
    assert leader not in cluster.target.view().running
    assert cluster.until(lambda: cluster.leader() not in (leader, None))
    assert cluster.target.processes.restart(leader) == {"state": "running"}
    assert cluster.target.processes.restart(leader) == {}
    assert cluster.until(cluster.is_well)
    assert cluster.write(1, process=cluster.next_process())[0].type is EventType.OK


def test_a_paused_leader_is_replaced_and_resumes(cluster) -> None:
    leader = cluster.leads()
    assert cluster.target.processes.pause(leader)["state"] == "T"
    assert cluster.target.processes.pause(leader)["state"] == "T"
    assert leader not in cluster.target.view().running
    assert cluster.until(lambda: cluster.leader() not in (leader, None))
    assert cluster.target.processes.resume(leader)["state"] != "T"
    assert cluster.target.processes.resume(leader) == {}
    assert cluster.until(cluster.is_well)


def test_a_leader_cut_from_the_controller_is_replaced_and_the_cut_counts_what_it_held(cluster) -> None:
    leader = cluster.leads()
    cluster.target.links.cut(both(leader, CONTROLLER))
    assert cluster.until(lambda: cluster.leader() not in (leader, None))
    held = cluster.target.links.heal(both(leader, CONTROLLER))["held"]
    assert held[str(leader)][f"{leader}>{CONTROLLER}"]["frames"] > 0
    assert cluster.until(cluster.is_well)


def test_a_one_way_cut_of_a_follower_takes_it_out_of_the_isr(cluster) -> None:
    leader = cluster.leads()
    follower = next(node for node in (0, 1, 2) if node != leader)
    cluster.target.links.cut([Link(follower, leader)])
    cluster.write(1, process=cluster.next_process())  # a follower that lacks nothing never lags (replication rule 9)
    assert cluster.until(lambda: follower not in cluster.target.view().partitions["ackproof-0"].isr)
    assert cluster.leads() == leader
    cluster.target.links.heal([Link(follower, leader)])
    assert cluster.until(cluster.is_well)


@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_a_client_cut_from_the_leader_does_not_know_how_its_write_ended(cluster, direction: str) -> None:
    leader, process = cluster.leads(), cluster.next_process()
    producer = cluster.connected_producer(process)
    before = cluster.end_offset()
    client = 1_001 + process
    link = Link(client, leader) if direction == "requests" else Link(leader, client)
    cluster.target.links.cut([link])
    (outcome,) = cluster.write(1, process, producer)
    assert outcome.type is EventType.INFO
    assert outcome.error is not None
    others = cluster.write(1, process=cluster.next_process())
    assert others[0].type is EventType.OK, "other clients are not concerned"
    cluster.target.links.heal([link])
    producer.close()
    assert cluster.end_offset() > before


def test_a_cut_of_all_clients_leaves_the_cluster_alone(cluster) -> None:
    leader, process = cluster.leads(), cluster.next_process()
    producer = cluster.connected_producer(process)
    cluster.target.links.cut(both(CLIENTS, leader))
    (outcome,) = cluster.write(1, process, producer)
    assert outcome.type is EventType.INFO
    assert outcome.error is not None
    assert outcome.error.startswith(KafkaTimeoutError.__name__)
    assert cluster.leader() == leader
    cluster.target.links.heal(both(CLIENTS, leader))
    producer.close()


def test_a_cut_outlives_the_restart_of_its_node(cluster) -> None:
    node = next(node for node in (0, 1, 2) if node != cluster.leads())
    cluster.target.links.cut(both(node, CONTROLLER))
    cluster.target.processes.kill(node)
    cluster.target.processes.restart(node)
    begun_with = msgspec.json.decode((cluster.directory / "data" / f"{node}.json").read_bytes())["cuts"]
    assert begun_with == [[node, CONTROLLER], [CONTROLLER, node]]
    assert cluster.until(lambda: links_of(cluster, node) == {f"{node}>100", f"100>{node}"})
    assert cluster.until(lambda: node not in cluster.target.view().partitions["ackproof-0"].isr)
    cluster.target.links.heal(both(node, CONTROLLER))
    assert cluster.until(cluster.is_well)


def test_cuts_and_heals_during_a_pause_are_known_when_the_node_resumes(cluster) -> None:
    node = next(node for node in (0, 1, 2) if node != cluster.leads())
    early, late = Link(node, 1_990), Link(node, 1_991)
    cluster.target.links.cut([early])
    cluster.target.processes.pause(node)
    cluster.target.links.heal([early])
    assert cluster.target.links.cut([late]) == {}
    assert cluster.target.processes.resume(node)["links_updated"] is True
    assert links_of(cluster, node) == {f"{node}>1991"}
    cluster.target.links.heal([late])


def links_of(cluster, node: int) -> set[str]:
    """The links that a node says it cuts."""
    answer = cluster.target.processes.nodes.host.ask([node], {"op": "status"}, LIMIT_US / 1e6).get(node, {})
    return set(answer.get("links", {}))


def test_the_controller_can_be_killed_while_its_last_word_stands(cluster) -> None:
    before = cluster.target.view().partitions
    assert cluster.target.processes.kill(CONTROLLER)["exit"] == "signal 9"
    assert cluster.target.view().partitions == before
    cluster.target.processes.restart(CONTROLLER)
    assert cluster.until(cluster.is_well)


def test_what_happened_is_observed_on_the_runs_clock(cluster) -> None:
    def led() -> bool:
        observations = cluster.world.observations()
        return any(
            isinstance(observation.fact, BecameLeader) and observation.partition == "ackproof-0"
            for observation in observations
        )

    assert cluster.until(cluster.is_well)
    leader = cluster.leads()
    follower = next(broker for broker in cluster.target.view().running if broker != leader)
    require(cluster.target.leadership).move_leader("ackproof-0", follower)
    assert cluster.until(led)
    seen = cluster.world.observations()
    assert [observation.time_us for observation in seen] == sorted(observation.time_us for observation in seen)
    assert seen[-1].time_us <= cluster.world.clock.now_us()


def test_no_fault_that_was_undone_stands_in_the_journal(cluster) -> None:
    kinds = {action.kind for action in not_undone(cluster.directory / FILE_NAME)}
    assert kinds == {"process", "directory"}
