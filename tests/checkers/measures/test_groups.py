"""Counts of consumer groups in a verdict."""

from checkers.verdicts.judgement import judge
from tests.checkers.anomalies.test_groups import KEY, A, B, healthy, judged, scene
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import INFO, Scene
from workloads.settings import Settings


def test_commits_assignments_and_processed_records_are_counted() -> None:
    groups = judged(healthy()).groups
    assert (groups.commits_acknowledged, groups.commits_unanswered, groups.assignments) == (2, 0, 2)
    assert (groups.processed, groups.processed_again, groups.rebalanced_over_commits) == (6, 0, 0)


def test_a_record_that_two_members_process_is_counted_again() -> None:
    made = scene()
    made.deal(A, KEY)
    made.read(A, 0, 1)
    made.process(A, 0, 2)
    made.deal(B, KEY)
    made.work(B, 0, 1, 2)
    groups = judged(made).groups
    assert (groups.processed, groups.processed_again, groups.rebalanced_over_commits) == (5, 2, 1)


def test_a_commit_under_way_is_put_to_the_test_by_a_rebalance() -> None:
    made = scene()
    made.deal(A, KEY)
    made.work(A, 0)
    made.begin(A, 1)
    made.deal(B, KEY)
    assert judged(made).groups.rebalanced_over_commits == 1


def test_a_commit_that_is_read_back_is_not_due_though_nothing_answered_it() -> None:
    made = scene()
    made.deal(A, KEY)
    made.read(A, 0, 1)
    made.process(A, 0, 2)
    made.commit(A, 2, kind=INFO)
    made.committed(2)
    made.deal(B, KEY)
    assert judged(made).groups.rebalanced_over_commits == 0


def test_what_is_read_back_of_less_than_was_processed_leaves_a_commit_due() -> None:
    made = scene()
    made.deal(A, KEY)
    made.read(A, 0, 1)
    made.process(A, 0, 2)
    made.committed(1)
    made.deal(B, KEY)
    assert judged(made).groups.rebalanced_over_commits == 1


def test_a_commit_without_an_answer_is_counted_as_unanswered() -> None:
    made = scene()
    made.commit(A, 1, kind=INFO)
    made.begin(B, 1)
    assert judged(made).groups.commits_unanswered == 2


def test_a_group_that_did_not_come_to_the_end_of_the_log_is_unfinished() -> None:
    made = healthy()
    made.send(106, 6)
    made.drain(7)
    assert judged(made).groups.unfinished == 1
    made.commit(B, 7)
    made.committed(7)
    assert judged(made).groups.unfinished == 0


def test_a_group_that_no_member_could_join_after_healing_is_told_so_and_not_to_read_for_longer() -> None:
    made = healthy()
    made.phase("healed")
    made.drain(7)
    verdict = judged(made)
    assert (verdict.groups.unfinished, verdict.groups.unassigned) == (1, 1)
    lacks = judge(Settings(), verdict).lacks
    assert "no member of the group was assigned 1 log partition after healing" in lacks
    assert "drain_limit_ms" not in lacks
    made.deal(B, KEY)
    verdict = judged(made)
    assert (verdict.groups.unfinished, verdict.groups.unassigned) == (1, 0)
    assert "raise drain_limit_ms" in judge(Settings(), verdict).lacks


def test_silence_of_a_group_that_no_rebalance_put_to_the_test_is_no_evidence() -> None:
    made = healthy()
    made.drain(6)
    lacks = judge(Settings(), judged(made)).lacks
    assert "no rebalance struck while a commit was due" in lacks


def test_without_a_group_nothing_is_known() -> None:
    made = Scene()
    made.send(0, 0)
    assert judge_events(made.events).groups.commits_acknowledged is None
