"""The words for what a run has reached in the core: each kind is reached by a story that must reach it."""

import pytest

from harness.ground.choices import Choices
from harness.runs.run import perform_schedule
from harness.worlds.simulated import SimulatedWorld
from nemesis.cluster import CONTROLLER, Link
from tests.harness.worlds.simulated.conftest import Stage
from tests.harness.worlds.simulated.protocol_coverage import Coverage
from tests.harness.worlds.simulated.protocol_words import WORDS

#: The words that any handful of random schedules must reach, or they put little to the test.
RELIED_ON = {
    "AlterPartition NONE", "AlterPartition FENCED_LEADER_EPOCH", "Fetch diverging", "Fetch NOT_LEADER_OR_FOLLOWER",
    "Produce NOT_LEADER_OR_FOLLOWER", "Produce REQUEST_TIMED_OUT", "ISR: grew", "ISR: shrank", "broker: fenced",
    "broker: registered anew", "elected: clean", "elected: with a shorter log than the old leader",
    "elected: with an old high watermark", "leader changed: and two lead", "leader changed: with writes in flight",
    "acknowledged: during a proposal", "retried: in a later epoch", "truncated: by a diverging fetch",
}  # fmt: skip


@pytest.fixture
def covered(spec):
    """An open world, and the words that it has reached and reaches."""

    def make(**settings):
        choices, run_spec = Choices(1), spec(1, **settings)
        world = SimulatedWorld(run_spec, choices)
        words = Coverage(world.cluster).words
        return Stage(world, choices, run_spec.chosen()), words

    return make


def test_a_healthy_cluster_acknowledges_and_elects_nobody(covered):
    scene, words = covered(min_insync_replicas=2)
    scene.write(scene.producer(), "x")
    assert {"Produce NONE", "Fetch NONE", "acknowledged: in page caches only"} <= words
    assert not [word for word in words if word.startswith(("elected", "truncated", "ISR", "retried"))]


def test_a_dead_leader_is_followed_by_a_member_of_the_isr(covered):
    scene, words = covered(min_insync_replicas=2)
    scene.write(scene.producer(), "x")
    scene.wait(1_000)
    dead = scene.leader
    scene.target.processes.kill(dead)
    scene.until(scene.moved_from(dead))
    scene.target.processes.restart(dead)
    scene.until(scene.healthy)
    assert {"elected: clean", "broker: fenced", "broker: registered anew", "broker: unfenced"} <= words
    assert {"proposed: a larger ISR", "AlterPartition NONE", "ISR: grew"} <= words
    assert "leader changed: and two lead" not in words


def test_what_a_leader_alone_wrote_is_truncated_and_no_acknowledged_record_with_it(covered):
    scene, words = covered(min_insync_replicas=2)
    old, send = scene.leader, scene.producer()
    scene.write(send, "x")
    cut = scene.cut_off(old)
    send("y")
    scene.until(scene.moved_from(old))
    scene.wait(200)
    scene.target.links.heal(cut)
    scene.until(scene.healthy)
    assert {"leader changed: with writes in flight", "leader changed: and two lead"} <= words
    assert "elected: with a shorter log than the old leader" in words
    assert "truncated: by a diverging fetch" in words
    assert "truncated: acknowledged records" not in words


def test_an_unclean_election_drops_acknowledged_records(covered):
    scene, words = covered(min_insync_replicas=1, unclean_leader_election_enable=True)
    old, behind = scene.leader, scene.followers
    for node in behind:
        scene.target.processes.kill(node)
    scene.until(lambda: len(scene.target.view().partitions["t-0"].isr) == 1)
    scene.write(scene.producer(), "x")
    assert {"acknowledged: with an ISR of one", "acknowledged: by the leader alone", "ISR: is one broker"} <= words
    scene.target.processes.kill(old)
    scene.wait(3_000)
    for node in behind:
        scene.target.processes.restart(node)
    scene.until(lambda: scene.target.view().partitions["t-0"].leader in behind)
    assert {"elected: unclean", "elected: without acknowledged records"} <= words


def test_a_planned_move_is_an_election_of_its_own_kind(covered):
    scene, words = covered(min_insync_replicas=2)
    scene.target.leadership.move_leader("t-0", scene.followers[0])
    scene.until(scene.healthy)
    assert {"MoveLeader NONE", "elected: moved"} <= words
    assert "elected: clean" not in words


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"eligible_leader_replicas": True, "min_insync_replicas": 2}, "elected: from the ELR"),
        ({"commit_rule": "majority", "leader_election": "largest-epoch-and-log-end"}, "elected: by log"),
    ],
)
def test_elections_of_other_rules_have_their_words(covered, settings, kind):
    scene, words = covered(**settings)
    scene.write(scene.producer(), "x")
    for node in scene.world.cluster.brokers:
        scene.target.processes.stop(node)
        scene.wait(4_000)
    for node in reversed(scene.world.cluster.brokers):
        scene.target.processes.restart(node)
    scene.until(scene.healthy)
    assert kind in words


def test_whoever_was_fenced_meanwhile_is_refused_as_a_member_of_the_isr(covered):
    """The leader has not heard of the fencing, and proposes a follower that has caught up: KIP-841."""
    scene, words = covered(min_insync_replicas=1)
    leader, behind = scene.leader, scene.followers[0]
    apart = [Link(leader, behind), Link(behind, leader)]
    scene.target.links.cut(apart)
    scene.until(lambda: behind not in scene.target.view().partitions["t-0"].isr)
    scene.target.messages.hold([Link(CONTROLLER, leader)], "UpdateMetadata")
    scene.target.links.cut([Link(behind, CONTROLLER)])
    scene.until(lambda: scene.world.cluster.image().brokers[behind].fenced)
    scene.target.links.heal(apart)
    scene.until(lambda: "AlterPartition INELIGIBLE_REPLICA" in words)


def test_every_word_is_in_the_list_and_watching_changes_nothing(spec):
    class Events(list):
        record = list.append

    reached = set()
    for seed in range(4):
        run_spec, events, watched = spec(seed, families=("kill", "pause")), Events(), Events()
        choices = Choices(seed)
        perform_schedule(run_spec, SimulatedWorld(run_spec, choices), events, choices.draw)
        choices = Choices(seed)
        world = SimulatedWorld(run_spec, choices)
        words = Coverage(world.cluster).words
        perform_schedule(run_spec, world, watched, choices.draw)
        assert events == watched
        assert words <= WORDS
        reached |= words
    assert reached >= RELIED_ON
