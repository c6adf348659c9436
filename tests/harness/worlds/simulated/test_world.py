"""The simulated world around the real core: nodes, faults, and what clients live through."""

import pytest

from harness.errors import HarnessError
from harness.observations import Acknowledged, BecameLeader, LeaderElected, RecordsAppended
from harness.plan import RunSpec, Simulated
from harness.reference.core.types import OFFSETS_TOPIC, TopicPartition
from harness.worlds.simulated import SimulatedWorld
from harness.worlds.simulated.steady import Steady
from nemesis.cluster import CLIENTS, CONTROLLER, Capability, Link
from nemesis.plan import FaultPlan
from tests.harness.needs import needs_interpreted
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

AT = TopicPartition("t", 0)
OK, FAIL, INFO = EventType.OK, EventType.FAIL, EventType.INFO


def test_an_open_world_has_a_leader_and_a_full_isr_everywhere(stage):
    at = stage()
    view = at.target.view()
    assert sorted(view.partitions) == ["t-0", "t-1", "t-2"]
    assert at.healthy()
    assert view.running == view.brokers == (0, 1, 2)
    assert 0 < at.world.clock.now_us() < 2_000_000


def test_a_cluster_that_cannot_start_says_so(stage):
    with pytest.raises(HarnessError, match="the topic t could not be created"):
        stage(replication_factor=4)


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_what_is_written_in_peace_is_read(stage, acks):
    at = stage(acks=acks)
    send = at.producer()
    for value in ("x", "y", "z"):
        assert at.write(send, value).type is OK
    at.wait(600)
    assert at.read_all() == ["x", "y", "z"]
    offsets = [at.sent[value].offset for value in ("x", "y", "z")]
    assert offsets == ([None] * 3 if acks == 0 else [0, 1, 2])


def test_sigkill_keeps_appended_bytes(stage):
    at = stage()
    at.write(at.producer(), "x")
    at.wait(600)
    for node in at.world.cluster.brokers:
        assert at.target.processes.kill(node)["exit"] == "signal 9"
        log = at.world.cluster.log(node, AT)
        assert log is not None
        assert (log.end_offset, log.flushed_offset) == (1, 0)
    for node in at.world.cluster.brokers:
        at.target.processes.restart(node)
    at.until(at.healthy)
    assert at.read_all() == ["x"]


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
    at = stage()
    old = at.leader
    at.target.processes.kill(old)
    at.until(at.moved_from(old))
    at.target.processes.restart(old)
    at.until(at.healthy)
    assert at.leader != old


def test_the_controller_forgets_nothing_when_it_dies(stage):
    at = stage()
    before = at.target.view().partitions
    at.target.processes.kill(CONTROLLER)
    assert at.target.view().partitions == before
    at.wait(1_000)
    at.target.processes.restart(CONTROLLER)
    at.write(at.producer(), "x")
    at.wait(3_000)
    assert at.healthy()


def test_a_frozen_leader_is_replaced_and_its_late_acks_are_lost(stage):
    at = stage(acks=1, retries=0, request_timeout_ms=9_000, delivery_timeout_ms=9_000)
    send = at.producer()
    at.write(send, "before")
    old = at.leader
    at.wait(600)
    at.target.processes.pause(old)
    send("late")
    at.until(at.moved_from(old))
    at.wait(100)
    evidence = at.target.processes.resume(old)
    assert evidence["waited"] > 0
    at.until(lambda: "late" in at.sent)
    at.until(at.healthy)
    assert at.sent["late"].type is OK
    assert at.sent["late"].node == old
    assert at.read_all() == ["before"]


def test_an_acks_1_write_on_a_zombie_leader_is_lost_after_the_heal(stage):
    at = stage(acks=1)
    send = at.producer()
    at.write(send, "before")
    at.wait(600)
    old = at.leader
    links = at.cut_off(old)
    at.until(at.moved_from(old))
    assert at.write(send, "zombie").node == old
    evidence = at.target.links.heal(links)
    assert evidence["dropped"] + evidence["delayed"] > 0
    at.until(at.healthy)
    assert at.read_all() == ["before"]


def test_an_acks_all_write_on_a_zombie_leader_is_acknowledged_only_by_its_successor(stage):
    at = stage(acks=-1, min_insync_replicas=2)
    send = at.producer()
    at.write(send, "before")
    old = at.leader
    links = at.cut_off(old)
    at.until(at.moved_from(old))
    outcome = at.write(send, "zombie")
    at.target.links.heal(links)
    at.until(at.healthy)
    at.wait(600)
    assert outcome.type in {OK, INFO}
    assert outcome.node != old or outcome.type is INFO
    assert ("zombie" in at.read_all()) or outcome.type is INFO


def test_a_refused_acks_0_write_is_lost_and_the_next_finds_the_new_leader(stage):
    at = stage(acks=0)
    send = at.producer()
    at.write(send, "before")
    at.wait(600)
    old = at.leader
    links = at.cut_off(old)
    at.until(at.moved_from(old))
    at.target.links.heal(links)
    at.until(at.healthy)
    at.write(send, "refused")
    at.wait(500)
    at.write(send, "after")
    at.wait(600)
    assert {outcome.type for outcome in at.sent.values()} == {OK}
    assert at.read_all() == ["before", "after"]


def test_below_min_isr_a_write_is_refused_for_certain(stage):
    at = stage(min_insync_replicas=2, retries=0)
    send = at.producer()
    at.write(send, "before")
    for follower in at.followers:
        at.target.processes.kill(follower)
    at.until(lambda: len(at.target.view().partitions["t-0"].isr) == 1)
    at.wait(500)
    outcome = at.write(send, "refused")
    assert (outcome.type, outcome.error) == (FAIL, "NotEnoughReplicasError")
    for follower in at.followers:
        at.target.processes.restart(follower)
    at.until(at.healthy)
    assert at.read_all() == ["before"]


def lost_reply(at):
    """One write whose first answer never reaches the producer."""
    send = at.producer()
    at.write(send, "before")
    answers = [Link(at.leader, CLIENTS)]
    at.target.links.cut(answers)
    send("x")
    at.wait(100)
    at.target.links.heal(answers)
    at.until(lambda: "x" in at.sent)
    at.wait(600)
    return at.read_all()


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
        at = stage(seed=5, retries=0, delivery_timeout_ms=20_000)
        send = at.producer()
        at.write(send, "before")
        leader = at.leader
        send("x")
        getattr(at.target.processes, attack)(leader)
        began_us = at.world.clock.now_us()
        at.until(lambda: "x" in at.sent)
        assert at.sent["x"].type is INFO
        return (at.world.clock.now_us() - began_us) / 1_000

    assert time_to_answer_ms("kill") < 50
    assert 1_400 < time_to_answer_ms("pause") < 1_600


def test_observing_tells_the_story_and_changes_nothing(stage):
    def outcome(observe):
        at = stage(seed=9, observe=observe)
        send = at.producer()
        for value in "abc":
            at.write(send, value)
        at.target.processes.kill(at.leader)
        at.wait(4_000)
        return at.sent, at.target.view(), at.world.clock.now_us(), at.world.observations()

    silent, observed = outcome(observe=False), outcome(observe=True)
    assert silent[:3] == observed[:3]
    assert silent[3] == []
    assert {BecameLeader, RecordsAppended, Acknowledged, LeaderElected} <= {type(seen.fact) for seen in observed[3]}
    times_us = [seen.time_us for seen in observed[3]]
    assert times_us == sorted(times_us)


def test_a_stopped_leader_hands_over_flushes_and_comes_back(stage):
    at = stage()
    old = at.leader
    at.write(at.producer(), "x")
    assert at.target.processes.stop(old)["state"] == "ending"
    assert at.target.processes.stop(old) == {}
    assert old not in at.target.view().running
    at.until(at.moved_from(old))
    at.wait(100)
    log = at.world.cluster.log(old, AT)
    assert log is not None
    assert log.flushed_offset == log.end_offset == 1
    assert at.target.processes.kill(old) == {}
    assert at.target.processes.restart(old)["state"] == "running"
    at.until(at.healthy)
    assert at.read_all() == ["x"]


def test_a_broker_that_is_to_return_before_it_has_left_returns_when_it_has(stage):
    at = stage()
    old = at.leader
    at.target.processes.stop(old)
    assert at.target.processes.restart(old) == {"state": "ending"}
    at.until(at.moved_from(old))
    at.until(at.healthy)
    assert old in at.target.view().running


def test_the_last_in_sync_replica_keeps_what_it_had_when_it_is_stopped(stage):
    at = stage(min_insync_replicas=1)
    old = at.leader
    at.target.links.cut(
        [Link(one, other) for follower in at.followers for one, other in ((old, follower), (follower, old))]
    )
    at.until(lambda: at.target.view().partitions["t-0"].isr == (old,))
    assert at.write(at.producer(), "alone").type is OK
    at.target.processes.stop(old)
    at.until(lambda: at.target.view().partitions["t-0"].leader is None)
    at.wait(4_000)
    at.target.links.heal(
        [Link(one, other) for one in at.world.cluster.brokers for other in at.world.cluster.brokers if one != other]
    )
    at.target.processes.restart(old)
    at.until(at.healthy)
    assert at.read_all() == ["alone"]


def test_nothing_has_a_wall_clock_in_virtual_time(stage):
    target = stage().target
    assert target.clocks is None
    assert "wall clock" in target.lacks[Capability.CLOCKS]
    assert target.link_speed.slow([Link(0, 1)]) == {"slow": ["0>1"]}
    assert target.link_speed.restore([Link(0, 1)]) == {"quick": ["0>1"]}
    assert target.link_speed.restore([Link(0, 1)]) == {}


@needs_interpreted
def test_more_than_a_frozen_process_can_keep_ends_the_run(stage, monkeypatch):
    monkeypatch.setattr("harness.worlds.simulated.nodes.INBOX_MAX", 5)
    at = stage()
    at.target.processes.pause(at.leader)
    with pytest.raises(HarnessError, match="more than 5 messages and timers wait for the frozen node"):
        at.wait(3_000)


def test_proposals_that_are_held_change_the_isr_when_they_are_released(stage):
    at = stage(min_insync_replicas=1)
    old, follower = at.leader, at.followers[0]
    proposals = [Link(old, CONTROLLER)]
    assert at.target.messages.hold(proposals, "AlterPartition") == {"filtered": [f"{old}>{CONTROLLER}"]}
    at.target.links.cut([Link(follower, old)])
    send = at.producer()
    send("x")
    at.wait(4_000)
    assert follower in at.target.view().partitions["t-0"].isr
    assert "x" not in at.sent
    assert at.target.messages.release(proposals)["held"] > 0
    at.until(lambda: at.sent["x"].type is OK if "x" in at.sent else False, 2_000)
    assert follower not in at.target.view().partitions["t-0"].isr


def test_dropped_answers_of_one_api_leave_the_others_alone(stage):
    at = stage(retries=0)
    send = at.producer()
    at.write(send, "before")
    answers = [Link(at.leader, CLIENTS)]
    at.target.messages.drop(answers, "Produce")
    outcome = at.write(send, "x")
    assert outcome.type is INFO
    assert at.target.messages.release(answers) == {"held": 0, "dropped": 1}
    assert at.target.messages.release(answers) == {}
    at.wait(600)
    assert at.read_all() == ["before", "x"]


def test_an_api_that_nobody_speaks_is_refused(stage):
    with pytest.raises(HarnessError, match='the API "Fetsch"; choose one of Produce, Fetch'):
        stage().target.messages.hold([Link(0, 1)], "Fetsch")


def test_a_hold_of_some_messages_outlasts_one_of_others_on_its_link(stage):
    at = stage()
    to_clients = [Link(at.leader, CLIENTS)]
    at.target.messages.hold(to_clients, "Produce")
    at.target.messages.drop(to_clients, "Produce")
    send = at.producer()
    send("x")
    at.wait(200)
    assert at.target.messages.release(to_clients, "drop", "Produce") == {"held": 0, "dropped": 0}
    at.wait(200)
    assert "x" not in at.sent
    assert at.target.messages.release(to_clients, "hold", "Produce") == {"held": 1, "dropped": 0}
    at.until(lambda: "x" in at.sent, 2_000)


def test_the_log_of_groups_has_the_settings_that_brokers_would_have_for_every_topic():
    settings = Settings(min_insync_replicas=1, unclean_leader_election_enable=True)
    workload = WorkloadPlan(topic="t", name="groups")
    common = {"settings": settings.to_mapping(), "workload": workload, "faults": FaultPlan(), "seed": 1}
    world = SimulatedWorld(RunSpec(world=Simulated(), cell="c", family="kill", **common), Steady(0))
    world.open()
    config = world.cluster.image().topics[OFFSETS_TOPIC].config
    assert (config.min_insync_replicas, config.unclean_leader_election_enable) == (1, True)
