"""Cells from synthetic verdicts: all five outcomes, their order, their numbers, and the sentence over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from checkers.measures.availability import Availability
from checkers.measures.delivery import Delivery
from checkers.measures.recovery import Recovery
from checkers.measures.situations import Situations
from checkers.measures.writes_met import FaultExercise
from checkers.verdicts.cells import Cell, build_cells
from checkers.verdicts.exercised import OLDER, FamilyExercised, RunsExercised
from checkers.verdicts.judgement import VerdictLine, judge
from checkers.verdicts.matrix import MATRIX_VERSION, build_matrix, settings_words, summarise
from checkers.verdicts.verdict import RunFacts, Verdict
from nemesis.receipts import Receipt
from tests.checkers.verdicts.synthetic_verdicts import killed, verdict
from workloads.settings import IDEMPOTENCE, Settings

A0 = Settings(acks=0)
A1 = Settings(acks=1)
SAFE = Settings(min_insync_replicas=2)
COMMITS_FIRST = Settings(commit_mode="before-processing", min_insync_replicas=2)
UNCLEAN = Settings(unclean_leader_election_enable=True)


def run(
    settings: Settings,
    run_verdict: Verdict,
    *,
    seed: int = 1,
    cell: str = "",
    family: str = "kill",
    exercised_min: int = 1,
    at_stake_min: int = 1,
) -> VerdictLine:
    facts = RunFacts(
        cell=cell or f"acks={settings.acks}/{family}",
        family=family,
        world="simulated",
        seed=seed,
        settings=settings.to_mapping(),
        exercised_min=exercised_min,
        at_stake_min=at_stake_min,
    )
    return VerdictLine.of(replace(run_verdict, history=f"runs/{seed}"), facts)


def only(*runs: VerdictLine) -> Cell:
    (cell,) = build_cells(runs)
    return cell


def kills(cell: Cell) -> tuple[int, int]:
    """The numbers of kills that took effect, and of those that met writes."""
    (kill,) = cell.exercised.values()
    return kill.took_effect, kill.exercised


@pytest.mark.parametrize(
    ("settings", "run_verdict", "outcome"),
    [
        (SAFE, verdict(), "held"),
        (A1, verdict(lost_write=3), "permitted loss"),
        (SAFE, verdict(lost_write=1), "broken promise"),
        (SAFE, verdict(in_fault=0), "not exercised"),
        (SAFE, verdict(drained=False), "unknown"),
    ],
)
def test_each_outcome(settings: Settings, run_verdict: Verdict, outcome: str) -> None:
    assert only(run(settings, run_verdict)).outcome == outcome


def test_a_cell_needs_enough_exercised_faults_of_its_family() -> None:
    cell = only(run(SAFE, verdict(faults=2), exercised_min=3))
    assert cell.outcome == "not exercised"
    assert cell.note == "kill: 2 of at least 3 faults met writes, 2 took effect; raise count and duration_ms, or runs"
    several = [run(SAFE, verdict(faults=2), seed=seed, exercised_min=3) for seed in range(2)]
    assert [line.outcome for line in several] == ["held", "held"], "a run alone did what it could"
    assert only(*several).outcome == "held"


def test_a_long_absence_is_put_to_the_test_by_records_that_were_cleaned_away_meanwhile() -> None:
    run_verdict = verdict(faults=1)
    away = [replace(fault, family="away", fault="away") for fault in run_verdict.faults]
    met = run_verdict.fault_exercise or []
    assert only(run(SAFE, replace(run_verdict, faults=away), family="away")).outcome == "not exercised"
    cleaned = replace(run_verdict, faults=away, fault_exercise=[replace(fault, cleaned=1) for fault in met])
    assert only(run(SAFE, cleaned, family="away")).outcome == "held"


def test_a_script_is_put_to_the_test_by_taking_effect_whatever_writes_it_met() -> None:
    """Its few writes come at the moments that it is about, which are not those that drawn faults are measured by."""
    run_verdict = verdict(in_fault=0)
    scripted = replace(run_verdict, faults=[replace(fault, family="S12") for fault in run_verdict.faults])
    assert only(run(SAFE, scripted, family="S12")).outcome == "held"
    without_effect = [replace(fault, took_effect=False) for fault in scripted.faults]
    idle = replace(scripted, faults=without_effect)
    cell = only(run(SAFE, idle, family="S12"))
    assert cell.outcome == "not exercised"
    assert cell.note.endswith("took effect; raise runs"), "a script says itself how many faults there are"


def skipped(sequence: int, **changes: Any) -> Receipt:
    """A kill that this host can never do."""
    why = {"mark": "skipped", "unsupported": True, "reason": "links are cut in namespaces only"}
    return replace(killed(sequence, took_effect=False), **why | changes)


def test_a_cell_whose_faults_cannot_be_done_where_it_was_run_says_so_and_not_to_raise_anything() -> None:
    run_verdict = verdict(faults=0)
    run_verdict.faults.extend(skipped(sequence) for sequence in range(4))
    line = run(SAFE, run_verdict, exercised_min=3)
    cell = only(line)
    assert cell.outcome == "not exercised"
    why = "none can be done here: links are cut in namespaces only"
    assert cell.note == f"kill: 0 of at least 3 faults met writes, {why}"
    assert cell.exercised["kill"].why_not == "links are cut in namespaces only"
    assert line.why_unknown == f"kill: {why}"


def test_what_only_prepares_for_a_familys_faults_is_not_missed_in_them() -> None:
    run_verdict = verdict(faults=1)
    run_verdict.faults.append(skipped(1, group=1, fault="partition"))
    assert kills(only(run(SAFE, run_verdict))) == (1, 1)


def test_where_some_faults_of_a_family_can_be_done_more_runs_help() -> None:
    run_verdict = verdict(faults=1)
    run_verdict.faults.append(skipped(1))
    assert only(run(SAFE, run_verdict, exercised_min=3)).note == (
        "kill: 1 of at least 3 faults met writes, 1 took effect, others cannot be done here "
        "(links are cut in namespaces only); raise count and duration_ms, or runs"
    )


def test_faults_that_met_no_writes_do_not_count() -> None:
    """All of them were counted once, and a single acknowledgement inside one of them made the cell held."""
    run_verdict = verdict(faults=5)
    assert run_verdict.fault_exercise is not None
    run_verdict.fault_exercise = [FaultExercise(sequence=n, acknowledged=n == 0) for n in range(5)]
    line = run(SAFE, run_verdict, exercised_min=3)
    assert (line.outcome, only(line).outcome) == ("not exercised", "not exercised")
    assert kills(only(line)) == (5, 1)
    assert only(line).note == (
        "kill: 1 of at least 3 faults met writes, of 5 that took effect; raise writes_per_second, or runs"
    )


def test_each_part_of_a_joint_family_counts_by_itself() -> None:
    run_verdict = verdict(faults=4)
    run_verdict.faults[3] = replace(run_verdict.faults[3], family="pause", fault="pause")
    cell = only(run(SAFE, run_verdict, family="kill+pause", exercised_min=2))
    assert cell.note.startswith("pause: 1 of at least 2 faults met writes")
    assert only(run(SAFE, run_verdict, family="kill+pause")).outcome == "held"
    assert only(run(SAFE, run_verdict, family="kill+partition")).note.startswith("partition: 0 of at least 1 faults")


def test_what_came_to_less_does_not_exercise_its_family_but_where_the_settings_see_to_that() -> None:
    """A loss of power that took nothing counted as a loss of power."""
    run_verdict = verdict()
    run_verdict.faults = [replace(killed(0, family="power"), fault="powerloss", degraded_to="kill", targets=(1,))]
    assert only(run(SAFE, run_verdict, family="power")).outcome == "not exercised"
    assert only(run(Settings(min_insync_replicas=2, flush_messages=1), run_verdict, family="power")).outcome == "held"
    assert only(run(SAFE, run_verdict, family="power")).faults == {"kill": 1}


def test_a_run_that_did_not_recover_is_not_held() -> None:
    run_verdict = verdict()
    run_verdict.recovery = Recovery(tried=True, lacking={"t-1": "it has no leader"})
    line = run(SAFE, run_verdict)
    assert (line.outcome, only(line).outcome) == ("not exercised", "not exercised")
    assert only(line).note == "the run had not recovered within recovery_limit_ms"


def test_silence_of_a_history_without_the_facts_is_unknown_and_says_so() -> None:
    untried, unasked = verdict(), verdict()
    untried.recovery, unasked.fault_exercise = Recovery(), None
    for run_verdict in (untried, unasked):
        line = run(SAFE, run_verdict)
        assert (line.outcome, only(line).outcome) == ("unknown", "unknown")
        assert only(line).note.endswith("judged or recorded by an older version")


def test_a_judgement_of_an_older_version_is_not_silently_held() -> None:
    line = run(SAFE, verdict())
    assert line.judgement is not None
    old = replace(line, judgement=replace(line.judgement, exercised=None))
    assert (old.outcome, only(old).outcome, only(old).loss.total) == ("unknown", "unknown", 100)
    assert old.why_unknown == OLDER


def test_coverage_is_summed_over_the_runs_and_not_known_where_no_run_knows() -> None:
    run_verdict = verdict()
    run_verdict.situations = Situations(
        acknowledged_at_isr={1: 2, 2: 3, 3: 4}, acknowledged_before_strike={1: 5, 3: 6}, refused_before_append=7
    )
    cell = only(run(SAFE, run_verdict), run(SAFE, run_verdict, seed=2), run(SAFE, verdict(), seed=3))
    assert {name: count for name, count in cell.coverage.items() if count is not None} == {
        "acknowledged_at_min_isr": 10,
        "acknowledged_on_leader_only": 10,
        "unflushed_at_power_loss": 0,
        "refused_before_append": 14,
    }
    assert only(run(A1, run_verdict)).coverage["acknowledged_on_leader_only"] == 11
    assert cell.coverage["leader_changed_in_flight"] is None


@pytest.mark.parametrize(
    ("evidence", "count"),
    [
        ({"lost": {"t-0": 0, "t-1": 3}}, 1),
        ({"lost": {"t-0": 0}}, 0),
        ({"log_bytes_before": 9, "log_bytes_after": 4}, 1),
        ({"exit": "signal 9"}, None),
    ],
)
def test_a_loss_of_power_says_by_its_evidence_whether_it_took_something(
    evidence: dict[str, Any], count: int | None
) -> None:
    run_verdict = verdict()
    run_verdict.faults = [replace(killed(0), fault="powerloss", begin_evidence={"1": evidence})]
    assert only(run(SAFE, run_verdict)).coverage["unflushed_at_power_loss"] == count


def stalled(run_verdict: Verdict) -> Verdict:
    run_verdict.recovery = Recovery(tried=True, unwritten={"t-1": "no answer within 20,000 ms"})
    return run_verdict


def test_a_log_that_nobody_can_write_after_healing_is_stalled() -> None:
    cell = only(run(A1, stalled(verdict(lost_write=2))), run(A1, verdict(), seed=2))
    assert (cell.outcome, cell.stalled) == ("stalled", {"no answer within 20,000 ms": 1})
    assert cell.note == "the log did not come back in 1 of 2 runs: no answer within 20,000 ms"
    summary = summarise([cell])
    assert (summary.exit_code, summary.sentence[:36]) == (1, "The log did not come back in 1 of 1 ")


def test_a_sentence_of_a_client_that_ends_with_a_full_stop_has_no_other_behind_it() -> None:
    run_verdict = verdict()
    run_verdict.recovery = Recovery(tried=True, unwritten={"t-1": "NeverSent: Failed to update metadata."})
    cell = only(run(A1, run_verdict))
    assert cell.note.endswith(": NeverSent: Failed to update metadata")
    assert f"{cell.note}. " in summarise([cell]).sentence


def test_a_log_without_a_leader_is_stalled_although_all_its_nodes_run_and_waits_where_one_does_not() -> None:
    run_verdict = stalled(verdict())
    run_verdict.exercise.drained = False
    run_verdict.recovery.lacking = {"t-1": "it has no leader"}
    judged = judge(SAFE, run_verdict)
    assert (judged.outcome, judged.stalled) == ("stalled", {"t-1": "no answer within 20,000 ms; it has no leader"})
    run_verdict.recovery.absent = {"t-1": "broker 2 did not run"}
    judged = judge(SAFE, run_verdict)
    assert (judged.outcome, judged.stalled) == ("unknown", {})
    assert judged.reason is not None
    assert judged.reason.endswith("; of t-1: broker 2 did not run")


def test_a_log_that_is_only_too_long_for_the_limit_is_unknown_and_the_limit_is_named() -> None:
    judged = judge(SAFE, verdict(drained=False))
    assert (judged.outcome, judged.stalled) == ("unknown", {})
    assert judged.reason is not None
    assert judged.reason.endswith("raise drain_limit_ms")


def test_a_broken_promise_is_worse_than_a_stall() -> None:
    assert only(run(SAFE, stalled(verdict(lost_write=1)))).outcome == "broken promise"


def test_a_log_that_waits_for_a_destroyed_copy_may_stall_and_the_reason_says_so() -> None:
    run_verdict = stalled(under("powerloss", "kill"))
    run_verdict.exercise.drained = False
    judged = judge(SAFE, run_verdict)
    assert (judged.outcome, judged.stalled) == ("unknown", {})
    assert judged.reason is not None
    assert judged.reason.endswith("the log may wait for it, which is permitted")


@pytest.mark.parametrize(
    ("settings", "touched", "outcome"),
    [
        (SAFE, ["t-1"], "unknown"),
        (SAFE, ["t-9"], "stalled"),
        (Settings(min_insync_replicas=2, flush_messages=1), ["t-1"], "stalled"),
    ],
)
def test_a_destroyed_copy_excuses_a_stall_only_where_it_was_and_only_if_what_it_held_is_gone(
    settings: Settings, touched: list[str], outcome: str
) -> None:
    run_verdict = stalled(under("powerloss", "kill", "kill"))
    run_verdict.exercise.drained = False
    run_verdict.faults = [replace(receipt, touched=touched) for receipt in run_verdict.faults]
    assert judge(settings, run_verdict).outcome == outcome


def test_one_broken_run_breaks_the_cell_whatever_the_others_say() -> None:
    cell = only(
        run(SAFE, verdict()),
        run(SAFE, verdict(drained=False, faults=0), seed=2),
        run(SAFE, verdict(phantom_read=1), seed=3),
    )
    assert (cell.outcome, cell.broken, cell.witness and cell.witness.seed) == ("broken promise", {"phantom-read": 1}, 3)


def test_permitted_loss_does_not_hide_a_broken_promise() -> None:
    assert only(run(A1, verdict(lost_write=3, corrupt_read=1))).outcome == "broken promise"


def test_a_weakness_that_did_not_show_is_not_called_a_promise() -> None:
    weak, strong = only(run(UNCLEAN, verdict())), only(run(SAFE, verdict()))
    assert (weak.outcome, weak.loss_permitted) == ("held", True)
    assert weak.note == "no loss seen in 1 exercised fault, 1 run; loss is permitted, so this is not a promise"
    assert strong.note == "no loss in 1 exercised fault, 1 run, as promised"


def test_without_a_fault_that_took_effect_even_acks_1_may_lose_nothing() -> None:
    assert only(run(A1, verdict(lost_write=1, faults=0))).outcome == "broken promise"


def test_unseen_of_an_undrained_log_is_unknown_and_of_a_drained_one_lost() -> None:
    assert only(run(SAFE, verdict(unseen=5, drained=False))).outcome == "unknown"
    assert only(run(A1, verdict(unseen=5))).lost == 5


def test_a_lost_write_is_proof_even_if_the_log_was_not_drained() -> None:
    judged = judge(A1, verdict(lost_write=2, unseen=9, drained=False))
    assert (judged.judged, judged.lost, judged.reason) == (True, 2, None)


def test_a_write_counted_by_two_checkers_is_lost_once() -> None:
    assert only(run(A1, verdict(lost_write=4, unseen=5))).lost == 5


def test_an_unknown_verdict_brings_its_reason() -> None:
    dead = Verdict(history="h", valid="unknown", reason="the harness was killed")
    cell = only(run(SAFE, dead), run(SAFE, dead, seed=2), run(SAFE, verdict(), seed=3))
    assert (cell.outcome, cell.runs, cell.runs_judged) == ("unknown", 3, 1)
    assert cell.unknown_reasons == {"the harness was killed": 2}
    assert cell.note == "1 of 3 runs could be judged: the harness was killed"


def test_a_cell_with_runs_that_could_not_be_judged_is_not_held() -> None:
    """Half of the runs judged were enough once, and the others could have lost anything."""
    cell = only(*(run(SAFE, verdict(drained=seed > 1), seed=seed) for seed in range(1, 11)))
    assert (cell.outcome, cell.runs, cell.runs_judged) == ("not exercised", 10, 9)
    assert cell.note.startswith("1 of 10 runs could not be judged: the final readers did not reach the end of the log")
    assert cell.note.endswith("raise drain_limit_ms")
    assert cell.acknowledged_in_fault == 9 * 40


def test_a_damaged_file_is_not_blamed_on_the_limits_of_the_plan() -> None:
    damaged = Verdict(history="h", valid="unknown", reason="part-0.parquet is damaged")
    whole = [run(SAFE, verdict(), seed=seed) for seed in range(3, 11)]
    cell = only(run(SAFE, damaged, seed=1), run(SAFE, damaged, seed=2), *whole)
    assert cell.note == "2 of 10 runs could not be judged: part-0.parquet is damaged"
    late = run(SAFE, verdict(drained=False), seed=11)
    note = only(run(SAFE, damaged, seed=1), run(SAFE, damaged, seed=2), *whole, late).note
    assert note == "3 of 11 runs could not be judged: most often part-0.parquet is damaged"


def test_silence_has_an_upper_bound_per_exercised_fault_and_per_run() -> None:
    cell = only(*(run(SAFE, verdict(in_fault=30, faults=2), seed=seed) for seed in range(10)))
    assert cell.bound == pytest.approx(0.1391, rel=1e-3)
    assert (1 - cell.bound) ** 20 == pytest.approx(0.05)
    assert cell.lossy_runs.high == pytest.approx(3 / 10)


def test_a_joint_family_has_the_bound_of_its_part_with_the_fewest_exercised_faults() -> None:
    """Added up, 29 kills and one pause said 10 % of pauses too."""
    run_verdict = verdict(faults=7)
    run_verdict.faults[5] = replace(run_verdict.faults[5], family="pause", fault="pause")
    run_verdict.faults[6] = replace(run_verdict.faults[6], family="partition", fault="partition")
    assert only(run(SAFE, run_verdict, family="kill")).bound == pytest.approx(1 - 0.05 ** (1 / 5))
    assert only(run(SAFE, run_verdict, family="kill+pause")).bound == pytest.approx(0.95)
    assert only(run(SAFE, run_verdict, family="kill+pause")).note.startswith("no loss in 6 exercised faults")
    assert only(run(SAFE, run_verdict, family="power")).bound == 1.0


def at_stake(*acknowledged: int) -> Verdict:
    """A run of one kill for each number of writes that were acknowledged while it lasted."""
    exercises = [FaultExercise(sequence=n, acknowledged=writes) for n, writes in enumerate(acknowledged)]
    return replace(verdict(faults=len(acknowledged)), fault_exercise=exercises)


def test_a_cell_needs_enough_writes_at_stake_beside_enough_faults() -> None:
    """Twenty faults of one write each made a cell held as twenty faults of a thousand did."""
    few = [run(SAFE, at_stake(1, 1), seed=seed, exercised_min=3, at_stake_min=59) for seed in range(10)]
    cell = only(*few)
    assert cell.outcome == "not exercised"
    assert cell.note == "kill: 20 of at least 59 writes were at stake; raise writes_per_second, or runs"
    assert few[0].outcome == "held", "a run alone did what it could"
    assert only(*few, run(SAFE, at_stake(39), seed=11, at_stake_min=59)).outcome == "held"


def test_silence_is_bounded_by_faults_and_by_writes() -> None:
    cell = only(run(SAFE, at_stake(5, 0, 40)), run(SAFE, at_stake(14), seed=2))
    family = cell.exercised["kill"]
    assert (family.took_effect, family.exercised) == (4, 3)
    assert (family.writes_at_stake, family.writes_a_fault) == (59, (5, 14))
    assert cell.bound == pytest.approx(1 - 0.05 ** (1 / 3))
    assert cell.bound_writes == pytest.approx(0.05, rel=0.02)


def test_a_scenario_has_the_writes_of_its_fault_with_most() -> None:
    run_verdict = at_stake(5, 8, 3)
    for receipt in run_verdict.faults:
        receipt.group = 0
    assert only(run(SAFE, run_verdict)).exercised["kill"].at_stake == {8: 1}


def test_writes_at_stake_of_scripts_and_of_older_versions_are_not_known() -> None:
    older = FamilyExercised(took_effect=3, exercised=3)
    assert (older.writes_at_stake, older.writes_a_fault) == (None, None)
    both = older + FamilyExercised(took_effect=1, exercised=1, at_stake={7: 1})
    assert (both.writes_at_stake, both.writes_a_fault) == (None, None)
    scripted = replace(at_stake(1), faults=[replace(fault, family="S12") for fault in at_stake(1).faults])
    cell = only(run(SAFE, scripted, family="S12", at_stake_min=59))
    assert (cell.outcome, cell.bound_writes) == ("held", None)


def test_a_story_is_one_fault_however_many_brokers_it_hits() -> None:
    """All brokers that die at once were three independent trials."""
    run_verdict = verdict(faults=3)
    for receipt in run_verdict.faults:
        receipt.group = 0
    assert kills(only(run(SAFE, run_verdict))) == (1, 1)
    assert only(run(SAFE, run_verdict, exercised_min=3)).outcome == "not exercised"


def test_what_prepares_for_a_fault_is_none_of_its_family() -> None:
    """A cut of links that met writes counted as a kill, also where the kill came to nothing or met none."""
    run_verdict = verdict(faults=3)
    run_verdict.faults[0] = replace(run_verdict.faults[0], fault="partition", group=1, story="leader-ahead")
    assert kills(only(run(SAFE, run_verdict))) == (2, 2)
    assert run_verdict.fault_exercise is not None
    run_verdict.fault_exercise[1].acknowledged = run_verdict.fault_exercise[2].acknowledged = 0
    assert kills(only(run(SAFE, run_verdict))) == (2, 0)
    run_verdict.faults[1].took_effect = False
    assert kills(only(run(SAFE, run_verdict))) == (1, 0)


@pytest.mark.parametrize(("transactions", "advice"), [(0, "raise writes_per_second"), (4, "raise producers")])
def test_a_workload_that_waits_for_the_ends_of_transactions_is_not_told_to_write_faster(
    transactions: int, advice: str
) -> None:
    exercised = RunsExercised(
        recovered=1, acknowledged=9, transactions=transactions, aborted_passed=1, families={"kill": FamilyExercised(3)}
    )
    assert exercised.lacks(["kill"]).endswith(f"of 3 that took effect; {advice}, or runs")


def test_a_run_alone_lacks_what_one_of_its_own_families_lacks() -> None:
    """It asked for families that took effect, so a family that never did was not missed."""
    line = run(SAFE, verdict(faults=3), family="kill+pause")
    assert (line.outcome, only(line).outcome) == ("not exercised", "not exercised")
    assert str(line.why_unknown).startswith("pause: 0 of at least 1 faults met writes")


FLUSHED = Settings(min_insync_replicas=2, flush_messages=1)


@pytest.mark.parametrize(
    ("settings", "kind", "alone", "outcome"),
    [
        (SAFE, "kill", 0, "not exercised"),
        (SAFE, "kill", 1, "held"),
        (A1, "kill", 0, "held"),
        (SAFE, "powerloss", 0, "held"),
        (FLUSHED, "powerloss", 0, "not exercised"),
        (FLUSHED, "wipedisk", 0, "held"),
    ],
)
def test_what_was_acknowledged_before_a_strike_is_at_risk_only_where_the_fault_can_take_it(
    settings: Settings, kind: str, alone: int, outcome: str
) -> None:
    """With acks=all, three writes, each acknowledged 440 ms before one of three kills, and nothing else: held."""
    family = {"powerloss": "power", "wipedisk": "wipe"}.get(kind, kind)
    run_verdict = verdict(faults=3)
    run_verdict.faults = [replace(receipt, fault=kind, family=family) for receipt in run_verdict.faults]
    run_verdict.fault_exercise = [FaultExercise(sequence=n, recent=1, recent_alone=alone) for n in range(3)]
    line = run(settings, run_verdict, family=family, exercised_min=3)
    assert (line.outcome, only(line).outcome) == (outcome, outcome)


def test_the_rate_of_loss_is_that_of_the_acknowledged_writes() -> None:
    """The share of those acknowledged in faults was 100 % where half were lost: what came before is lost too."""
    cell = only(*(run(A1, verdict(in_fault=5, lost_write=int(seed < 5)), seed=seed) for seed in range(10)))
    assert (cell.loss.count, cell.loss.total, cell.lossy_runs.count, cell.lossy_runs.total) == (5, 1_000, 5, 10)
    assert cell.lossy_runs.low == pytest.approx(0.18709, rel=1e-3)
    lossy = verdict(in_fault=120, lost_write=539)
    lossy.exercise.acknowledged = 1_015
    assert only(run(A1, lossy)).loss.rate == pytest.approx(0.531, rel=1e-3)


def test_the_witness_is_the_lost_write_of_the_run_with_the_fewest_faults() -> None:
    cell = only(
        run(A1, verdict(unseen=1), seed=1),
        run(A1, verdict(lost_write=1, faults=4), seed=2),
        run(A1, verdict(lost_write=1, faults=2), seed=3),
    )
    assert cell.witness is not None
    assert (cell.witness.seed, cell.witness.anomaly) == (3, "lost-write")


def test_the_nearest_green_column_changes_the_fewest_settings() -> None:
    cells = build_cells(
        [
            run(Settings(acks=1, unclean_leader_election_enable=True), verdict(lost_write=1), cell="weak"),
            run(UNCLEAN, verdict(), cell="lucky"),
            run(Settings(min_insync_replicas=2), verdict(), cell="all/2"),
            run(Settings(), verdict(), cell="all/1"),
            run(Settings(), verdict(), cell="all/1 under pause", family="pause"),
        ]
    )
    nearest_by_cell = {cell.cell: cell.nearest for cell in cells}
    nearest = nearest_by_cell.pop("weak")
    assert nearest is not None
    assert (nearest.cell, nearest.changes) == ("all/1", {"acks": "all", "unclean.leader.election.enable": False})
    assert set(nearest_by_cell.values()) == {None}


def test_cells_lie_in_one_order_whatever_the_order_of_their_runs() -> None:
    named = ["a=1,b=1/kill", "a=1,b=1/kill+pause", "a=1,b=1/pause", "a=1/kill", "a=all/kill"]
    lines = [
        run(SAFE, verdict(), seed=seed, cell=cell, family=cell.partition("/")[2]) for seed in (1, 2) for cell in named
    ]
    places = sorted(Path(cell) for cell in named)  # as a campaign's runs are found
    for order in (lines, lines[::-1], lines[3:] + lines[:3]):
        assert [Path(cell.cell) for cell in build_cells(order)] == places


def test_labels_hold_the_settings_that_vary() -> None:
    cells = build_cells([run(A1, verdict(), cell="a"), run(SAFE, verdict(), cell="b")])
    assert [settings_words(cell.label) for cell in cells] == [
        "acks=1, min.insync.replicas=1",
        "acks=all, min.insync.replicas=2",
    ]


def test_where_nothing_varies_a_cell_is_named_by_what_the_promise_rests_on() -> None:
    cells = build_cells([run(SAFE, verdict(), cell="a"), run(SAFE, verdict(), cell="b", family="pause")])
    assert {settings_words(cell.label) for cell in cells} == {"acks=all, min.insync.replicas=2"}


def left_to_client(settings: Settings, cell: str, *, world: str = "simulated") -> VerdictLine:
    facts = RunFacts(
        cell=cell, family="kill", world=world, seed=1, settings=settings.to_mapping(), client_defaults=(IDEMPOTENCE,)
    )
    return VerdictLine.of(verdict(lost_write=int(settings.acks == 1), faults=3), facts)


def test_what_the_client_decides_by_acks_is_no_difference_of_its_own() -> None:
    idempotent = Settings(enable_idempotence=True)
    cells = build_cells([left_to_client(Settings(acks=1), "1"), left_to_client(idempotent, "all")])
    assert [cell.label for cell in cells] == [{"acks": 1}, {"acks": "all"}]
    assert cells[1].settings[IDEMPOTENCE] is True
    assert cells[0].nearest is not None
    assert cells[0].nearest.changes == {"acks": "all"}, "the client follows by itself"


def test_clients_that_decide_otherwise_are_kept_apart() -> None:
    cells = build_cells(
        [
            left_to_client(Settings(enable_idempotence=True), "all"),
            left_to_client(Settings(enable_idempotence=False), "all", world="kafka"),
        ]
    )
    assert {cell.world: cell.label for cell in cells} == {
        "simulated": {IDEMPOTENCE: True},
        "kafka": {IDEMPOTENCE: False},
    }


def test_what_producers_got_is_counted_by_run() -> None:
    ordered, mixed = verdict(), verdict()
    ordered.delivery = Delivery(observed="exactly-once", ordered=True)
    mixed.delivery = Delivery(observed="at-least-once", ordered=False, reordered=3)
    cell = only(*(run(SAFE, run_verdict, seed=seed) for seed, run_verdict in enumerate((ordered, mixed, ordered))))
    assert cell.delivery == {"exactly-once, in order": 2, "at-least-once, not in order": 1}


def test_availability_is_the_worst_of_all_runs() -> None:
    slow, dead = verdict(), verdict()
    slow.availability = {"t-0": Availability(longest_gap_us=5, gap_start_us=1, recovery_us=9)}
    dead.availability = {"t-0": Availability(longest_gap_us=7, gap_start_us=1)}
    cell = only(run(SAFE, slow), run(SAFE, dead, seed=2))
    assert (cell.longest_gap_us, cell.recovery_us, cell.unrecovered) == (7, 9, 1)


def test_faults_without_evidence_are_counted_apart() -> None:
    run_verdict = verdict()
    run_verdict.faults = [killed(0), killed(1, took_effect=False)]
    cell = only(run(SAFE, run_verdict))
    assert (cell.faults, cell.faults_without_effect) == ({"kill": 1}, 1)


def under(*kinds: str) -> Verdict:
    """A verdict of a run in which these faults took effect, each of a broker of its own."""
    run_verdict = verdict(faults=len(kinds))
    run_verdict.faults = [
        replace(receipt, fault=kind, targets=(node,))
        for node, (receipt, kind) in enumerate(zip(run_verdict.faults, kinds, strict=True))
    ]
    return run_verdict


def test_faults_of_different_runs_permit_together_no_more_than_each_alone() -> None:
    apart = only(run(SAFE, under("powerloss")), run(SAFE, under("kill"), seed=2))
    assert (apart.loss_permitted, apart.note) == (False, "no loss in 1 exercised fault, 2 runs, as promised")
    assert only(run(SAFE, under("powerloss", "kill"))).loss_permitted


def test_the_sentence_is_that_of_the_run_that_permits_most() -> None:
    orders = [["kill", "powerloss powerloss", "kill kill kill"], ["powerloss powerloss", "kill kill kill", "kill"]]
    for order in orders:
        cell = only(*(run(SAFE, under(*kinds.split()), seed=seed) for seed, kinds in enumerate(order)))
        assert cell.loss_permitted
        assert cell.promise.startswith("Acknowledged writes may be lost: a copy was destroyed")


@pytest.mark.parametrize(
    ("runs", "exit_code", "beginning"),
    [
        ([run(SAFE, verdict()), run(A1, verdict(lost_write=1))], 0, "No promise was broken: 1 of 2 cells held, 1 lost"),
        (
            [run(A1, verdict(lost_write=1))],
            0,
            "No promise was broken: 1 of 1 cell lost acknowledged writes as their settings permit. ",
        ),
        ([run(A1, verdict())], 0, "No promise was broken: 1 of 1 cell lost nothing though loss is permitted. "),
        ([run(SAFE, verdict(lost_write=2)), run(A1, verdict())], 1, "A promise was broken in 1 of 2 cells: acks=all"),
        ([run(SAFE, verdict(drained=False)), run(A1, verdict())], 2, "Unknown: 1 of 2 cells could be judged"),
        ([run(SAFE, verdict(in_fault=0))], 2, "Unknown: 0 of 1 cell could be judged"),
        (
            [run(SAFE, verdict(in_fault=0)), run(A1, verdict())],
            2,
            "Unknown: 1 of 2 cells could be judged, and in these no promise was broken (1 not exercised).",
        ),
        ([], 2, "Unknown: 0 of 0 cells"),
    ],
)
def test_the_campaign_ends_in_one_sentence_and_one_code(
    runs: list[VerdictLine], exit_code: int, beginning: str
) -> None:
    summary = summarise(build_cells(runs))
    assert summary.exit_code == exit_code
    assert summary.sentence.startswith(beginning)


def test_cells_of_the_plan_that_had_no_run_are_not_exercised() -> None:
    cells = build_cells([run(SAFE, verdict())])
    assert summarise(cells, 1) == summarise(cells)
    summary = summarise(cells, 96)
    assert (summary.exit_code, summary.outcomes["not exercised"]) == (2, 95)
    assert summary.sentence.startswith("Unknown: 1 of 96 cells could be judged")
    broken = summarise(build_cells([run(SAFE, verdict(lost_write=1))]), 96)
    assert (broken.exit_code, broken.sentence[:34]) == (1, "A promise was broken in 1 of 96 ce")


def test_other_cells_with_a_broken_promise_are_said_to_be_cells() -> None:
    lost = [run(SAFE, verdict(lost_write=1), cell=f"c{number}/kill") for number in range(3)]
    assert ", and in 1 more cell." in summarise(build_cells(lost[:2])).sentence
    assert ", and in 2 more cells." in summarise(build_cells(lost)).sentence


@pytest.mark.parametrize(
    ("runs", "ending"),
    [
        ([run(SAFE, verdict())], "40 writes acknowledged during faults. No acknowledged write was lost."),
        ([run(SAFE, verdict(lost_write=2)), run(SAFE, verdict(unseen=5))], " Lost against a promise: 7."),
        (
            [run(A0, verdict(lost_write=1_000)), run(A1, verdict(lost_write=20)), run(UNCLEAN, verdict(lost_write=3))],
            " Lost against a promise: 0; as permitted: 3 with acks=all, 20 with acks=1, 1,000 with acks=0.",
        ),
        (
            [run(A0, verdict(lost_write=1_000)), run(SAFE, verdict(lost_write=2, unseen=2))],
            " Lost against a promise: 2; as permitted: 1,000 with acks=0.",
        ),
        (
            [run(COMMITS_FIRST, verdict(group_skip=1_058)), run(SAFE, verdict())],
            "No acknowledged write was lost. Skipped by consumer groups, as permitted: 1,058.",
        ),
        ([run(SAFE, verdict(group_skip=1))], "No acknowledged write was lost."),
    ],
)
def test_broken_promises_are_told_apart_from_what_nobody_promised(runs: list[VerdictLine], ending: str) -> None:
    assert summarise(build_cells(runs)).sentence.endswith(ending)


def test_losses_of_a_cell_are_told_apart_by_run() -> None:
    cell = only(run(SAFE, verdict(lost_write=5, unseen=3)), run(SAFE, verdict(unseen=4)), run(SAFE, verdict()))
    assert (cell.lost, cell.lost_against_promise) == (9, 9)
    cell = only(run(A1, verdict(lost_write=5)))
    assert (cell.lost, cell.lost_against_promise) == (5, 0)


def test_the_matrix_is_versioned_json() -> None:
    built = build_matrix([run(A1, verdict(lost_write=1)), run(SAFE, verdict())])
    matrix: dict[str, Any] = json.loads(msgspec.json.encode(built))
    assert matrix["version"] == MATRIX_VERSION
    assert matrix["verdict"]["outcomes"]["permitted loss"] == 1
    (lossy,) = [cell for cell in matrix["cells"] if cell["settings"]["acks"] == 1]
    assert (lossy["outcome"], lossy["witness"]["run"]) == ("permitted loss", "runs/1")
    assert lossy["loss"]["count"] == 1
