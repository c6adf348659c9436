"""Members of a group in virtual time: what they process and commit, and what the history says of it."""

import pytest

from tests.workloads.grouped_log import performed, quick
from workloads.operations import EventType, Function


@pytest.mark.parametrize("mode", ["after-processing", "before-processing"])
def test_a_group_reads_to_its_end_and_what_it_committed_is_read_back(perfect_world, events, mode):
    log = performed(perfect_world, events, quick(mode))
    last = events.of(Function.COMMITTED, EventType.OK)[-1]
    assert {m.partition: m.offset for m in last.micro} == {name: len(kept) for name, kept in log.records.items()}


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


def test_static_members_keep_their_names(perfect_world, events):
    performed(perfect_world, events, quick(), static_members=True)
    names = {event.detail for event in events.of(Function.REBALANCE) if "member-" in (event.detail or "")}
    assert names == {f'{{"group":"ackproof","instance_id":"member-{n}"}}' for n in range(3)}
