"""A finding shows by what its script observed, which is said in sentences; without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from harness.lab.findings import Played, PlayVerdict
from harness.lab.findings.added_partition import played as of_added_partition
from harness.lab.findings.batches import REFUSED, BatchesSeen
from harness.lab.findings.doubled_records import played as of_doubled_records
from harness.lab.findings.forgotten_batches import played as of_forgotten_batches
from harness.lab.findings.late_ends import LateSeen
from harness.lab.findings.late_ends import played as of_late_ends
from harness.lab.findings.leaderless_end import LEADERLESS, LED, EndSeen
from harness.lab.findings.leaderless_end import played as of_leaderless_end
from harness.lab.findings.left_member import LeftSeen
from harness.lab.findings.left_member import played as of_left_member
from harness.lab.findings.new_coordinator import CoordinatorRound, ResetSeen, ToldTimes, played_reset
from harness.lab.findings.new_coordinator import played as of_new_coordinator
from harness.lab.findings.old_coordinator import OldAnswers, OldSeen
from harness.lab.findings.old_coordinator import played as of_old_coordinator
from harness.lab.findings.one_in_flight import played as of_one_in_flight
from harness.lab.findings.refused_batches import came_first
from harness.lab.findings.refused_batches import played as of_refused_batches
from harness.lab.findings.returning_broker import AwaySeen, AwayState
from harness.lab.findings.returning_broker import played as of_returning_broker
from harness.lab.findings.senders import Reports
from harness.lab.findings.slow_network import BatchAnswer, SentBatch
from harness.lab.findings.truncated_commits import TruncatedSeen
from harness.lab.findings.truncated_commits import played as of_truncated_commits
from harness.lab.findings.unstable_start import StartSeen
from harness.lab.findings.unstable_start import played as of_unstable_start
from workloads import EventType

DELIVERED: Reports = {0: 1, 1: 2, 2: 3, 3: 4}


def batches(order: Sequence[int], reports: Reports = DELIVERED, answers: Sequence[tuple[int, str]] = ()) -> BatchesSeen:
    told = [BatchAnswer(SentBatch(7, 0, sequence, 1), error, -1) for sequence, error in answers]
    return BatchesSeen(reports, [each.batch for each in told], told, list(order))


def start(*begun: int) -> StartSeen:
    names = [f"ackproof-{number}" for number in range(len(begun))]
    committed = dict.fromkeys(names, 15)
    return StartSeen({}, dict(zip(names, begun, strict=True)), committed, committed)


def answers(offset: int) -> OldAnswers:
    return OldAnswers(10, 10, 1, offset, Counter({10: 6}), Counter({10: 6}))


def round_of(*offsets: int | str) -> CoordinatorRound:
    told = [ToldTimes(offset, 10 * number, 10 * number, 1) for number, offset in enumerate(offsets)]
    return CoordinatorRound(acknowledged=7, end=9, high_watermark=8, answers={"request": told})


STATE = AwayState({"p": 1}, {}, {"k": "v"}, {}, (3, 3))


@pytest.mark.parametrize(
    ("played", "shown", "words"),
    [
        (of_refused_batches(batches([3], {0: None, 3: 1})), True, "in no log: 0"),
        (of_refused_batches(batches([3], {0: "TimeoutException", 3: 1})), False, "in no log: none"),
        (of_doubled_records(batches([0, 1, 2, 3, 1])), True, "twice: 1"),
        (of_doubled_records(batches([0, 0], {0: "_MSG_TIMED_OUT"})), False, "twice: none"),
        (of_forgotten_batches(batches([0, 1, 2, 3, 0])), True, "twice: 0"),
        (of_forgotten_batches(batches([0, 1, 2, 3], DELIVERED | {0: "_FATAL"})), True, "reported as failed: 0"),
        (of_forgotten_batches(batches([0, 1, 2, 3])), False, "reported as failed: none"),
        (of_one_in_flight(batches([1, 0, 2, 3], answers=[(-1, REFUSED), (-1, "NoError")])), True, "refused, appended"),
        (of_one_in_flight(batches([0, 1, 2, 3])), False, "in its order: 0, 1, 2, 3"),
        (of_one_in_flight(batches([1, 0], {0: "_MSG_TIMED_OUT", 1: 3})), False, "0: _MSG_TIMED_OUT"),
        (of_returning_broker(AwaySeen(True, STATE, STATE._replace(deleted={"p": 5}))), True, "election p: 5"),
        (of_returning_broker(AwaySeen(True, STATE, STATE)), False, "the same after the election"),
        (of_leaderless_end("commit", EndSeen(EventType.OK, True, {LED}, set())), True, f"read in {LED};"),
        (of_leaderless_end("commit", EndSeen(EventType.OK, False, {LED, LEADERLESS}, set())), False, "no partition"),
        (of_leaderless_end("abort", EndSeen(EventType.OK, True, {LEADERLESS}, {LEADERLESS})), True, "no partition"),
        (of_late_ends(LateSeen("aborted", "committed", 9, True, {"torn-transaction": 1})), True, "1 torn-transaction"),
        (of_late_ends(LateSeen("aborted", "committed", 0, False, {})), False, "found: nothing"),
        (of_unstable_start([start(15, 15, 15), start(0, 15, 15)]), True, "try 2: partitions were begun at 0, 15, 15"),
        (of_unstable_start([start(15, 15, 15)]), False, "the group is at 15, 15, 15"),
        (of_old_coordinator(OldSeen(answers(10), answers(5), [(9, "5")], answers(10))), True, "was told 5"),
        (of_old_coordinator(OldSeen(answers(10), answers(10), [], answers(5))), False, "10 to 6"),
        (of_truncated_commits([TruncatedSeen(Counter(NoError=3), 2, 9, 80)]), True, "do not have: 2"),
        (of_truncated_commits([TruncatedSeen(Counter(NotCoordinatorError=3), 0, 9, 80)]), False, "3 NotCoordinator"),
        (of_left_member(LeftSeen("", 2, 10)), True, "effects of the same records: 2"),
        (of_left_member(LeftSeen("UNKNOWN_MEMBER_ID", 1, 10)), False, "was refused: UNKNOWN_MEMBER_ID"),
        (of_added_partition(["added-0", "added-4"]), True, "and 2 of those 5"),
        (of_added_partition([f"added-{number}" for number in range(5)]), False, "and 5 of those 5"),
        (of_new_coordinator([round_of(7), round_of(6, "Error", 7)]), True, "too old in 1 of 2 rounds, for 0 ms"),
        (of_new_coordinator([round_of("Error", 7), round_of()]), False, "nothing in 1"),
        (played_reset([ResetSeen(2, 2), ResetSeen(3, 2)]), True, "3 was acknowledged; the coordinator was moved"),
        (played_reset([ResetSeen(2, 2), ResetSeen(3, "Error")]), False, "then it has committed Error"),
    ],
)
def test_what_was_observed_decides_and_is_said(*, played: Played, shown: bool, words: str) -> None:
    assert played.verdict is (PlayVerdict.SHOWN if shown else PlayVerdict.NOT_SHOWN)
    assert any(words in fact for fact in played.seen), played.seen


def test_repeated_answers_are_counted() -> None:
    facts = batches(
        [3], answers=[(0, REFUSED), (3, "NoError"), *[(0, "OutOfOrderSequenceNumberError")] * 9]
    ).sentences()
    assert facts[1] == (
        "answers of brokers by sequence: 0: NotEnoughReplicas, 3: appended, 0: OutOfOrderSequenceNumber, 9 times"
    )


@pytest.mark.parametrize(
    ("answers", "first"),
    [
        ([(0, REFUSED), (1, REFUSED), (2, REFUSED), (3, "NoError")], True),
        ([(0, REFUSED), (0, "NoError"), (1, REFUSED), (2, REFUSED), (3, "NoError")], False),
        ([(0, REFUSED), (1, REFUSED), (2, REFUSED)], False),
    ],
)
def test_a_try_counts_where_the_fourth_batch_was_taken_first(answers: list[tuple[int, str]], first: bool) -> None:
    assert came_first(batches([3], answers=answers)) is first
