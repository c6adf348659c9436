"""The certificate of an upgrade: each step with what nodes said, and a loss at the step in which it went."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import SHOWN, Exercise, Verdict, check_one
from checkers.measures.writes_met import FaultExercise
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import Certificate, as_lines, certificates_in, write
from harness.campaigns.report.certificate import UNPLACED, sentence_of
from harness.records.files import HISTORY
from harness.records.verdict_lines import write_matrix
from nemesis.receipts import Receipt
from tests.harness.campaigns.report.conftest import LOST, PARTITION, kill_receipt
from tests.nemesis.receipt_factory import a_receipt
from workloads import Settings

Campaign = tuple[Path, Callable[..., Verdict]]


def step(number: int, begun_ms: int, ended_ms: int, **changes: Any) -> Receipt:
    """Broker ``number - 1`` becomes 4.3.1, unless ``changes`` say otherwise."""
    node = number - 1
    usual: dict[str, Any] = {
        "sequence": 10 + number,
        "group": 10 + number,
        "family": "upgrade",
        "story": f"step-{number}",
        "fault": "upgrade",
        "role": f"broker {node}",
        "targets": (node,),
        "begun_us": begun_ms * 1000,
        "ended_us": ended_ms * 1000,
        "begin_evidence": {str(node): {"version": "3.9.2", "wanted": "4.3.1", "incarnation": 1}},
        "end_evidence": {str(node): {"version": "4.3.1", "incarnation": 2, "features": {"metadata.version": 21}}},
    }
    return a_receipt(**usual | changes)


FINALIZED = step(
    4,
    8_100,
    8_200,
    fault="finalize",
    role="controller 100",
    targets=(100,),
    begin_evidence={"100": {"features_before": {"metadata.version": 21}, "features": {"metadata.version": 30}}},
    end_evidence={},
)
REPLACED: dict[str, Any] = {"version": "4.3.1", "incarnation": 2, "wiped": {"files": 9}}
STEPS = (step(1, 1_000, 3_000), step(2, 4_000, 7_000), step(3, 7_100, 8_000), FINALIZED)


def certified(campaign: Campaign, *steps: Receipt, acks: Any = 1, lost: int = 4, **more: Any) -> Certificate:
    """The certificate of a run with these steps, a kill from 4.2 s to 7.5 s, and four writes that went at 5.9 s.

    The verdict lists one of them.
    """
    directory, make = campaign
    faults = [msgspec.to_builtins(receipt) for receipt in (kill_receipt(), *steps)]
    settings = Settings(acks=acks, min_insync_replicas=2)
    make(settings, family="upgrade", world="kafka", lost=lost, history=True, cluster=True, faults=faults, **more)
    write_matrix(directory)
    (certificate,) = certificates_in(directory)
    return certificate


def test_a_loss_is_at_the_step_in_which_a_leader_without_it_began(campaign: Campaign) -> None:
    certificate = certified(campaign, *STEPS)
    assert [(taken.number, taken.before, taken.after, taken.lost) for taken in certificate.steps[:3]] == [
        (1, "3.9.2", "4.3.1", 0),
        (2, "3.9.2", "4.3.1", 4),
        (3, "3.9.2", "4.3.1", 0),
    ]
    (loss,) = certificate.losses
    assert (loss.step, loss.during, loss.writes, loss.first_us) == (2, True, 4, 5_900_000)
    assert loss.faults == ("kill broker 0 [leader of partition 0] at 4.200 s",)
    assert certificate.sentence == (
        "4 acknowledged writes lost as the settings permit, during step 2; every step was completed"
    )


def test_all_losses_of_a_step_are_counted_though_the_verdict_lists_32(campaign: Campaign) -> None:
    certificate = certified(campaign, *STEPS, lost=60, gone=60)
    run = campaign[0] / certificate.run
    verdict = check_one(run)
    assert (verdict.counts["lost-write"], len(verdict.anomalies["lost-write"])) == (60, SHOWN)
    assert [taken.lost for taken in certificate.steps] == [0, 60, 0, 0]
    assert not any(taken.lost_at_least for taken in certificate.steps)
    assert not any(UNPLACED in line for line in as_lines(certificate))
    shutil.rmtree(run / HISTORY)
    (certificate,) = certificates_in(campaign[0])
    assert (certificate.lost, certificate.losses) == (60, ())
    lines = "\n".join(as_lines(certificate))
    assert "0 writes acknowledged, at least 0 lost" in lines
    assert f"  lost: 60 more, {UNPLACED}" in lines


@pytest.mark.parametrize("rest", [1, 3])
def test_losses_of_several_steps_have_their_numbers(campaign: Campaign, rest: int) -> None:
    certificate = certified(campaign, *STEPS)
    later = msgspec.structs.replace(certificate.losses[0], step=3, writes=2)
    certificate = msgspec.structs.replace(certificate, losses=(*certificate.losses, later), lost=6 + rest)
    assert sentence_of(certificate).startswith(
        f"{6 + rest} acknowledged writes lost as the settings permit, 4 during step 2, 2 during step 3, "
        f"{rest} {UNPLACED};"
    )


@pytest.mark.parametrize(("ended_us", "named"), [(800_000, False), (900_000, True)])
def test_a_fault_that_ended_three_seconds_before_a_write_is_no_cause(
    campaign: Campaign, *, ended_us: int, named: bool
) -> None:
    earlier = msgspec.structs.replace(kill_receipt(), sequence=1, begun_us=500_000, ended_us=ended_us)
    (loss,) = certified(campaign, earlier, *STEPS, lost=1, gone=1).losses  # the write was acknowledged at 3.853 s
    assert any(fault.endswith("at 0.500 s") for fault in loss.faults) is named
    assert any(fault.endswith("at 4.200 s") for fault in loss.faults)


def test_a_loss_between_two_steps_is_after_the_one_before(campaign: Campaign) -> None:
    certificate = certified(campaign, step(1, 1_000, 3_000), step(2, 7_600, 8_000))
    assert [(loss.step, loss.during) for loss in certificate.losses] == [(1, False)]
    assert "lost as the settings permit, after step 1;" in certificate.sentence


def test_a_loss_before_the_first_step_is_no_steps(campaign: Campaign) -> None:
    certificate = certified(campaign, step(1, 7_600, 8_000))
    assert [(loss.step, loss.during) for loss in certificate.losses] == [(0, False)]
    assert "lost as the settings permit, before step 1;" in certificate.sentence
    assert any("4 writes before step 1" in line for line in as_lines(certificate))


def test_a_loss_against_the_promise_is_not_granted(campaign: Campaign) -> None:
    certificate = certified(campaign, *STEPS, acks="all")
    assert not certificate.granted
    assert "lost against the promise of the settings, during step 2" in certificate.sentence


def test_a_write_that_was_not_read_is_no_loss_where_the_log_was_not_read_to_its_end(campaign: Campaign) -> None:
    not_read = {"unseen": [{"key": PARTITION, "unseen": 1, "messages": [LOST]}]}
    exercise = Exercise(attempted=900, acknowledged=800, acknowledged_in_fault=300, records_read=3_000, drained=False)
    certificate = certified(
        campaign, *STEPS, lost=0, anomalies=not_read, counts={"unseen": 1}, valid=False, exercise=exercise
    )
    assert (certificate.lost, certificate.losses) == (0, ())
    assert not any("lost: " in line for line in as_lines(certificate))


def test_features_are_named_that_were_raised(campaign: Campaign) -> None:
    certificate = certified(campaign, *STEPS)
    assert certificate.steps[3].raised == "metadata.version 21 to 30"
    assert any("features finalized at 8.100 s: metadata.version 21 to 30" in line for line in as_lines(certificate))


def test_nodes_that_left_and_joined_are_steps_and_one_that_was_replaced_says_so(campaign: Campaign) -> None:
    left = step(1, 1_000, 1_500, fault="leave", begin_evidence={"0": {"assigned": {"t-0": [1, 2]}}}, end_evidence={})
    replaced = step(2, 2_000, 3_000, fault="replace", targets=(0,), role="broker 0")
    replaced.begin_evidence, replaced.end_evidence = step(1, 0, 0).begin_evidence, step(1, 0, 0).end_evidence
    replaced.end_evidence["0"]["wiped"] = {"files": 9}
    joined = step(3, 3_100, 3_500, fault="join", role="controller 101", targets=(101,), end_evidence={})
    joined.begin_evidence = {"101": {"voters": [100, 101, 102]}}
    met = [FaultExercise(sequence=number, acknowledged=100) for number in (0, replaced.sequence)]
    certificate = certified(campaign, left, replaced, joined, acks="all", lost=0, fault_exercise=met)
    assert certificate.granted, certificate.sentence
    lines = "\n".join(as_lines(certificate))
    assert certificate.done
    assert "1. broker 0: leave, log partitions with other replicas: 1, every replica in sync" in lines
    assert "2. broker 0: 3.9.2 to 4.3.1, on an empty disk, every replica in sync" in lines
    assert "3. controller 101: join, the voters are 100, 101, 102, every replica in sync" in lines


@pytest.mark.parametrize(
    ("wrong", "why_not"),
    [
        ({"end_evidence": {}}, "broker 1 runs an unknown release, not 4.3.1"),
        ({"end_evidence": {"1": {"version": "3.9.2"}}}, "broker 1 runs 3.9.2, not 4.3.1"),
        ({"mark": "begin", "ended_us": None}, "the run ended first"),
        ({"cut_short": "300 s after it had begun, t-0 had a replica out of sync"}, "t-0 had a replica out of sync"),
        ({"fault": "replace"}, "its disk was not emptied"),
        ({"fault": "replace", "end_evidence": {"1": REPLACED | {"refused": "no such broker"}}}, "no such broker"),
        ({"fault": "replace", "end_evidence": {"1": REPLACED | {"unconfirmed": "no answer"}}}, "no answer"),
        ({"mark": "skipped", "took_effect": False, "reason": "t-0 had a replica out of sync"}, "t-0 had a replica"),
    ],
)
def test_a_step_that_was_not_done_is_named_and_nothing_is_certified(
    campaign: Campaign, wrong: dict[str, Any], why_not: str
) -> None:
    certificate = certified(campaign, step(1, 1_000, 3_000), step(2, 4_000, 7_000, **wrong), acks="all", lost=0)
    assert not certificate.done
    assert not certificate.granted
    act = wrong.get("fault", "upgrade")
    assert certificate.sentence.startswith(f"not certified: step 2 ({act} broker 1) was not done: ")
    assert why_not in certificate.sentence


def test_silence_without_writes_at_stake_certifies_nothing(campaign: Campaign) -> None:
    certificate = certified(campaign, *STEPS, acks="all", lost=0, in_fault=0)
    assert not certificate.granted
    assert certificate.sentence.startswith("not certified: ")
    assert certificate.lacks


def test_an_upgrade_that_lost_nothing_under_faults_is_certified(campaign: Campaign) -> None:
    met = [FaultExercise(sequence=number, acknowledged=100) for number in (0, 11, 12, 13)]
    certificate = certified(campaign, *STEPS, acks="all", lost=0, fault_exercise=met)
    assert certificate.granted
    assert certificate.sentence.startswith("certified: 0 acknowledged writes lost in 4 steps, with 1 other fault. ")
    assert [taken.writes for taken in certificate.steps] == [100, 100, 100, 0]
    assert [taken.beside for taken in certificate.steps] == [
        (), *[("kill broker 0 [leader of partition 0]",)] * 2, (),
    ]  # fmt: skip


def test_faults_that_were_planned_and_did_not_strike_are_counted_apart(campaign: Campaign) -> None:
    late = {"mark": "skipped", "took_effect": False, "reason": "too late"}
    skipped = [msgspec.structs.replace(kill_receipt(), sequence=number, **late) for number in (1, 2)]
    met = [FaultExercise(sequence=number, acknowledged=100) for number in (0, 11, 12, 13)]
    certificate = certified(campaign, *skipped, *STEPS, acks="all", lost=0, fault_exercise=met)
    assert (certificate.faults, certificate.missed) == ({"kill": 1}, {"kill": 2})
    assert (
        "in 4 steps, with 1 other fault (2 more did not strike). Faults that met writes: 3 upgrade."
        in certificate.sentence
    )
    assert "  did not strike: 2 kill" in as_lines(certificate)


def test_an_upgrade_beside_which_no_planned_fault_struck_is_not_certified(campaign: Campaign) -> None:
    directory, make = campaign
    skipped = msgspec.structs.replace(kill_receipt(), mark="skipped", took_effect=False, reason="too late")
    met = [FaultExercise(sequence=number, acknowledged=100) for number in (11, 12, 13)]
    certificates = []
    for seed, planned in enumerate(((skipped,), ())):
        faults = [msgspec.to_builtins(receipt) for receipt in (*planned, *STEPS)]
        make(
            Settings(min_insync_replicas=2),
            family="upgrade",
            world="kafka",
            faults=faults,
            fault_exercise=met,
            seed=seed,
        )
        write_matrix(directory)
        certificates.append(certificates_in(directory)[-1])
    assert [certificate.granted for certificate in certificates] == [False, True]
    assert "not certified: none of the faults that were planned" in certificates[0].sentence


def test_a_fault_that_never_ended_is_beside_every_later_step(campaign: Campaign) -> None:
    lasting = msgspec.structs.replace(kill_receipt(), sequence=1, begun_us=3_500_000, ended_us=None)
    beside = [taken.beside for taken in certified(campaign, lasting, *STEPS[:3]).steps]
    assert [len(faults) for faults in beside] == [0, 2, 2]


def test_a_run_without_an_upgrade_has_no_certificate(campaign: Campaign) -> None:
    directory, make = campaign
    make(Settings(acks=1), lost=1, history=True, cluster=True)
    write_matrix(directory)
    assert certificates_in(directory) == []


def test_the_page_has_the_steps_and_the_loss(campaign: Campaign) -> None:
    certificate = certified(campaign, *STEPS)
    choose_witnesses(campaign[0])
    page = write(campaign[0]).read_text(encoding="utf-8")
    assert "Upgrades, step by step" in page
    assert certificate.sentence in page
    assert "4 writes during step 2 at 5.900 s" in page


def test_a_certificate_has_its_bound_and_all_that_was_seen(campaign: Campaign) -> None:
    exercise = Exercise(
        attempted=900,
        acknowledged=800,
        acknowledged_in_fault=300,
        rejected=20,
        unknown=80,
        records_read=3_000,
        drained=True,
    )
    met = [FaultExercise(sequence=step.sequence, acknowledged=100) for step in STEPS]
    certificate = certified(
        campaign,
        *STEPS,
        lost=0,
        exercise=exercise,
        fault_exercise=met,
        anomalies={"duplicate": [{"key": PARTITION, "value": 7, "count": 2, "offsets": [1, 2]}]},
        counts={"duplicate": 282},
    )
    assert certificate.exercised == {"upgrade": 3}
    assert certificate.sentence == (
        "certified: 0 acknowledged writes lost in 4 steps, with 1 other fault. Faults that met writes: "
        "3 upgrade. At 95 % confidence at most 63 % of such faults lose a write"
    )
    assert "  written: 800 of 900 writes acknowledged, 80 without an answer; permitted, and seen: 282 duplicate" in [
        *as_lines(certificate)
    ]
