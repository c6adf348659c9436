"""Log partitions that may have lost their last copy, by receipts of each copy that was destroyed."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.measures.history_counts import Exercise
from checkers.verdicts.copies import SETTLED, fate_of_copies
from checkers.verdicts.judgement import judge
from checkers.verdicts.moments import MarkedMoment
from checkers.verdicts.promises import promise
from checkers.verdicts.receipts import faults_possible
from checkers.verdicts.verdict import Verdict
from nemesis.cluster import CONTROLLER
from nemesis.receipts import Receipt
from tests.checkers.findings import a_finding
from tests.checkers.receipts import a_receipt
from workloads.settings import Settings

ALL_2 = Settings(min_insync_replicas=2)
NO_EPOCHS = Settings(min_insync_replicas=2, broker_epochs=False)
UNCLEAN = Settings(min_insync_replicas=2, unclean_leader_election_enable=True)
FLUSHED = Settings(min_insync_replicas=2, flush_messages=1)
SETTLED_US = SETTLED * 1000 * (ALL_2.broker_session_timeout_ms + ALL_2.replica_lag_time_max_ms)
AT_US = 10 * SETTLED_US

Receipts = list[Receipt]


def fault(kind: str, node: int, *, sequence: int = 1, at_us: int = AT_US, **changes: Any) -> Receipt:
    """A receipt of a fault of one broker that lasted a tenth of a second; no ISR changed meanwhile."""
    hit = {
        "sequence": sequence,
        "fault": kind,
        "targets": [node],
        "touched": ["t-0", "t-1"],
        "begun_us": at_us,
        "ended_us": at_us + 100_000,
    }
    watched = {"seen": {name: [[at_us, 0, 4, 3]] for name in GONE}}
    return a_receipt(**hit | watched | changes)


def wipe(node: int, **changes: Any) -> Receipt:
    emptied: dict[str, Any] = {"sequence": 0, "begin_evidence": {str(node): {"wiped": GONE}}}
    return fault("wipedisk", node, **emptied | changes)


GONE = {"t-0": 7, "t-1": 7}


def permitted(receipts: Receipts, settings: Settings = ALL_2, partition: str = "t-0") -> bool:
    return promise(settings, faults_possible(receipts), partition).permits_loss


def isr(before: list[int], after: list[int]) -> dict[str, Any]:
    return {"moved": {"t-0": {"isr": [before, after]}}}


@pytest.mark.parametrize(
    ("receipts", "loss"),
    [
        pytest.param([wipe(1), fault("kill", 0)], False, id="the third replica has it (S36)"),
        pytest.param([wipe(1), fault("powerloss", 0)], False, id="whatever became of the second"),
        pytest.param([wipe(1), fault("kill", 0), fault("kill", 2, sequence=2)], True, id="nobody was spared (S11)"),
        pytest.param([wipe(1, out_of_sync={"t-0": [2]}), fault("kill", 0)], True, id="the third was out of sync"),
        pytest.param([wipe(1, out_of_sync={"t-1": [2]}), fault("kill", 0)], False, id="of another log partition"),
        pytest.param([wipe(1), fault("pause", 0)], True, id="a frozen leader drops followers that nothing hit"),
        pytest.param([wipe(1), fault("kill", CONTROLLER)], True, id="sessions end late without a controller"),
        pytest.param([wipe(1), fault("partition", 0, targets=[], links=[[0, 2]])], True, id="a cut link (S09)"),
        pytest.param([wipe(1), fault("pause", 0, touched=["t-1"])], False, id="a pause elsewhere"),
        pytest.param([wipe(1), fault("kill", 0), fault("kill", 2, at_us=0, sequence=2)], False, id="one ended before"),
        pytest.param([wipe(1), fault("pause", 0, at_us=AT_US + 2 * SETTLED_US)], False, id="a pause long after"),
        pytest.param([wipe(1), fault("pause", 0, at_us=AT_US - 2 * SETTLED_US)], False, id="a pause long before"),
        pytest.param([wipe(1), fault("pause", 0, at_us=0, ended_us=None)], True, id="a pause that may last"),
    ],
)
def test_a_copy_is_replaced_by_one_that_was_in_sync_and_that_no_fault_hit(receipts: Receipts, loss: bool) -> None:
    assert permitted(receipts) is loss


@pytest.mark.parametrize(
    "settings",
    [NO_EPOCHS, UNCLEAN, Settings(quorum_required_acks=2)],
    ids=["no broker epochs (S36, KAFKA-7235)", "unclean", "whoever acknowledges"],
)
def test_other_copies_help_only_where_nobody_takes_the_destroyed_one_for_whole(settings: Settings) -> None:
    assert permitted([wipe(1), fault("kill", 0)], settings)
    assert permitted([wipe(1, **isr([0, 1, 2], [0, 2]))], settings)


@pytest.mark.parametrize(
    ("seen", "loss"),
    [
        pytest.param(isr([0, 1], [0]), False, id="the other stayed in sync"),
        pytest.param(isr([0, 1], [1]), True, id="it was waited for (S09)"),
        pytest.param(isr([0, 1], []), True, id="eligible replicas were waited for"),
        pytest.param({"out_of_sync": {"t-0": [1]}, "seen": {"t-0": [[0, 0, 4, 2]]}}, False, id="it had not been in"),
        pytest.param({"out_of_sync": {"t-0": [1]}, "seen": {"t-0": [[0, None, 4, 1]]}}, True, id="nobody led"),
        pytest.param({"out_of_sync": {"t-0": [1]}, "seen": {}}, True, id="nobody looked"),
    ],
)
def test_a_copy_whose_broker_had_left_the_isr_to_others_when_it_came_back_is_harmless(
    seen: dict[str, Any], loss: bool
) -> None:
    others = [fault("pause", 0), fault("kill", 2, sequence=2)]
    assert permitted([wipe(1, **seen), *others]) is loss


def test_where_nobody_looked_a_destroyed_copy_is_harmless_only_if_its_fault_was_alone() -> None:
    assert not permitted([wipe(1, seen={})])
    assert permitted([wipe(1, seen={}), fault("kill", 0)])
    assert permitted([wipe(1, seen={}, out_of_sync={"t-0": [2]})])


def test_a_broker_seen_as_the_last_in_sync_may_have_been_it() -> None:
    assert not permitted([wipe(1, seen={"t-0": [[AT_US, 1, 4, 3], [AT_US + 1, 1, 4, 3]]})])
    assert permitted([wipe(1, seen={"t-0": [[AT_US, 1, 4, 3], [AT_US + 1, None, 4, 1]]})])


def test_power_takes_nothing_from_a_log_of_which_no_record_is_gone() -> None:
    loss = fault("powerloss", 1, sequence=0, begin_evidence={"1": {"lost": {"t-0": 3, "t-1": 0}}})
    receipts = [loss, fault("pause", 0)]
    assert permitted(receipts, partition="t-0")
    assert not permitted(receipts, partition="t-1")
    assert not permitted(receipts, FLUSHED, partition="t-0")
    emptied = [wipe(1), fault("pause", 0)]
    assert permitted(emptied, FLUSHED), "what was flushed is gone too (S08)"


def test_an_emptied_disk_without_a_record_of_a_log_partition_takes_no_copy_of_it() -> None:
    assert not permitted([wipe(1, begin_evidence={"1": {"wiped": {"t-0": 0}}}), fault("pause", 0)])
    assert permitted([wipe(1, begin_evidence={"1": {"wiped": {"files": 9}}}), fault("pause", 0)]), "nobody counted"


@pytest.mark.parametrize("read_again", [True, False])
def test_a_damaged_record_that_no_recovery_reads_counts_as_whole_and_is_never_harmless(read_again: bool) -> None:
    evidence = {"1": {"corrupted": {"partition": "t-0", "offset": 3, "read_again": read_again}}}
    damaged = fault("corruptrecord", 1, touched=["t-0"], begin_evidence=evidence, **isr([0, 1, 2], [0, 2]))
    assert permitted([damaged]) is not read_again
    assert not permitted([damaged], partition="t-1")


def test_a_fault_that_was_less_than_planned_destroys_nothing() -> None:
    receipts = [wipe(1, took_effect=False, degraded_to="kill"), fault("pause", 0)]
    assert fate_of_copies(ALL_2, faults_possible(receipts)) == ((), ())


@pytest.mark.parametrize(("minimum", "loss"), [(1, True), (2, True), (3, False)])
def test_eligible_replicas_outlive_fewer_unclean_stops_than_min_isr(minimum: int, loss: bool) -> None:
    settings = Settings(min_insync_replicas=minimum, eligible_leader_replicas=True)
    receipts = [wipe(1), fault("kill", 0), fault("partition", 0, sequence=2, targets=[], links=[[0, 2]])]
    assert permitted(receipts, settings) is loss


def test_a_broker_that_ends_over_a_damaged_record_takes_its_other_replicas_along() -> None:
    damaged = [fault("corruptrecord", node, sequence=1 + node, touched=["t-1"]) for node in (0, 2)]
    assert permitted([wipe(1), *damaged])
    assert not permitted([wipe(1), damaged[0]])


def lost(*keys: str) -> Verdict:
    findings = [a_finding("lost-write", key=key, value=number) for number, key in enumerate(keys)]
    verdict = Verdict(history="h", valid=False, counts={"lost-write": len(keys)}, anomalies={"lost-write": findings})
    verdict.exercise = Exercise(acknowledged=9, drained=True)
    return verdict


def test_a_loss_is_held_against_the_promise_of_its_own_log_partition() -> None:
    verdict = lost("t-0", "t-0", "t-1")
    verdict.faults = [wipe(1, begin_evidence={"1": {"wiped": {"t-0": 7, "t-1": 0}}}), fault("pause", 0)]
    judged = judge(ALL_2, verdict)
    assert (judged.outcome, judged.broken, judged.permitted) == ("broken promise", {"lost-write": 1}, {"lost-write": 2})


def test_a_loss_that_is_not_listed_is_held_against_the_promise_of_its_log_partition() -> None:
    verdict = lost(*["t-0"] * 32)
    verdict.counts["lost-write"] = 40
    verdict.moments = {"lost-write": [MarkedMoment(AT_US, keys=["t-0", "t-1"])]}
    verdict.faults = [wipe(1, begin_evidence={"1": {"wiped": {"t-0": 7, "t-1": 0}}}), fault("pause", 0)]
    judged = judge(ALL_2, verdict)
    assert (judged.outcome, judged.broken, judged.permitted) == (
        "broken promise",
        {"lost-write": 1},
        {"lost-write": 39},
    )


def test_a_loss_is_permitted_everywhere_where_settings_permit_it() -> None:
    verdict = lost("t-0", "t-1")
    verdict.faults = [wipe(1, begin_evidence={"1": {"wiped": {"t-0": 7, "t-1": 0}}}), fault("pause", 0)]
    judged = judge(Settings(acks=1), verdict)
    assert (judged.broken, judged.permitted) == ({}, {"lost-write": 2})
