"""Each invariant of the whole cluster, broken on purpose; that they hold otherwise every other test here shows."""

import pytest
from msgspec.structs import replace

from harness.broker.core.messages import RecordBatch
from harness.broker.core.types import TopicPartition
from harness.worlds.simulated.invariants import InvariantBrokenError, Invariants
from tests.harness.worlds.simulated.conftest import invariants_of

AT = TopicPartition("t", 0)


@pytest.fixture
def scene(stage):
    """A cluster with three committed records."""
    scene = stage(min_insync_replicas=2)
    send = scene.producer()
    for value in ("x", "y", "z"):
        scene.write(send, value)
    scene.wait(600)
    return scene


@pytest.fixture
def broken(scene):
    """The words of an invariant when everything is looked at."""

    def look() -> InvariantBrokenError:
        with pytest.raises(InvariantBrokenError) as caught:
            invariants_at(scene).look()
        return caught.value

    return look


def invariants_at(scene) -> Invariants:
    return scene.invariants


def replica(scene, node):
    return scene.world.cluster.broker(node).replicas[AT]


def put(scene, **changes):
    """Change the controller's word about the log partition behind its back."""
    controller = scene.world.cluster.process(100).core
    image = controller.image
    topic = image.topics["t"]
    state = replace(topic.partitions[0], **changes)
    changed = replace(topic, partitions=(state, *topic.partitions[1:]))
    controller._context.image = replace(image, topics={**image.topics, "t": changed})


def test_a_healthy_cluster_keeps_them_all(scene):
    invariants_at(scene).look()


@pytest.mark.parametrize("changes", [{"isr": (0, 1, 7)}, {"elr": (0,)}, {"leader": 9}])
def test_an_isr_beyond_the_replicas_is_seen(scene, broken, changes):
    epoch = scene.world.cluster.image().partition(AT).partition_epoch
    put(scene, partition_epoch=epoch + 1, leader_epoch=9, **changes)
    assert broken().name == "isr-of-replicas"


def test_a_change_without_a_larger_epoch_is_seen(scene, broken):
    put(scene, isr=scene.world.cluster.image().partition(AT).isr[:2])
    assert broken().name == "epochs-grow"


def test_another_leader_in_the_same_leader_epoch_is_seen(scene, broken):
    state = scene.world.cluster.image().partition(AT)
    put(scene, leader=scene.followers[0], partition_epoch=state.partition_epoch + 1)
    assert broken().name == "epochs-grow"


def test_two_leaders_in_one_epoch_are_seen(scene, broken):
    replica(scene, scene.followers[0]).leading = True
    assert broken().name == "one-leader-an-epoch"


def test_a_leader_that_forgets_a_member_of_the_isr_is_seen(scene, broken):
    replica(scene, scene.leader).maximal_isr = (scene.leader,)
    assert broken().name == "maximal-isr-is-larger"


def test_a_committed_record_that_a_member_of_the_isr_lacks_is_seen(scene, broken):
    replica(scene, scene.followers[0]).high_watermark = 2
    scene.world.cluster.log(scene.followers[0], AT).truncate_to(2)
    assert broken().name == "candidates-are-complete"


def test_a_dead_member_of_the_isr_is_looked_at_too(scene, broken):
    dead = scene.followers[0]
    scene.world.cluster.kill(dead)
    scene.world.cluster.log(dead, AT).truncate_to(2)
    put(scene, partition_epoch=99)
    assert broken().name == "candidates-are-complete"


def test_another_record_at_a_committed_offset_is_seen(scene, broken):
    log = scene.world.cluster.log(scene.followers[0], AT)
    log.truncate_to(2)
    log.append(RecordBatch(1, 10, ((b"", b"other"),), 2, 5))
    assert broken().name == "logs-match"


def test_a_follower_that_calls_another_record_committed_is_seen(scene, broken):
    """It is on no list, so only consumers that read there would notice."""
    behind = scene.followers[0]
    state = scene.world.cluster.image().partition(AT)
    put(scene, isr=tuple(node for node in state.isr if node != behind), partition_epoch=state.partition_epoch + 1)
    log = scene.world.cluster.log(behind, AT)
    replica(scene, behind).high_watermark = 2
    log.truncate_to(2)
    log.append(RecordBatch(1, 10, ((b"", b"other"),), 2, 5))
    invariants_at(scene).look()
    replica(scene, behind).high_watermark = 3
    assert broken().name == "high-watermark-is-committed"


def test_a_follower_that_calls_committed_what_a_candidate_lacks_is_seen(scene, broken):
    """Nobody has committed offset 3, and the first follower alone has a record there."""
    first = scene.followers[0]
    scene.world.cluster.log(first, AT).append(RecordBatch(1, 10, ((b"", b"more"),), 3, 0))
    invariants_at(scene).look()
    replica(scene, first).high_watermark = 4
    assert broken().name == "candidates-are-complete"


@pytest.mark.parametrize("bug", ["none", "stay-closed"])
def test_a_torn_batch_counts_as_absent(stage, bug):
    """Its broker has to look for it when it starts, and drop it; else its log goes on behind it."""
    scene = stage(min_insync_replicas=2, planted_bug=bug)
    send, cluster, member = scene.producer(), scene.world.cluster, scene.followers[0]
    cluster.stop(member)
    scene.wait(3_000)
    cluster.restart(member)
    scene.wait(3_000)
    scene.write(send, "x")
    scene.wait(600)
    assert cluster.cut_power(member)["lost"][str(AT)] == 1
    cluster.restart(member)
    if bug == "none":
        scene.wait(8_000)
        assert member in cluster.image().partition(AT).isr
    else:
        whole = ", ".join(f"broker {node}" for node in range(3) if node != member)
        says = f"candidates-are-complete.*{member} may lead with 0 of 1.*; all of it is on {whole}$"
        with pytest.raises(InvariantBrokenError, match=says):
            scene.wait(8_000)


def test_a_batch_that_no_start_had_to_look_at_is_excused(scene):
    """Its broker had stopped cleanly when it was damaged (rule 25); what Kafka does then is known."""
    member = scene.followers[0]
    cluster = scene.world.cluster
    cluster.stop(member)
    scene.wait(3_000)
    assert cluster.broker(member) is None
    assert cluster.target.files.corrupt(member, str(AT), 30)["corrupted"]["read_again"] is False
    cluster.restart(member)
    scene.wait(3_000)
    assert member in cluster.image().partition(AT).isr
    invariants_at(scene).look()


def test_an_eligible_replica_that_is_forgotten_is_seen(stage):
    scene = stage(min_insync_replicas=2, eligible_leader_replicas=True)
    put(scene, isr=(scene.leader,), elr=(scene.followers[0],), partition_epoch=90)
    invariants_at(scene).look()
    put(scene, elr=(), partition_epoch=91)
    with pytest.raises(InvariantBrokenError, match="eligible-stay"):
        invariants_at(scene).look()


MAJORITY = {"commit_rule": "majority", "leader_election": "largest-epoch-and-log-end"}


def test_a_committed_record_with_too_few_copies_is_seen(stage):
    """Two of three replicas have it, any two; one may be behind."""
    scene = stage(**MAJORITY)
    scene.write(scene.producer(), "x")
    scene.wait(600)
    first, second = scene.followers
    scene.world.cluster.kill(first)
    scene.world.cluster.kill(second)
    scene.world.cluster.log(first, AT).truncate_to(1)
    invariants_at(scene).look()
    scene.world.cluster.log(second, AT).truncate_to(1)
    with pytest.raises(InvariantBrokenError, match="committed-has-its-copies"):
        invariants_at(scene).look()


def test_a_leader_that_lacks_what_a_majority_committed_is_seen(stage):
    scene = stage(**MAJORITY)
    scene.write(scene.producer(), "x")
    scene.wait(600)
    behind = scene.followers[0]
    scene.world.cluster.kill(behind)
    scene.world.cluster.log(behind, AT).truncate_to(1)
    put(scene, leader=behind, leader_epoch=9, partition_epoch=99)
    with pytest.raises(InvariantBrokenError, match="candidates-are-complete"):
        invariants_at(scene).look()


def test_the_step_that_breaks_something_ends_the_run(scene):
    replica(scene, scene.leader).maximal_isr = (scene.leader,)
    with pytest.raises(InvariantBrokenError, match="maximal-isr-is-larger: t-0"):
        scene.write(scene.producer(), "v")


def test_a_disk_that_lost_records_is_no_false_alarm_until_its_broker_is_back(scene, broken):
    """It is in the ISR until its session is over. Whoever has registered anew is a candidate like others."""
    dead = scene.followers[0]
    scene.world.cluster.kill(dead)
    scene.target.files.wipe(dead)
    invariants_at(scene).look()
    registered = scene.world.cluster.image().brokers[dead]
    controller = scene.world.cluster.process(100).core
    brokers = {**controller.image.brokers, dead: replace(registered, broker_epoch=registered.broker_epoch + 99)}
    controller._context.image = replace(controller.image, brokers=brokers, version=controller.image.version + 1)
    invariants_at(scene).look()
    put(scene, partition_epoch=99)
    assert broken().name == "candidates-are-complete"


@pytest.mark.parametrize("eligible", [False, True])
def test_the_last_that_had_everything_may_come_back_with_less_and_lead(stage, eligible):
    """KAFKA-15495; with eligible leader replicas as the last known leader, who begins anew. The log is what it has."""
    scene = stage(min_insync_replicas=1, eligible_leader_replicas=eligible)
    scene.write(scene.producer(), "x")
    last, others = scene.leader, scene.followers
    for node in others:
        scene.target.processes.kill(node)
    scene.until(lambda: scene.target.view().partitions["t-0"].isr == (last,))
    scene.write(scene.producer(), "y")
    scene.target.processes.kill(last)
    scene.target.files.wipe(last)
    scene.wait(3_000)
    for node in (last, *others):
        scene.target.processes.restart(node)
    scene.until(scene.healthy)
    scene.write(scene.producer(), "z")
    assert scene.read_all() == ["z"]
    invariants_at(scene).look()


def test_after_an_unclean_election_the_log_is_what_the_new_leader_has(stage):
    scene = stage(min_insync_replicas=1, unclean_leader_election_enable=True)
    old, others = scene.leader, scene.followers
    for node in others:
        scene.target.processes.kill(node)
    scene.until(lambda: scene.target.view().partitions["t-0"].isr == (old,))
    scene.write(scene.producer(), "x")
    assert scene.read_all() == ["x"]
    scene.target.processes.kill(old)
    scene.wait(3_000)
    for node in others:
        scene.target.processes.restart(node)
    scene.until(scene.moved_from(old))
    scene.target.processes.restart(old)
    scene.until(scene.healthy)
    scene.write(scene.producer(), "y")
    assert scene.read_all() == ["y"]


def test_a_consumer_that_gets_another_record_than_one_before_is_seen(scene):
    assert scene.read_all() == ["x", "y", "z"]
    for node in scene.world.cluster.brokers:
        log = scene.world.cluster.log(node, AT)
        log.batches[1] = replace(log.batches[1], records=((b"", b"other"),))
    with pytest.raises(InvariantBrokenError, match="consistent-reads: t-0"):
        scene.read_all()


@pytest.mark.parametrize(
    "settings",
    [
        {"truncation": "high-watermark"},
        {"truncation": "kip-101"},
        {"isr_join_epoch_rule": False},
        {"broker_epochs": False},
        {"fetch_fencing": False},
        {"quorum_required_acks": 2},
        {"quorum_required_acks": 2, "leader_election": "largest-log-end"},
    ],
)
def test_old_rules_may_lose_what_was_committed(stage, settings):
    scene = stage(**settings)
    assert not invariants_of(scene.world, scene.settings).keeps_committed


def test_a_high_watermark_above_the_log_is_seen(scene, broken):
    replica(scene, scene.leader).high_watermark = 9
    assert broken().name == "high-watermark-on-log"


def test_a_leaders_high_watermark_that_moves_back_is_seen(scene, broken):
    invariants_at(scene).look()
    replica(scene, scene.leader).high_watermark = 1
    assert broken().name == "high-watermark-monotonic"
