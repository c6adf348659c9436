"""The words for what a run has reached in the core: each kind is reached by a story that must reach it."""

import pytest

from harness.choices import Choices
from harness.run import perform_schedule
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
        choices, one = Choices(1), spec(1, **settings)
        world = SimulatedWorld(one, choices)
        words = Coverage(world.cluster).words
        return Stage(world, choices, one.chosen()), words

    return make


def test_a_healthy_cluster_acknowledges_and_elects_nobody(covered):
    at, words = covered(min_insync_replicas=2)
    at.write(at.producer(), "x")
    assert {"Produce NONE", "Fetch NONE", "acknowledged: in page caches only"} <= words
    assert not [word for word in words if word.startswith(("elected", "truncated", "ISR", "retried"))]


def test_a_dead_leader_is_followed_by_a_member_of_the_isr(covered):
    at, words = covered(min_insync_replicas=2)
    at.write(at.producer(), "x")
    at.wait(1_000)
    dead = at.leader
    at.target.processes.kill(dead)
    at.until(at.moved_from(dead))
    at.target.processes.restart(dead)
    at.until(at.healthy)
    assert {"elected: clean", "broker: fenced", "broker: registered anew", "broker: unfenced"} <= words
    assert {"proposed: a larger ISR", "AlterPartition NONE", "ISR: grew"} <= words
    assert "leader changed: and two lead" not in words


def test_what_a_leader_alone_wrote_is_truncated_and_no_acknowledged_record_with_it(covered):
    at, words = covered(min_insync_replicas=2)
    old, send = at.leader, at.producer()
    at.write(send, "x")
    cut = at.cut_off(old)
    send("y")
    at.until(at.moved_from(old))
    at.wait(200)
    at.target.links.heal(cut)
    at.until(at.healthy)
    assert {"leader changed: with writes in flight", "leader changed: and two lead"} <= words
    assert "elected: with a shorter log than the old leader" in words
    assert "truncated: by a diverging fetch" in words
    assert "truncated: acknowledged records" not in words


def test_an_unclean_election_drops_acknowledged_records(covered):
    at, words = covered(min_insync_replicas=1, unclean_leader_election_enable=True)
    old, behind = at.leader, at.followers
    for node in behind:
        at.target.processes.kill(node)
    at.until(lambda: len(at.target.view().partitions["t-0"].isr) == 1)
    at.write(at.producer(), "x")
    assert {"acknowledged: with an ISR of one", "acknowledged: by the leader alone", "ISR: is one broker"} <= words
    at.target.processes.kill(old)
    at.wait(3_000)
    for node in behind:
        at.target.processes.restart(node)
    at.until(lambda: at.target.view().partitions["t-0"].leader in behind)
    assert {"elected: unclean", "elected: without acknowledged records"} <= words


def test_a_planned_move_is_an_election_of_its_own_kind(covered):
    at, words = covered(min_insync_replicas=2)
    at.target.leadership.move_leader("t-0", at.followers[0])
    at.until(at.healthy)
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
    at, words = covered(**settings)
    at.write(at.producer(), "x")
    for node in at.world.cluster.brokers:
        at.target.processes.stop(node)
        at.wait(4_000)
    for node in reversed(at.world.cluster.brokers):
        at.target.processes.restart(node)
    at.until(at.healthy)
    assert kind in words


def test_whoever_was_fenced_meanwhile_is_refused_as_a_member_of_the_isr(covered):
    """The leader has not heard of the fencing, and proposes a follower that has caught up: KIP-841."""
    at, words = covered(min_insync_replicas=1)
    leader, behind = at.leader, at.followers[0]
    apart = [Link(leader, behind), Link(behind, leader)]
    at.target.links.cut(apart)
    at.until(lambda: behind not in at.target.view().partitions["t-0"].isr)
    at.target.messages.hold([Link(CONTROLLER, leader)], "UpdateMetadata")
    at.target.links.cut([Link(behind, CONTROLLER)])
    at.until(lambda: at.world.cluster.image().brokers[behind].fenced)
    at.target.links.heal(apart)
    at.until(lambda: "AlterPartition INELIGIBLE_REPLICA" in words)


def test_every_word_is_in_the_list_and_watching_changes_nothing(spec):
    class Events(list):
        record = list.append

    reached = set()
    for seed in range(4):
        one, events, watched = spec(seed, families=("kill", "pause")), Events(), Events()
        choices = Choices(seed)
        perform_schedule(one, SimulatedWorld(one, choices), events, choices.draw)
        choices = Choices(seed)
        world = SimulatedWorld(one, choices)
        words = Coverage(world.cluster).words
        perform_schedule(one, world, watched, choices.draw)
        assert events == watched
        assert words <= WORDS
        reached |= words
    assert reached >= RELIED_ON
