"""Each planted bug beside the right rule: the first case of every claim is the core as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.broker.core.controller import UNCLEAN, Controller
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import (
    AlterPartition,
    CreateTopic,
    Fetch,
    FetchResponse,
    IsrMember,
    Produce,
    RecordBatch,
)
from harness.broker.core.planted import with_bug
from harness.broker.core.types import (
    ACKS_ALL,
    CONTROLLER,
    NONE,
    BrokerConfig,
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.runs.stories import column_named, known_stories, perform_cell
from harness.worlds.reference_settings import broker_config
from harness.worlds.simulated.invariants import InvariantBrokenError, Invariants
from tests.harness.worlds.simulated.driven import AT

SAFE = TopicConfig(min_insync_replicas=2)
#: Nobody leaves the ISR while links are cut for a second or two.
PATIENT: dict[str, Any] = {"replica_lag_time_max_ms": 20_000}
STORIES = known_stories()


def cases(bug: str, right: object, wrong: object) -> Any:
    """The rule as it is, and in its wrong form."""
    return pytest.mark.parametrize(("bug", "expected"), [("none", right), (bug, wrong)], ids=["right", bug])


def unwatched(cluster: Any) -> Any:
    """Let the wrong go on until it shows, instead of ending with the first step that breaks an invariant."""
    cluster.invariants.keeps_committed = False
    return cluster


# --- stories ---


def alarms(story: str, column: str, bug: str) -> list[str]:
    """The disagreements with the story's file, and the first invariant that was broken on the way."""
    changed = msgspec.structs.replace(STORIES[story], settings={**STORIES[story].settings, "planted.bug": bug})
    settings = column_named(column).chosen(changed.settings)
    names: list[str] = []

    def watch(world: Any) -> None:
        invariants = Invariants(world.cluster, broker_config(settings))

        def step(node: Any, cause: Any, effects: Any) -> None:
            try:
                names or invariants.step(node, cause, effects)
            except InvariantBrokenError as error:
                names.append(error.name)

        world.cluster.watch(step)

    return [*perform_cell(changed, column, watch).disagreements, *names]


@pytest.mark.parametrize(
    ("bug", "story", "column", "alarm"),
    [
        ("accept-refused-proposal", "S54", "all/2", "lost, and not expected to be: x"),
        ("append-below-min-isr", "S41", "all/2", "acknowledged, and not expected to be: x, y"),
        ("commit-with-two", "S27", "all/2", "lost, and not expected to be: x"),
        ("count-diverging-fetch", "S28", "all/2", "logs-match"),
        ("eligible-after-unclean-stop", "S61", "all/2/E", "expected to be seen, and not: leaderless"),
        ("flush-on-leader-only", "S11", "all/2/F", "lost, and not expected to be: x"),
        ("ignore-broker-epoch", "S19", "all/2", "lost, and not expected to be: base, x"),
        ("join-anywhere", "S01", "all/2", "candidates-are-complete"),
        ("join-by-high-watermark", "S18", "all/2", "lost, and not expected to be: x"),
        ("keep-follower-progress", "S42", "all/2", "lost, and not expected to be: b"),
        ("skip-bad-batch", "S34", "all/2", "seen, and not expected to be: diverged"),
        ("truncate-one-too-many", "S17", "all/1", "candidates-are-complete"),
        ("truncate-to-high-watermark", "S39", "all/2", "lost, and not expected to be: x"),
    ],
)
def test_a_story_shows_the_bug_and_nothing_without_it(bug: str, story: str, column: str, alarm: str) -> None:
    assert alarms(story, column, "none") == []
    assert alarm in alarms(story, column, bug)


# --- leading ---


@cases("append-below-min-isr", 2, 3)
def test_a_write_below_min_isr_leaves_nothing_on_the_log(lab: Any, bug: str, expected: int) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug), TopicConfig(min_insync_replicas=3))
    cluster.shrink(2)
    cluster.write(0, "x")
    cluster.run(50)
    assert cluster.log_end(0) == expected


@cases("refuse-after-append", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NOT_ENOUGH_REPLICAS)
def test_what_is_on_the_log_is_not_refused_for_certain(lab: Any, bug: str, expected: ErrorCode) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug, strict_min_isr=False), SAFE)
    cluster.lose = lambda s, t, m: isinstance(m, Fetch | FetchResponse)
    uncertain = cluster.write(0, "x")
    cluster.wait(lambda: cluster.outcome(uncertain) is not None)
    assert cluster.outcome(uncertain) == expected
    assert cluster.committed() == ["base", "x"]


@cases("forget-epoch-start", [(0, 0), (1, 1)], [(0, 0)])
def test_an_epoch_without_records_is_on_the_disk_of_its_leader(
    lab: Any, bug: str, expected: list[tuple[int, int]]
) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug))
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    assert list(cluster.log(1).epochs()) == expected


@cases("keep-follower-progress", NONE, 1)
def test_who_leads_again_knows_nothing_of_its_followers(lab: Any, bug: str, expected: int) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug))
    cluster.move_leader(1)
    cluster.settle()
    cluster.lose = lambda s, t, m: t == 0 and isinstance(m, Fetch)
    cluster.move_leader(0)
    cluster.wait(lambda: cluster.leads(0))
    assert cluster.brokers[0].replicas[AT].followers[2].end_offset == expected


def repeated(cluster: Any, node: int, sequence: int) -> int:
    return int(cluster.write(node, f"r{sequence}", producer=(7, 0, sequence)))


@cases("remember-one-batch", ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
def test_a_batch_before_the_last_is_known_again(lab: Any, bug: str, expected: ErrorCode) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug))
    repeated(cluster, 0, 0)
    repeated(cluster, 0, 1)
    cluster.settle()
    again = repeated(cluster, 0, 0)
    cluster.wait(lambda: cluster.outcome(again) is not None)
    assert cluster.outcome(again) == expected
    assert cluster.log_end(0) == 3


@cases("forget-producers-on-election", 2, 3)
def test_a_new_leader_knows_a_batch_that_the_one_before_took(lab: Any, bug: str, expected: int) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug))
    repeated(cluster, 0, 0)
    cluster.settle()
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    repeated(cluster, 1, 0)
    cluster.run(50)
    assert cluster.log_end(1) == expected


# --- following ---


def missing_an_epoch(lab: Any, bug: str) -> Any:
    """2 has a record of epoch 0 that nobody else has any more, and has missed that 1 led before 0 leads again."""
    cluster = unwatched(lab(BrokerConfig(planted_bug=bug, truncation="kip-320", **PATIENT), SAFE))
    cluster.cut((0, 1))
    cluster.write(0, "b", timeout_ms=20_000)
    cluster.wait(lambda: cluster.records(2) == ["base", "b"])
    cluster.run(1_000)  # 2 has nothing to fetch and waits at 0.
    cluster.cut((2, CONTROLLER), (0, 2), (1, 2))
    cluster.move_leader(1)
    cluster.network.heal([link for link in cluster.links if {link.source, link.target} == {0, 1}])
    cluster.wait(lambda: cluster.records(0) == ["base"])
    cluster.write(1, "c", timeout_ms=20_000)
    cluster.wait(lambda: cluster.records(0) == ["base", "c"])
    cluster.move_leader(0)
    cluster.wait(lambda: cluster.leads(0))
    return cluster


@cases("compare-with-new-leader-only", "c", "b")
def test_logs_are_compared_in_a_new_epoch_of_the_same_leader(lab: Any, bug: str, expected: str) -> None:
    cluster = missing_an_epoch(lab, bug)
    cluster.heal()
    cluster.wait(lambda: cluster.brokers[2].replicas[AT].leader_epoch == 2)
    cluster.run(500)
    assert cluster.records(2) == ["base", expected]


@cases("fetch-from-any-epoch", NONE, 2)
def test_a_follower_that_missed_an_epoch_makes_no_progress(lab: Any, bug: str, expected: int) -> None:
    cluster = missing_an_epoch(lab, bug)
    cluster.heal()
    cluster.cut((2, CONTROLLER))
    cluster.run(4_000)  # Beyond the time after which it asks again.
    assert cluster.brokers[2].replicas[AT].leader_epoch == 0
    assert cluster.brokers[0].replicas[AT].followers[2].end_offset == expected


@cases("high-watermark-before-truncation", "x", "late")
def test_what_a_follower_calls_committed_is_the_leaders(lab: Any, bug: str, expected: str) -> None:
    cluster = unwatched(lab(BrokerConfig(planted_bug=bug)))
    cluster.isolate(0)
    cluster.write(0, "late", acks=1)
    cluster.fence(0)
    cluster.wait(lambda: cluster.leads(1))
    cluster.write_ok(1, "x")
    cluster.heal()
    cluster.wait(lambda: not cluster.leads(0) and cluster.high_watermark(0) == 2)
    assert cluster.records(0)[1] == expected
    cluster.settle()
    assert cluster.records(0) == ["base", "x"]


# --- the ISR ---


@cases("accept-deposed-proposal", (0, 1, 2), (0, 1))
def test_a_proposal_that_arrives_after_its_leader_was_deposed_changes_nothing(
    lab: Any, bug: str, expected: tuple[int, ...]
) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug))
    cluster.lose = lambda s, t, m: isinstance(m, AlterPartition) or (s == 2 and isinstance(m, Fetch))
    cluster.nudge()
    cluster.wait(lambda: any(isinstance(m, AlterPartition) for _, _, m in cluster.sent))
    [late] = [m for _, _, m in cluster.sent if isinstance(m, AlterPartition)]
    cluster.lose = lambda s, t, m: isinstance(m, AlterPartition)
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    cluster.heal()
    cluster.deliver(0, CONTROLLER, late)
    cluster.run(5)
    assert cluster.state().isr == expected


@cases("eligible-after-unclean-stop", (), (1,))
def test_whose_disk_nobody_knows_is_not_eligible(lab: Any, bug: str, expected: tuple[int, ...]) -> None:
    cluster = lab(BrokerConfig(planted_bug=bug, eligible_leader_replicas=True), SAFE)
    for node in (2, 1):
        cluster.kill(node)
        cluster.fence(node)
    assert cluster.state().elr == (1,)
    cluster.wipe(1)
    cluster.cut((1, 0), (0, 1))
    cluster.start(1)
    cluster.wait(lambda: cluster.brokers[1].broker_epoch != NONE)
    assert (cluster.state().isr, cluster.state().elr) == ((0,), expected)


# --- disks, and the offsets of groups ---


@pytest.mark.parametrize(("bug", "kept"), [("none", [0]), ("skip-bad-batch", [0, 2])])
def test_recovery_ends_the_log_at_a_bad_batch(bug: str, kept: list[int]) -> None:
    log = with_bug(MemoryLog, bug)()
    for offset in range(4):
        log.append(RecordBatch(1, 10, "r", offset, 0))
    log.damage(1)
    log.damage(3)
    log.recover()
    assert [batch.base_offset for batch in log.batches] == kept
    assert log.end_offset == kept[-1] + 1


@cases("commit-offsets-after-append", None, ErrorCode.NONE)
def test_offsets_are_committed_when_every_in_sync_replica_has_them(lab: Any, bug: str, expected: Any) -> None:
    cluster = unwatched(lab(BrokerConfig(planted_bug=bug)))
    partition = TopicPartition("__consumer_offsets", 0)
    cluster.ask(CONTROLLER, lambda c: CreateTopic(c, partition.topic, 1, 3, TopicConfig(), ((0, 1, 2),)))
    cluster.wait(lambda: partition in cluster.brokers[0].replicas and cluster.brokers[0].replicas[partition].leading)
    cluster.run(1_000)
    cluster.lose = lambda s, t, m: isinstance(m, Fetch | FetchResponse)
    correlation = cluster.correlation()
    cluster.send(0, Produce(correlation, partition, ACKS_ALL, 5_000, RecordBatch(1, 100, "offset", NONE, NONE)))
    cluster.run(50)
    assert cluster.outcome(correlation) == expected
    waiting = cluster.write(0, "x")
    cluster.run(50)
    assert cluster.outcome(waiting) is None


@cases("checkpoint-log-end", 1, 2)
def test_what_nobody_committed_is_not_committed_after_a_restart(lab: Any, bug: str, expected: int) -> None:
    cluster = unwatched(lab(BrokerConfig(planted_bug=bug), SAFE))
    cluster.lose = lambda s, t, m: isinstance(m, Fetch | FetchResponse)
    cluster.write(0, "x")
    cluster.run(6_000)
    assert cluster.log(0).checkpointed_high_watermark() == expected


@cases("keep-elr-after-unclean-election", (), (2,))
def test_an_unclean_election_ends_eligibility(bug: str, expected: tuple[int, ...]) -> None:
    """Broker 2 has everything and is away; broker 0 leads with less, and 2 must not lead after it."""
    state = PartitionState((0, 1, 2), isr=(), elr=(2,), leader=NONE, leader_epoch=4, partition_epoch=7)
    topic = TopicState(TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=True), (state,))
    image = Image(20, {node: BrokerState(node, fenced=node == 2) for node in range(3)}, {"t": topic})
    config = BrokerConfig(planted_bug=bug, eligible_leader_replicas=True)  # type: ignore[arg-type]
    controller = with_bug(Controller, bug)(config, image)
    controller.start(0)
    controller.on_timer(config.unclean_leader_election_interval_ms * 1000, UNCLEAN)
    after = controller.image.topics["t"].partitions[0]
    assert (after.leader, after.recovering, after.elr) == (0, True, expected)


@pytest.mark.parametrize(
    ("bug", "unclean", "leader"),
    [
        ("none", False, NONE),
        ("elect-last-leader-over-eligible", False, 0),
        ("none", True, 1),
        ("unclean-over-eligible", True, 0),
    ],
)
def test_nobody_else_leads_while_a_replica_is_eligible(bug: str, unclean: bool, leader: int) -> None:
    """Broker 0 led last, and is back; only 1 is known to have everything, and lives where elections may be unclean."""
    state = PartitionState((0, 1, 2), (), NONE, 4, 7, elr=(1,), last_known_leader=0)
    topic = TopicState(TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=unclean), (state,))
    brokers = {node: BrokerState(node, fenced=node == 1 and not unclean) for node in range(3)}
    config = BrokerConfig(planted_bug=bug, eligible_leader_replicas=True)
    controller = with_bug(Controller, bug)(config, Image(20, brokers, {"t": topic}))
    controller.start(0)
    controller.on_timer(config.unclean_leader_election_interval_ms * 1000, UNCLEAN)
    assert controller.image.topics["t"].partitions[0].leader == leader


@pytest.mark.parametrize(("bug", "isr"), [("none", (0, 1)), ("accept-fenced-member", (0, 1, 2))])
def test_a_fenced_broker_does_not_join(bug: str, isr: tuple[int, ...]) -> None:
    state = PartitionState((0, 1, 2), (0, 1), leader=0, leader_epoch=4, partition_epoch=7)
    brokers = {node: BrokerState(node, fenced=node == 2) for node in range(3)}
    config = BrokerConfig(planted_bug=bug)
    controller = with_bug(Controller, bug)(config, Image(20, brokers, {"t": TopicState(SAFE, (state,))}))
    controller.start(0)
    members = tuple(IsrMember(node, node) for node in range(3))
    controller.on_message(1, 0, AlterPartition(1, 0, 0, AT, 4, 7, members))
    assert controller.image.topics["t"].partitions[0].isr == isr


@pytest.mark.parametrize(("bug", "end"), [("none", 2), ("keep-torn-batch", 3)])
def test_a_torn_batch_goes_with_the_next_start(bug: str, end: int) -> None:
    log = with_bug(MemoryLog, bug)()
    for offset in range(2):
        log.append(RecordBatch(1, 10, "r", offset, 0))
    log.flush()
    for offset in range(2, 4):
        log.append(RecordBatch(1, 10, "r", offset, 0))
    log.lose_unflushed()
    log.recover()
    assert log.end_offset == end


@pytest.mark.parametrize(("bug", "next_id"), [("none", 3_000), ("forget-producer-ids", 0)])
def test_a_controller_that_starts_again_hands_out_other_producer_ids(bug: str, next_id: int) -> None:
    assert with_bug(Controller, bug)(BrokerConfig(), Image(), 3_000).next_producer_id == next_id
