"""The simulated world around the real core: nodes, faults, and what clients live through."""

import pytest

from harness.broker.core.types import OFFSETS_TOPIC, TopicPartition
from harness.ground.errors import HarnessError
from harness.ground.observations import Acknowledged, BecameLeader, LeaderElected, RecordsAppended
from harness.plan import RunSpec, Simulated
from harness.worlds.simulated import SimulatedWorld
from harness.worlds.simulated.steady import Steady
from nemesis.cluster import CLIENTS, CONTROLLER, Capability, Link
from nemesis.plan import FaultPlan
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

AT = TopicPartition("t", 0)
OK, FAIL, INFO = EventType.OK, EventType.FAIL, EventType.INFO


def test_an_open_world_has_a_leader_and_a_full_isr_everywhere(stage):
    scene = stage()
    view = scene.target.view()
    assert sorted(view.partitions) == ["t-0", "t-1", "t-2"]
    assert scene.healthy()
    assert view.running == view.brokers == (0, 1, 2)
    assert 0 < scene.world.clock.now_us() < 2_000_000


def test_a_cluster_that_cannot_start_says_so(stage):
    with pytest.raises(HarnessError, match="the topic t could not be created"):
        stage(replication_factor=4)


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_what_is_written_in_peace_is_read(stage, acks):
    scene = stage(acks=acks)
    send = scene.producer()
    for value in ("x", "y", "z"):
        assert scene.write(send, value).type is OK
    scene.wait(600)
    assert scene.read_all() == ["x", "y", "z"]
    offsets = [scene.sent[value].offset for value in ("x", "y", "z")]
    assert offsets == ([None] * 3 if acks == 0 else [0, 1, 2])


def test_sigkill_keeps_appended_bytes(stage):
    scene = stage()
    scene.write(scene.producer(), "x")
    scene.wait(600)
    for node in scene.world.cluster.brokers:
        assert scene.target.processes.kill(node)["exit"] == "signal 9"
        log = scene.world.cluster.log(node, AT)
        assert log is not None
        assert (log.end_offset, log.flushed_offset) == (1, 0)
    for node in scene.world.cluster.brokers:
        scene.target.processes.restart(node)
    scene.until(scene.healthy)
    assert scene.read_all() == ["x"]


def test_evidence_is_of_what_happened_and_empty_where_nothing_did(stage):
    target = stage().target
    assert target.processes.restart(0) == {}
    assert target.processes.resume(0) == {}
    first = target.processes.kill(0)
    assert first["exit"] == "signal 9"
    assert target.processes.kill(0) == {}
    assert target.processes.pause(0) == {}
    assert target.view().running == (1, 2)
    again = target.processes.restart(0)
    assert again["state"] == "running"
    assert again["incarnation"] != first["incarnation"]
    assert target.processes.pause(1)["state"] == "frozen"
    assert target.view().running == (0, 2)
    assert target.processes.resume(1)["state"] == "running"
    assert target.links.cut([Link(0, 1)])["cut"] == 1
    assert target.links.cut([Link(0, 1)]) == {}
    assert set(target.links.heal([Link(0, 1)])) == {"dropped", "delayed"}
    assert target.links.heal([Link(0, 1)]) == {}


def test_a_dead_leader_is_replaced_and_returns_as_a_follower(stage):
    scene = stage()
    old = scene.leader
    scene.target.processes.kill(old)
    scene.until(scene.moved_from(old))
    scene.target.processes.restart(old)
    scene.until(scene.healthy)
    assert scene.leader != old


def test_the_controller_forgets_nothing_when_it_dies(stage):
    scene = stage()
    before = scene.target.view().partitions
    scene.target.processes.kill(CONTROLLER)
    assert scene.target.view().partitions == before
    scene.wait(1_000)
    scene.target.processes.restart(CONTROLLER)
    scene.write(scene.producer(), "x")
    scene.wait(3_000)
    assert scene.healthy()


def test_a_frozen_leader_is_replaced_and_its_late_acks_are_lost(stage):
    scene = stage(acks=1, retries=0, request_timeout_ms=9_000, delivery_timeout_ms=9_000)
    send = scene.producer()
    scene.write(send, "before")
    old = scene.leader
    scene.wait(600)
    scene.target.processes.pause(old)
    send("late")
    scene.until(scene.moved_from(old))
    scene.wait(100)
    evidence = scene.target.processes.resume(old)
    assert evidence["waited"] > 0
    scene.until(lambda: "late" in scene.sent)
    scene.until(scene.healthy)
    assert scene.sent["late"].type is OK
    assert scene.sent["late"].node == old
    assert scene.read_all() == ["before"]


def test_an_acks_1_write_on_a_zombie_leader_is_lost_after_the_heal(stage):
    scene = stage(acks=1)
    send = scene.producer()
    scene.write(send, "before")
    scene.wait(600)
    old = scene.leader
    links = scene.cut_off(old)
    scene.until(scene.moved_from(old))
    assert scene.write(send, "zombie").node == old
    evidence = scene.target.links.heal(links)
    assert evidence["dropped"] + evidence["delayed"] > 0
    scene.until(scene.healthy)
    assert scene.read_all() == ["before"]


def test_an_acks_all_write_on_a_zombie_leader_is_acknowledged_only_by_its_successor(stage):
    scene = stage(acks=-1, min_insync_replicas=2)
    send = scene.producer()
    scene.write(send, "before")
    old = scene.leader
    links = scene.cut_off(old)
    scene.until(scene.moved_from(old))
    outcome = scene.write(send, "zombie")
    scene.target.links.heal(links)
    scene.until(scene.healthy)
    scene.wait(600)
    assert outcome.type in {OK, INFO}
    assert outcome.node != old or outcome.type is INFO
    assert ("zombie" in scene.read_all()) or outcome.type is INFO


def test_a_refused_acks_0_write_is_lost_and_the_next_finds_the_new_leader(stage):
    scene = stage(acks=0)
    send = scene.producer()
    scene.write(send, "before")
    scene.wait(600)
    old = scene.leader
    links = scene.cut_off(old)
    scene.until(scene.moved_from(old))
    scene.target.links.heal(links)
    scene.until(scene.healthy)
    scene.write(send, "refused")
    scene.wait(500)
    scene.write(send, "after")
    scene.wait(600)
    assert {outcome.type for outcome in scene.sent.values()} == {OK}
    assert scene.read_all() == ["before", "after"]


def test_below_min_isr_a_write_is_refused_for_certain(stage):
    scene = stage(min_insync_replicas=2, retries=0)
    send = scene.producer()
    scene.write(send, "before")
    for follower in scene.followers:
        scene.target.processes.kill(follower)
    scene.until(lambda: len(scene.target.view().partitions["t-0"].isr) == 1)
    scene.wait(500)
    outcome = scene.write(send, "refused")
    assert (outcome.type, outcome.error) == (FAIL, "NotEnoughReplicasError")
    for follower in scene.followers:
        scene.target.processes.restart(follower)
    scene.until(scene.healthy)
    assert scene.read_all() == ["before"]


def lost_reply(scene):
    """One write whose first answer never reaches the producer."""
    send = scene.producer()
    scene.write(send, "before")
    answers = [Link(scene.leader, CLIENTS)]
    scene.target.links.cut(answers)
    send("x")
    scene.wait(100)
    scene.target.links.heal(answers)
    scene.until(lambda: "x" in scene.sent)
    scene.wait(600)
    return scene.read_all()


@pytest.mark.parametrize("seed", range(4))
def test_a_lost_reply_is_doubled_without_idempotence_only(stage, seed):
    """The cut retransmits, so the answer arrives after all and nobody sends twice."""
    plain = lost_reply(stage(seed))
    assert plain.count("x") in {1, 2}
    assert lost_reply(stage(seed, enable_idempotence=True)) == ["before", "x"]


def test_without_idempotence_some_lost_reply_is_doubled(stage):
    assert any(lost_reply(stage(seed)).count("x") == 2 for seed in range(8))


def test_a_dead_broker_is_noticed_at_once_and_a_frozen_one_by_time_out(stage):
    def time_to_answer_ms(attack):
        scene = stage(seed=5, retries=0, delivery_timeout_ms=20_000)
        send = scene.producer()
        scene.write(send, "before")
        leader = scene.leader
        send("x")
        getattr(scene.target.processes, attack)(leader)
        began_us = scene.world.clock.now_us()
        scene.until(lambda: "x" in scene.sent)
        assert scene.sent["x"].type is INFO
        return (scene.world.clock.now_us() - began_us) / 1_000

    assert time_to_answer_ms("kill") < 50
    assert 1_400 < time_to_answer_ms("pause") < 1_600


def test_observing_tells_the_story_and_changes_nothing(stage):
    def outcome(observe):
        scene = stage(seed=9, observe=observe)
        send = scene.producer()
        for value in "abc":
            scene.write(send, value)
        scene.target.processes.kill(scene.leader)
        scene.wait(4_000)
        return scene.sent, scene.target.view(), scene.world.clock.now_us(), scene.world.observations()

    silent, observed = outcome(observe=False), outcome(observe=True)
    assert silent[:3] == observed[:3]
    assert silent[3] == []
    assert {BecameLeader, RecordsAppended, Acknowledged, LeaderElected} <= {type(seen.fact) for seen in observed[3]}
    times_us = [seen.time_us for seen in observed[3]]
    assert times_us == sorted(times_us)


def test_a_stopped_leader_hands_over_flushes_and_comes_back(stage):
    scene = stage()
    old = scene.leader
    scene.write(scene.producer(), "x")
    assert scene.target.processes.stop(old)["state"] == "ending"
    assert scene.target.processes.stop(old) == {}
    assert old not in scene.target.view().running
    scene.until(scene.moved_from(old))
    scene.wait(100)
    log = scene.world.cluster.log(old, AT)
    assert log is not None
    assert log.flushed_offset == log.end_offset == 1
    assert scene.target.processes.kill(old) == {}
    assert scene.target.processes.restart(old)["state"] == "running"
    scene.until(scene.healthy)
    assert scene.read_all() == ["x"]


def test_a_broker_that_is_to_return_before_it_has_left_returns_when_it_has(stage):
    scene = stage()
    old = scene.leader
    scene.target.processes.stop(old)
    assert scene.target.processes.restart(old) == {"state": "ending"}
    scene.until(scene.moved_from(old))
    scene.until(scene.healthy)
    assert old in scene.target.view().running


def test_the_last_in_sync_replica_keeps_what_it_had_when_it_is_stopped(stage):
    scene = stage(min_insync_replicas=1)
    old = scene.leader
    scene.target.links.cut(
        [Link(source, target) for follower in scene.followers for source, target in ((old, follower), (follower, old))]
    )
    scene.until(lambda: scene.target.view().partitions["t-0"].isr == (old,))
    assert scene.write(scene.producer(), "alone").type is OK
    scene.target.processes.stop(old)
    scene.until(lambda: scene.target.view().partitions["t-0"].leader is None)
    scene.wait(4_000)
    scene.target.links.heal(
        [
            Link(source, target)
            for source in scene.world.cluster.brokers
            for target in scene.world.cluster.brokers
            if source != target
        ]
    )
    scene.target.processes.restart(old)
    scene.until(scene.healthy)
    assert scene.read_all() == ["alone"]


def test_nothing_has_a_wall_clock_in_virtual_time(stage):
    target = stage().target
    assert target.clocks is None
    assert "wall clock" in target.lacks[Capability.CLOCKS]
    assert target.link_speed.slow([Link(0, 1)]) == {"slow": ["0>1"]}
    assert target.link_speed.restore([Link(0, 1)]) == {"quick": ["0>1"]}
    assert target.link_speed.restore([Link(0, 1)]) == {}


def test_more_than_a_frozen_process_can_keep_ends_the_run(stage, monkeypatch):
    monkeypatch.setattr("harness.worlds.simulated.nodes.INBOX_MAX", 5)
    scene = stage()
    scene.target.processes.pause(scene.leader)
    with pytest.raises(HarnessError, match="more than 5 messages and timers wait for the frozen node"):
        scene.wait(3_000)


def test_proposals_that_are_held_change_the_isr_when_they_are_released(stage):
    scene = stage(min_insync_replicas=1)
    old, follower = scene.leader, scene.followers[0]
    proposals = [Link(old, CONTROLLER)]
    assert scene.target.messages.hold(proposals, "AlterPartition") == {"filtered": [f"{old}>{CONTROLLER}"]}
    scene.target.links.cut([Link(follower, old)])
    send = scene.producer()
    send("x")
    scene.wait(4_000)
    assert follower in scene.target.view().partitions["t-0"].isr
    assert "x" not in scene.sent
    assert scene.target.messages.release(proposals)["held"] > 0
    scene.until(lambda: scene.sent["x"].type is OK if "x" in scene.sent else False, 2_000)
    assert follower not in scene.target.view().partitions["t-0"].isr


def test_dropped_answers_of_one_api_leave_the_others_alone(stage):
    scene = stage(retries=0)
    send = scene.producer()
    scene.write(send, "before")
    answers = [Link(scene.leader, CLIENTS)]
    scene.target.messages.drop(answers, "Produce")
    outcome = scene.write(send, "x")
    assert outcome.type is INFO
    assert scene.target.messages.release(answers) == {"held": 0, "dropped": 1}
    assert scene.target.messages.release(answers) == {}
    scene.wait(600)
    assert scene.read_all() == ["before", "x"]


def test_an_api_that_nobody_speaks_is_refused(stage):
    with pytest.raises(HarnessError, match='the API "Fetsch"; choose one of Produce, Fetch'):
        stage().target.messages.hold([Link(0, 1)], "Fetsch")


def test_a_hold_of_some_messages_outlasts_one_of_others_on_its_link(stage):
    scene = stage()
    to_clients = [Link(scene.leader, CLIENTS)]
    scene.target.messages.hold(to_clients, "Produce")
    scene.target.messages.drop(to_clients, "Produce")
    send = scene.producer()
    send("x")
    scene.wait(200)
    assert scene.target.messages.release(to_clients, "drop", "Produce") == {"held": 0, "dropped": 0}
    scene.wait(200)
    assert "x" not in scene.sent
    assert scene.target.messages.release(to_clients, "hold", "Produce") == {"held": 1, "dropped": 0}
    scene.until(lambda: "x" in scene.sent, 2_000)


def test_the_log_of_groups_has_the_settings_that_brokers_would_have_for_every_topic():
    settings = Settings(min_insync_replicas=1, unclean_leader_election_enable=True)
    workload = WorkloadPlan(topic="t", name="groups")
    common = {"settings": settings.to_mapping(), "workload": workload, "faults": FaultPlan(), "seed": 1}
    world = SimulatedWorld(RunSpec(world=Simulated(), cell="c", family="kill", **common), Steady(0))
    world.open()
    config = world.cluster.image().topics[OFFSETS_TOPIC].config
    assert (config.min_insync_replicas, config.unclean_leader_election_enable) == (1, True)
