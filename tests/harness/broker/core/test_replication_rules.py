"""Claims for single rules (docs/reference/replication-rules.md), each on a whole small cluster."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core.controller import UNCLEAN, Controller
from harness.broker.core.effects import Arm
from harness.broker.core.messages import (
    EARLIEST,
    LATEST,
    AlterPartition,
    CreateTopic,
    DeleteTopic,
    EpochEnd,
    Fetch,
    FetchPartition,
    FetchResponse,
    ListOffsets,
    Metadata,
    MetadataResponse,
    OffsetForLeaderEpoch,
    Produce,
    RecordBatch,
)
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
from harness.ground.observations import LeaderElected, Truncated
from nemesis.cluster import Link

AT = TopicPartition("t", 0)


def consumer_fetch(offset: int, max_wait_ms: int = 0, **wanted: Any) -> Any:
    return lambda correlation: Fetch(correlation, NONE, max_wait_ms, (FetchPartition(AT, offset, **wanted),))


def stop_fetching(cluster: Any, *followers: int) -> None:
    """Neither fetches of these followers nor answers to them arrive any more."""
    cluster.lose = lambda s, t, m: (
        (isinstance(m, Fetch) and s in followers) or (isinstance(m, FetchResponse) and t in followers)
    )


# --- rules 1 to 5: produce ---


def test_only_a_leader_appends(lab: Any) -> None:
    cluster = lab()
    refused = cluster.write(1, "x")
    cluster.run(50)
    assert cluster.outcome(refused) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.records(1) == ["base"]


def test_a_leader_stamps_its_epoch_and_offsets(lab: Any) -> None:
    cluster = lab()
    cluster.move_leader(1)
    cluster.settle()
    cluster.write_ok(1, "x")
    last = cluster.log(1).batches[-1]
    assert (last.base_offset, last.leader_epoch) == (1, 1)


def test_acks_0_is_never_answered(lab: Any) -> None:
    cluster = lab()
    silent = cluster.write(0, "x", acks=0)
    cluster.run(50)
    assert cluster.records(0) == ["base", "x"]
    assert cluster.outcome(silent) is None


def test_a_refused_write_with_acks_0_tells_the_edge(lab: Any) -> None:
    cluster = lab()
    refused = cluster.write(1, "x", acks=0)
    cluster.run(50)
    assert cluster.outcome(refused) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_1_is_answered_before_any_follower_has_it(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 1, 2)
    cluster.write_ok(0, "x", acks=1)
    assert cluster.high_watermark(0) == 1


def test_acks_all_waits_for_every_in_sync_replica(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 2)
    waiting = cluster.write(0, "x")
    cluster.run(500)
    assert cluster.outcome(waiting) is None
    cluster.heal()
    cluster.wait(lambda: cluster.outcome(waiting) == ErrorCode.NONE)


def test_other_acks_are_refused(lab: Any) -> None:
    cluster = lab()
    refused = cluster.write(0, "x", acks=2)
    cluster.run(50)
    assert cluster.outcome(refused) == ErrorCode.INVALID_REQUIRED_ACKS


def test_too_small_an_isr_refuses_acks_all_before_the_append_only(lab: Any) -> None:
    cluster = lab(topic=TopicConfig(min_insync_replicas=3))
    cluster.shrink(2)
    end = cluster.log_end(0)
    cluster.run(50)
    refused, taken = cluster.write(0, "x"), cluster.write(0, "y", acks=1)
    cluster.run(50)
    assert cluster.outcome(refused) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.outcome(taken) == ErrorCode.NONE
    assert cluster.log_end(0) == end + 1


def test_min_isr_is_bounded_by_the_replication_factor(lab: Any) -> None:
    cluster = lab(topic=TopicConfig(min_insync_replicas=3), replicas=(0, 1))
    cluster.write_ok(0, "x")


def test_an_isr_that_became_too_small_says_so_after_the_append(lab: Any) -> None:
    cluster = lab(BrokerConfig(strict_min_isr=False), TopicConfig(min_insync_replicas=2))
    stop_fetching(cluster, 1, 2)
    uncertain = cluster.write(0, "x")
    cluster.wait(lambda: cluster.outcome(uncertain) is not None)
    assert cluster.outcome(uncertain) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert cluster.committed() == ["base", "x"]


def test_a_write_that_waits_too_long_times_out_once(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 1)
    late = cluster.write(0, "x", timeout_ms=300)
    cluster.run(290)
    assert cluster.outcome(late) is None
    cluster.run(30)
    assert cluster.outcome(late) == ErrorCode.REQUEST_TIMED_OUT
    cluster.heal()
    cluster.settle()
    assert cluster.outcome(late) == ErrorCode.REQUEST_TIMED_OUT


def test_losing_leadership_ends_the_waiting(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 2)
    waiting = cluster.write(0, "x")
    cluster.run(50)
    cluster.move_leader(1)
    cluster.run(50)
    assert cluster.outcome(waiting) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- rules 6 to 8: fetch and high watermark ---


def test_consumers_read_committed_records_only(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 1, 2)
    cluster.write_ok(0, "x", acks=1)
    answer = cluster.ask(0, consumer_fetch(0))
    assert [b.records for b in answer.partitions[0].batches] == ["base"]


def test_a_consumer_waits_until_there_is_something_to_read(lab: Any) -> None:
    cluster = lab()
    correlation = cluster.correlation()
    cluster.send(0, consumer_fetch(1, max_wait_ms=5_000)(correlation))
    cluster.run(100)
    assert cluster.answer(correlation) is None
    cluster.write_ok(0, "x")
    cluster.run(5)
    assert [b.records for b in cluster.answer(correlation).partitions[0].batches] == ["x"]


def test_a_consumer_that_waits_in_vain_is_told_so(lab: Any) -> None:
    cluster = lab()
    answer = cluster.ask(0, consumer_fetch(1, max_wait_ms=200))
    assert answer.partitions[0].batches == ()
    assert answer.partitions[0].error == ErrorCode.NONE


def test_a_consumer_is_sent_away_by_followers_and_beyond_the_end(lab: Any) -> None:
    cluster = lab()
    assert cluster.ask(1, consumer_fetch(0)).partitions[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.ask(0, consumer_fetch(9)).partitions[0].error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_waiting_consumer_hears_of_a_new_leader(lab: Any) -> None:
    cluster = lab()
    correlation = cluster.correlation()
    cluster.send(0, consumer_fetch(1, max_wait_ms=60_000)(correlation))
    cluster.run(10)
    cluster.move_leader(1)
    cluster.run(10)
    assert cluster.answer(correlation).partitions[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("fencing", "old", "new"),
    [
        (True, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (False, ErrorCode.NONE, ErrorCode.NONE),
    ],
)
def test_fetches_of_other_epochs_are_fenced(lab: Any, fencing: bool, old: ErrorCode, new: ErrorCode) -> None:
    cluster = lab(BrokerConfig(fetch_fencing=fencing))
    cluster.move_leader(1)
    cluster.settle()
    assert cluster.ask(1, consumer_fetch(0, current_leader_epoch=0)).partitions[0].error == old
    assert cluster.ask(1, consumer_fetch(0, current_leader_epoch=7)).partitions[0].error == new


def test_a_diverging_fetch_is_told_where_and_does_not_count(lab: Any) -> None:
    cluster = lab()
    cluster.move_leader(1)
    cluster.settle()
    cluster.write_ok(1, "x")
    cluster.settle()
    cluster.cut((2, 1))
    follower = cluster.brokers[1].replicas[AT].followers[2]
    before = (follower.end_offset, follower.caught_up_us)
    wanted = FetchPartition(AT, 9, current_leader_epoch=1, last_fetched_epoch=0)
    cluster.send(1, Fetch(cluster.correlation(), 2, 0, (wanted,), broker_epoch=cluster.brokers[2].broker_epoch))
    cluster.run(5)
    sent = [m for s, t, m in cluster.sent if (s, t) == (1, 1001)]
    assert sent[-1].partitions[0].diverging == EpochEnd(0, 1)
    assert (follower.end_offset, follower.caught_up_us) == before


def test_the_high_watermark_is_frozen_below_min_isr(lab: Any) -> None:
    for strict, reached in ((True, 1), (False, 2)):
        cluster = lab(BrokerConfig(strict_min_isr=strict), TopicConfig(min_insync_replicas=2))
        stop_fetching(cluster, 1, 2)
        cluster.write_ok(0, "x", acks=1)
        cluster.wait(lambda cluster=cluster: cluster.state().isr == (0,))
        cluster.run(50)
        assert cluster.high_watermark(0) == reached


def test_a_follower_takes_the_leaders_high_watermark_as_far_as_its_log_reaches(lab: Any) -> None:
    cluster = lab()
    cluster.write_ok(0, "x")
    assert cluster.high_watermark(0) == 2
    cluster.wait(lambda: cluster.high_watermark(1) == 2, limit_ms=520)


@pytest.mark.parametrize(("immediate", "within_ms"), [(True, 20), (False, 520)])
def test_a_followers_high_watermark_lags_at_most_one_wait(lab: Any, immediate: bool, within_ms: int) -> None:
    cluster = lab(BrokerConfig(immediate_high_watermark=immediate))
    cluster.write_ok(0, "x")
    start_us = cluster.now_us
    cluster.wait(lambda: cluster.high_watermark(1) == cluster.high_watermark(2) == 2, limit_ms=within_ms)
    assert immediate or cluster.now_us - start_us > 100_000


def test_a_new_leader_names_no_latest_offset_before_its_high_watermark_reached_its_epoch(lab: Any) -> None:
    cluster = lab()
    cluster.lose = lambda s, t, m: isinstance(m, FetchResponse) and m.partitions[0].high_watermark > 1
    cluster.write_ok(0, "x")
    cluster.cut((0, 1), (1, 2))
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    early = cluster.ask(1, lambda correlation: ListOffsets(correlation, AT, LATEST))
    assert early.error == ErrorCode.OFFSET_NOT_AVAILABLE
    assert cluster.ask(1, lambda correlation: ListOffsets(correlation, AT, EARLIEST)).offset == 0
    cluster.heal()
    cluster.settle()
    assert cluster.ask(1, lambda correlation: ListOffsets(correlation, AT, LATEST)).offset == 2


# --- rules 9 to 11: ISR ---


def test_a_follower_with_everything_stays_in_sync_however_silent(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 2)
    cluster.run(10_000)
    assert cluster.state().isr == (0, 1, 2)


def test_a_lagging_follower_is_removed_after_1_to_1_5_lag_times(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 2)
    start_us = cluster.now_us
    cluster.write(0, "x", acks=0)
    cluster.wait(lambda: cluster.state().isr == (0, 1))
    assert 1_000_000 <= cluster.now_us - start_us <= 2_300_000


def test_a_removal_that_the_controller_has_not_accepted_frees_nothing(lab: Any) -> None:
    cluster = lab()
    cluster.isolate(0)
    waiting = cluster.write(0, "x", timeout_ms=20_000)
    cluster.run(8_000)
    assert any(isinstance(m, AlterPartition) for s, _, m in cluster.sent if s == 0)
    assert cluster.outcome(waiting) is None
    assert cluster.high_watermark(0) == 1


def test_an_unanswered_proposal_is_repeated(lab: Any) -> None:
    cluster = lab()
    stop_fetching(cluster, 2)
    earlier = cluster.lose
    lost: list[Any] = []

    def lose(source: int, target: int, message: Any) -> bool:
        if isinstance(message, AlterPartition) and len(lost) < 3:
            lost.append(message)
            return True
        return earlier(source, target, message)

    cluster.lose = lose
    cluster.write(0, "x", acks=0)
    cluster.wait(lambda: cluster.state().isr == (0, 1))
    assert len(lost) == 3


def test_a_proposal_that_was_refused_is_not_accepted_when_it_is_repeated(lab: Any) -> None:
    """It is refused while broker 2 is fenced, and sent again; the leader hears of both, late and in that order.

    Was the second accepted, the leader would have to go on counting broker 2 between the two answers.
    """
    cluster = lab(topic=TopicConfig(min_insync_replicas=2))
    cluster.kill(2)
    cluster.fence(2)
    stop_fetching(cluster, 2)
    cluster.start(2)
    cluster.wait(lambda: not cluster.image.brokers[2].fenced)
    cluster.run(400)
    answers, session = [Link(CONTROLLER, 0)], [Link(2, CONTROLLER), Link(CONTROLLER, 2)]
    cluster.network.filter(answers, lambda source, target, message: True, keeps=True)
    cluster.network.cut(session)
    cluster.fence(2)
    cluster.lose = lambda source, target, message: False
    cluster.run(50)
    assert cluster.state().isr == (0, 1)
    cluster.network.heal(session)
    cluster.wait(lambda: not cluster.image.brokers[2].fenced)
    cluster.sent.clear()
    cluster.wait(lambda: [m for _, _, m in cluster.sent if isinstance(m, AlterPartition)])
    cluster.run(50)
    assert cluster.state().isr == (0, 1)
    cluster.network.release(answers)
    cluster.wait(lambda: cluster.brokers[0].replicas[AT].isr == (0, 1, 2))


def test_a_follower_rejoins_when_it_has_caught_up(lab: Any) -> None:
    cluster = lab()
    cluster.shrink(2)
    cluster.heal()
    cluster.settle()
    assert cluster.state().isr == (0, 1, 2)


# --- rules 13, 14, 20: controller ---


def leaderless(unclean: bool) -> Image:
    """Brokers 0 and 1 are there, the last in-sync replica 2 is not, and somebody has set the topic since it went."""
    state = PartitionState((0, 1, 2), isr=(2,), leader=NONE, leader_epoch=4, partition_epoch=7)
    topic = TopicState(TopicConfig(unclean_leader_election_enable=unclean), (state,))
    return Image(20, {node: BrokerState(node, fenced=node == 2) for node in range(3)}, {"t": topic})


@pytest.mark.parametrize(("unclean", "leader"), [(True, 0), (False, NONE)])
def test_a_partition_without_a_leader_is_looked_at_again_regularly(unclean: bool, leader: int) -> None:
    config = BrokerConfig(unclean_leader_election_interval_ms=700)
    controller = Controller(config, leaderless(unclean))
    [due] = [effect for effect in controller.start(0) if isinstance(effect, Arm) and effect.timer == UNCLEAN]
    assert due.at_us == 700_000
    again = controller.on_timer(due.at_us, due.timer)
    state = controller.image.topics["t"].partitions[0]
    assert (state.leader, state.recovering) == (leader, unclean)
    assert Arm(1_400_000, UNCLEAN) in again


def test_a_silent_broker_is_fenced_and_the_next_replica_in_order_leads(lab: Any) -> None:
    cluster = lab(replicas=(2, 0, 1))
    cluster.kill(2)
    cluster.fence(2)
    state = cluster.state()
    assert (state.leader, state.isr, state.leader_epoch) == (0, (0, 1), 1)


def test_a_smaller_isr_alone_starts_no_new_leader_epoch(lab: Any) -> None:
    cluster = lab()
    cluster.kill(2)
    cluster.fence(2)
    assert (cluster.state().leader, cluster.state().leader_epoch, cluster.state().partition_epoch) == (0, 0, 1)


def test_the_last_member_stays_in_the_isr_and_leads_again_when_it_returns(lab: Any) -> None:
    cluster = lab()
    cluster.kill(1, 2)
    cluster.fence(1, 2)
    cluster.kill(0)
    cluster.fence(0)
    assert (cluster.state().leader, len(cluster.state().isr)) == (NONE, 1)
    last = cluster.state().isr[0]
    others = {0, 1, 2} - {last}
    for node in others:
        cluster.start(node)
    cluster.run(3_000)
    assert cluster.state().leader == NONE
    cluster.start(last)
    cluster.settle()
    assert cluster.state().leader == last


def test_an_unclean_election_takes_whoever_is_there_and_says_so(lab: Any) -> None:
    cluster = lab(topic=TopicConfig(unclean_leader_election_enable=True))
    cluster.shrink(1, 2)
    cluster.kill(0)
    cluster.fence(0)
    assert (cluster.state().leader, cluster.state().isr, cluster.state().recovering) == (1, (1,), True)
    assert cluster.seen(LeaderElected)[-1].unclean
    cluster.heal()
    cluster.wait(lambda: cluster.state().isr == (1, 2))
    assert cluster.state().recovering is False


def test_without_unclean_elections_no_replica_leads_until_one_in_sync_is_back(
    lab: Any,
) -> None:
    """KRaft before 3.9 (KAFKA-12670): the topic allows it in vain, when a broker goes and at every later look."""
    config = BrokerConfig(unclean_elections=False, unclean_leader_election_interval_ms=100)
    cluster = lab(config, TopicConfig(unclean_leader_election_enable=True))
    cluster.shrink(1, 2)
    cluster.kill(0)
    cluster.fence(0)
    cluster.run(1_000)
    assert (cluster.state().leader, cluster.state().isr) == (NONE, (0,))
    cluster.start(0)
    cluster.heal()
    cluster.wait(lambda: cluster.state().leader == 0)
    assert not any(seen.unclean for seen in cluster.seen(LeaderElected))


def test_a_second_incarnation_waits_until_the_session_of_the_first_is_over(lab: Any) -> None:
    cluster = lab()
    before = cluster.image.brokers[1].broker_epoch
    cluster.kill(1)
    cluster.start(1)
    cluster.run(1_000)
    assert cluster.brokers[1].broker_epoch == NONE
    cluster.settle()
    assert cluster.brokers[1].broker_epoch > before


def test_without_broker_epochs_a_quick_restart_goes_unnoticed(lab: Any) -> None:
    cluster = lab(BrokerConfig(broker_epochs=False))
    cluster.kill(1)
    cluster.start(1)
    cluster.run(100)
    assert cluster.brokers[1].broker_epoch != NONE
    assert cluster.state().isr == (0, 1, 2)


def test_a_fetch_of_a_dead_incarnation_readmits_nobody(lab: Any) -> None:
    for checked in (True, False):
        cluster = lab(BrokerConfig(broker_epochs=checked))
        stale_epoch = cluster.brokers[1].broker_epoch
        cluster.kill(1)
        cluster.write_ok(0, "x", acks=1)
        cluster.fence(1)
        cluster.lose = lambda s, t, m: isinstance(m, Fetch) and s == 1 and m.correlation != 999
        cluster.start(1)
        cluster.wait(lambda cluster=cluster: not cluster.image.brokers[1].fenced)
        cluster.run(50)
        wanted = FetchPartition(AT, 2, current_leader_epoch=0, last_fetched_epoch=0)
        cluster.deliver(1, 0, Fetch(999, 1, 0, (wanted,), broker_epoch=stale_epoch))
        cluster.run(50)
        assert (1 in cluster.state().isr) is not checked


def test_controlled_shutdown_moves_leadership_first(lab: Any) -> None:
    cluster = lab()
    cluster.cluster.process(0).do(cluster.brokers[0].leave)
    cluster.wait(lambda: cluster.brokers[0].session.may_leave)
    assert (cluster.state().leader, cluster.state().isr) == (1, (1, 2))
    cluster.kill(0)
    cluster.start(0)
    cluster.wait(lambda: cluster.brokers[0].broker_epoch != NONE, limit_ms=50)
    cluster.settle()


def test_a_broker_that_is_cut_off_answers_from_its_old_image(lab: Any) -> None:
    cluster = lab()
    cluster.isolate(0)
    cluster.fence(0)
    answer: MetadataResponse = cluster.ask(0, Metadata)
    stale = answer.image.partition(AT)
    assert stale is not None
    assert (stale.leader, cluster.state().leader) == (0, 1)


# --- rules 17 to 19: epochs ---


@pytest.mark.parametrize("truncation", ["kip-101", "kip-279", "kip-320", "on-fetch"])
def test_a_deposed_leader_drops_what_nobody_else_has(lab: Any, truncation: Any) -> None:
    cluster = lab(BrokerConfig(truncation=truncation))
    cluster.isolate(0)
    cluster.fence(0)
    for payload in ("lost 1", "lost 2"):
        cluster.write_ok(0, payload, acks=1)
    cluster.write_ok(1, "y")
    cluster.heal()
    cluster.settle()
    assert cluster.records(0) == ["base", "y"]
    assert cluster.seen(Truncated)[-1].to_offset == 1


def test_an_epoch_without_records_is_remembered(lab: Any) -> None:
    cluster = lab()
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    assert list(cluster.log(1).epochs()) == [(0, 0), (1, 1)]
    answer = cluster.ask(1, lambda correlation: OffsetForLeaderEpoch(correlation, AT, 0))
    assert answer.end == EpochEnd(0, 1)


def test_a_follower_beyond_an_unclean_leader_is_cut_to_its_end(lab: Any) -> None:
    broker = BrokerConfig(truncation="high-watermark", broker_epochs=False)
    cluster = lab(broker, TopicConfig(unclean_leader_election_enable=True))
    cluster.shrink(1, 2)
    end = cluster.log_end(1)
    for number in range(5):
        cluster.write_ok(0, f"x{number}")
    cluster.run(6_000)
    cluster.kill(0)
    cluster.fence(0)
    cluster.heal()
    cluster.run(500)
    cluster.start(0)
    cluster.settle()
    assert cluster.log_end(0) == end


# --- rule 24: flush; deletion; bounds ---


def test_flush_messages_flushes_on_leader_and_follower(lab: Any) -> None:
    cluster = lab(topic=TopicConfig(flush_messages=2))
    cluster.write_ok(0, "x")
    cluster.settle()
    assert {cluster.log(n).flushed_offset for n in range(3)} == {1}
    cluster.write_ok(0, "y")
    cluster.settle()
    assert {cluster.log(n).flushed_offset for n in range(3)} == {3}


def test_flush_ms_flushes_in_time(lab: Any) -> None:
    cluster = lab(topic=TopicConfig(flush_ms=400))
    cluster.write_ok(0, "x")
    cluster.run(450)
    assert {cluster.log(n).flushed_offset for n in range(3)} == {2}


def test_a_deleted_topic_leaves_no_records_behind(lab: Any) -> None:
    cluster = lab()
    assert cluster.ask(1, lambda correlation: DeleteTopic(correlation, "t")).error == ErrorCode.NONE
    cluster.run(50)
    assert all(not broker.replicas for broker in cluster.brokers.values())
    assert cluster.records(0) == []
    answer = cluster.ask(2, lambda correlation: CreateTopic(correlation, "t", 1, 3, TopicConfig()))
    assert answer.error == ErrorCode.NONE
    cluster.settle()
    cluster.write_ok(0, "x")
    assert cluster.records(0) == ["x"]


def test_a_topic_that_was_deleted_and_made_again_is_another_one(lab: Any) -> None:
    cluster = lab()
    cluster.cut((2, CONTROLLER))
    cluster.ask(1, lambda correlation: DeleteTopic(correlation, "t"))
    cluster.ask(1, lambda correlation: CreateTopic(correlation, "t", 1, 3, TopicConfig(), ((0, 1, 2),)))
    cluster.write_ok(0, "x", acks=1)
    cluster.heal()
    cluster.wait(lambda: cluster.brokers[2].image.version == cluster.image.version)
    cluster.settle()
    assert cluster.records(2) == ["x"]


@pytest.mark.parametrize(
    ("topic", "partitions", "factor", "error"),
    [
        ("t", 1, 3, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("bad name", 1, 3, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("u", 0, 3, ErrorCode.INVALID_PARTITIONS),
        ("u", 1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_topics_are_refused_with_a_reason(
    lab: Any, topic: str, partitions: int, factor: int, error: ErrorCode
) -> None:
    answer = lab().ask(1, lambda correlation: CreateTopic(correlation, topic, partitions, factor, TopicConfig()))
    assert answer.error == error
    assert answer.reason


def test_one_fetch_carries_all_partitions_of_a_leader(lab: Any) -> None:
    cluster = lab()
    cluster.ask(0, lambda correlation: CreateTopic(correlation, "u", 3, 3, TopicConfig(), ((0, 1, 2),) * 3))
    cluster.run(1_100)
    fetches = [m for s, t, m in cluster.sent if isinstance(m, Fetch) and (s, t) == (1, 0)]
    assert len(fetches[-1].partitions) == 4


def test_a_batch_too_large_for_the_answer_still_comes_through(lab: Any) -> None:
    cluster = lab()
    for payload in ("x", "y"):
        cluster.write_ok(0, payload)
    answer = cluster.ask(0, consumer_fetch(1, max_bytes=1))
    assert [b.records for b in answer.partitions[0].batches] == ["x"]


def test_a_parked_produce_is_answered_as_timed_out_when_too_many_wait(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.broker.core.request_handler.PARKED_MAX", 3)
    cluster = lab()
    stop_fetching(cluster, 1)
    for _ in range(5):
        correlation = cluster.correlation()
        batch = RecordBatch(1, 100, "x")
        cluster.send(0, Produce(correlation, AT, ACKS_ALL, 5_000, batch))
    cluster.run(50)
    assert cluster.outcome(correlation) == ErrorCode.REQUEST_TIMED_OUT


def test_writes_that_timed_out_at_a_stuck_partition_are_not_kept(lab: Any) -> None:
    cluster = lab()
    cluster.isolate(0)
    for _ in range(300):
        cluster.write(0, "x", timeout_ms=20)
        cluster.run(10)
    waiting = cluster.brokers[0]._requests._produces[AT]._heap
    assert len(waiting) <= 64


def test_a_parked_write_keeps_no_records(lab: Any) -> None:
    """Thousands may wait; their records are in the log already, and must not be kept a second time."""
    cluster = lab()
    stop_fetching(cluster, 1)
    cluster.write(0, "x")
    cluster.run(10)
    [(_, _, parked)] = cluster.brokers[0]._requests._produces[AT]._heap
    kept = [getattr(parked, name) for name in parked.__struct_fields__]
    assert not any(isinstance(value, (Produce, RecordBatch)) for value in kept)


def test_a_log_that_an_old_era_let_diverge_takes_an_older_epoch_without_falling_back(lab: Any) -> None:
    replica = lab().brokers[1].replicas[AT]
    replica.replicate((RecordBatch(1, 100, "x", 1, 5), RecordBatch(1, 100, "y", 2, 3)), 1)
    assert list(replica.log.epochs()) == [(0, 0), (5, 1)]
    assert [batch.records for batch in replica.log.batches] == ["base", "x", "y"]
