"""The workload ``groups`` in virtual time, judged: a group that does what it should, and groups that do not."""

import pytest

from tests.checkers.findings import forbidden
from tests.checkers.in_memory import judge_events
from tests.workloads.grouped_log import performed, quick

GROUPS = {"group-skip", "group-went-back", "two-owners"}


@pytest.mark.parametrize("mode", ["after-processing", "before-processing"])
def test_a_group_that_keeps_its_promises_shows_nothing_that_is_forbidden(perfect_world, events, mode):
    performed(perfect_world, events, quick(mode))
    verdict = judge_events(events.events)
    permitted = {"group-skip"} if mode == "before-processing" else set()
    assert set(forbidden(verdict)) <= permitted
    assert verdict.groups.rebalanced_over_commits > 0
    assert verdict.groups.processed > 0


def test_members_that_commit_first_skip_what_they_did_not_process(perfect_world, events):
    performed(perfect_world, events, quick("before-processing"))
    assert "group-skip" in judge_events(events.events).counts


def test_a_group_that_takes_commits_of_members_that_it_gave_up_has_two_owners(perfect_world, events):
    performed(perfect_world, events, quick(), accepts_stale=True)
    assert "two-owners" in judge_events(events.events).counts


def test_a_group_that_forgets_went_back(perfect_world, events):
    performed(perfect_world, events, quick(), forgets=True)
    counts = judge_events(events.events).counts
    assert GROUPS & counts.keys() == {"group-went-back"}
