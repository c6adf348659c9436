"""Pipelines in virtual time: each record has one effect, whatever befalls members, unless the log has a defect."""

from collections import Counter

import msgspec
import pytest

from checkers.verdicts.promises import promise
from tests.checkers.in_memory import judge_events
from tests.workloads.piped_log import INPUTS, OUTPUTS, performed
from workloads.operations import EventType, Function, Reached, Send, TransactionEnd
from workloads.settings import Settings
from workloads.transaction_errors import ErrorClass

SETTINGS = Settings.from_mapping(
    {
        "session.timeout.ms": 2_000,
        "transaction.timeout.ms": 5_000,
        "min.insync.replicas": 2,
        "isolation.level": "read_committed",
    }
)


def effects(log):
    """The number of times that the log has what was made of each record."""
    return Counter(key.decode() for name in OUTPUTS for key, _ in log.records[name])


def broken(verdict):
    return {name for name in verdict.counts if not promise(SETTINGS, ()).about(name).permitted}


def test_each_record_has_one_effect_and_what_could_go_wrong_was_put_to_the_test(perfect_world, events):
    log = performed(perfect_world, events, SETTINGS)
    assert effects(log) == {f"{name}@{offset}": 1 for name in INPUTS for offset in range(len(log.records[name]))}
    verdict = judge_events(events.events)
    assert broken(verdict) == set()
    counts, groups = verdict.transactions, verdict.groups
    assert min(counts.effects, counts.offsets_aborted, counts.offsets_refused) > 0
    assert (groups.unfinished, groups.rebalanced_over_commits != 0) == (0, True)


def test_a_transaction_says_of_which_records_its_writes_are_made(perfect_world, events):
    log = performed(perfect_world, events, SETTINGS, member_change_ms=0)
    for event in events.of(Function.TXN, EventType.OK):
        facts = msgspec.json.decode(event.detail, type=TransactionEnd)
        sends = [micro for micro in event.micro if isinstance(micro, Send)]
        reached = {micro.partition: (micro.since, micro.offset) for micro in event.micro if isinstance(micro, Reached)}
        sources = [(name, offset) for name, offsets in facts.sources.items() for offset in offsets]
        assert [send.partition for send in sends] == [name.replace("ackproof", "ackproof-out") for name, _ in sources]
        assert {name: (min(of), max(of) + 1) for name, of in facts.sources.items()} == reached
    assert set(log.committed) == set(INPUTS)


@pytest.mark.parametrize(("timed_out", "ends"), [(range(10, 11), {"commit"}), (range(10, 19), {"abort"})])
def test_offsets_whose_handing_over_timed_out_are_handed_over_again_some_times_and_then_aborted(
    perfect_world, events, timed_out, ends
):
    log = performed(perfect_world, events, SETTINGS, timed_out=timed_out, member_change_ms=0, aborts_percent=0)
    # Three members make the calls: nine in a row are three of one.
    facts = [
        msgspec.json.decode(event.detail, type=TransactionEnd) for event in events.of(Function.TXN) if event.detail
    ]
    assert {end.asked for end in facts if end.error_class is ErrorClass.RETRIABLE} >= ends
    assert effects(log) == {f"{name}@{offset}": 1 for name in INPUTS for offset in range(len(log.records[name]))}


@pytest.mark.parametrize(
    ("defect", "shown"),
    [
        ("counts_aborted", {"missing-effect", "aborted-commit"}),
        ("hurries", {"doubled-effect", "unstable-offset"}),
        ("accepts_stale", {"doubled-effect", "two-owners"}),
    ],
)
def test_a_defect_of_the_log_is_found_by_what_it_breaks(perfect_world, events, defect, shown):
    performed(perfect_world, events, SETTINGS, defect=defect)
    assert shown <= broken(judge_events(events.events))
