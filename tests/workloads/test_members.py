"""Members of a group in virtual time: what they process and commit, and what the history says of it."""

import itertools
from dataclasses import replace
from functools import partial

import msgspec
import pytest

from tests.workloads.grouped_log import performed, quick
from workloads.client import Membership, Offsets, OwnCommit
from workloads.consumers import Readers
from workloads.members import Members, membership_of
from workloads.membership import CommitLine, OwnCommitLines
from workloads.operations import EventType, Function, GroupMember
from workloads.plan import WorkloadPlan
from workloads.settings import Settings


@pytest.mark.parametrize("mode", ["after-processing", "before-processing"])
def test_a_group_reads_to_its_end_and_what_it_committed_is_read_back(perfect_world, events, mode):
    log = performed(perfect_world, events, quick(mode))
    last = events.of(Function.COMMITTED, EventType.OK)[-1]
    assert {m.partition: m.offset for m in last.micro} == {name: len(kept) for name, kept in log.records.items()}


@pytest.mark.parametrize(("minutes", "told"), [(1, {60_000}), (10_080, {None})])
def test_the_events_of_a_group_tell_how_long_it_keeps_offsets_if_a_run_may_see_it(perfect_world, events, minutes, told):
    performed(perfect_world, events, replace(quick(), offsets_retention_minutes=minutes))
    details = [
        e.detail for e in events.events if e.function in {Function.REBALANCE, Function.COMMIT, Function.COMMITTED}
    ]
    assert {msgspec.json.decode(detail, type=GroupMember).retention_ms for detail in details} == told


def test_members_process_before_they_commit_or_after(perfect_world, events, make_world):
    performed(perfect_world, events, quick("after-processing"), member_change_ms=0)
    own = [event for event in events.events if event.function in {Function.PROCESS, Function.COMMIT}]
    by_instance = {}
    for event in own:
        by_instance.setdefault(event.instance, []).append((event.function, event.type))
    for history in by_instance.values():
        assert history[:3] == [
            (Function.PROCESS, EventType.OK), (Function.COMMIT, EventType.INVOKE), (Function.COMMIT, EventType.OK),
        ]  # fmt: skip


def test_a_member_that_froze_between_processing_and_commit_commits_too_late(perfect_world, events):
    performed(perfect_world, events, quick())
    refused = events.of(Function.COMMIT, EventType.FAIL)
    assert refused
    assert {event.error for event in refused} == {"UNKNOWN_MEMBER_ID"}


def test_a_member_that_dies_between_processing_and_commit_is_followed_by_another_one(perfect_world, events):
    performed(perfect_world, events, quick())
    dead = events.of(Function.CRASH)
    assert dead
    for crash in dead:
        after = [event for event in events.events if event.index > crash.index and event.instance == crash.instance]
        assert after == []
        assert any(event.index > crash.index for event in events.of(Function.SUBSCRIBE, EventType.OK))


def test_every_processed_range_was_read_by_the_same_process(perfect_world, events):
    performed(perfect_world, events, quick())
    for event in events.of(Function.PROCESS):
        polls = [
            e for e in events.of(Function.POLL, EventType.OK) if e.process == event.process and e.index < event.index
        ]
        for reached in event.micro:
            read = [record.offset for record in polls[-1].micro[0].records[reached.partition]]
            assert read == list(range(reached.since, reached.offset))


def test_commits_of_the_library_are_written_down_also_several_at_a_time(perfect_world, events):
    readers = Readers(None, perfect_world.clock, events, itertools.count(10).__next__, 100)
    membership = Membership("g")
    lines = OwnCommitLines(partial(CommitLine, readers, 3, membership, Function.COMMIT))
    asked = {"t-0": 4, "t-1": 5}
    lines.told(OwnCommit(1, asked))
    lines.told(OwnCommit(2, asked))
    lines.told(OwnCommit(2, asked, Offsets({"t-0": 4})))
    lines.told(OwnCommit(3, asked))
    lines.told(OwnCommit(1, asked, Offsets({}, "STALE_MEMBER_EPOCH")))
    lines.told(OwnCommit(3, asked, Offsets({}, "NoAnswer")))
    lines.told(OwnCommit(4, asked))
    written = [(event.process, event.type, len(event.micro), event.error) for event in events.events]
    assert written == [
        (10, EventType.INVOKE, 2, None), (11, EventType.INVOKE, 2, None), (11, EventType.OK, 1, None),
        (11, EventType.INVOKE, 2, None), (10, EventType.FAIL, 2, "STALE_MEMBER_EPOCH"),
        (11, EventType.INFO, 2, "NoAnswer"), (12, EventType.INVOKE, 2, None),
    ]  # fmt: skip
    assert {(event.instance, event.function) for event in events.events} == {(3, Function.COMMIT)}


def test_static_members_keep_their_names(perfect_world, events):
    performed(perfect_world, events, quick(), static_members=True)
    names = {member.instance_id for member in assigned_in(events)}
    assert names - {None} == {f"member-{n}" for n in range(3)}, "and the one that is there only at the end"


def test_each_assignment_is_written_down_with_its_generation(perfect_world, events):
    performed(perfect_world, events, quick())
    generations = [member.generation for member in assigned_in(events)]
    assert len(set(generations)) > 3
    assert generations == sorted(generations)
    dropped = [event for event in events.of(Function.REBALANCE) if not event.partitions]
    assert dropped
    assert {msgspec.json.decode(event.detail, type=GroupMember).generation for event in dropped} <= {None}


def assigned_in(events):
    """The members that were assigned something, in order."""
    listed = (event for event in events.of(Function.REBALANCE) if event.partitions)
    return [msgspec.json.decode(event.detail, type=GroupMember) for event in listed]


def test_a_group_without_members_changes_none(perfect_world, events):
    members = Members(perfect_world.clock, [], change_ms=100, freezes_ms=(1,))
    members.start()
    perfect_world.drive(lambda: False, 1_000_000)
    members.stop()
    assert (members.records_read, events.events) == (0, [])


def test_members_begin_as_their_settings_say_and_the_one_at_the_end_reads_what_nobody_has_read():
    plan, settings = WorkloadPlan(), Settings(auto_offset_reset="latest", commit_mode="auto")
    of_run, at_the_end = membership_of(plan, settings, 0), membership_of(plan, settings)
    assert (of_run.reset, of_run.auto_commit_ms is None) == ("latest", False)
    assert (at_the_end.reset, at_the_end.auto_commit_ms) == ("earliest", None)
