"""Cells from synthetic verdicts: all five outcomes, their order, their numbers, and the sentence over them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkers.measures.availability import Availability
from checkers.measures.delivery import Delivery
from checkers.measures.exercise import Exercise
from checkers.measures.recovery import Recovery
from checkers.verdicts.cells import Cell, build_cells
from checkers.verdicts.judgement import RunFacts, VerdictLine, judge
from checkers.verdicts.matrix import MATRIX_VERSION, build_matrix, settings_words, summarise
from checkers.verdicts.verdict import Verdict
from workloads.settings import IDEMPOTENCE, Settings

A0 = Settings(acks=0)
A1 = Settings(acks=1)
SAFE = Settings(min_insync_replicas=2)
UNCLEAN = Settings(unclean_leader_election_enable=True)


def killed(sequence: int, took_effect: bool = True) -> dict[str, Any]:
    fixed = {"mark": "end", "group": 0, "family": "kill", "story": "leader", "fault": "kill", "role": "leader"}
    return {"sequence": sequence, "took_effect": took_effect, **fixed}


def verdict(*, in_fault: int = 40, drained: bool = True, faults: int = 1, **counts: int) -> Verdict:
    named = {name.replace("_", "-"): count for name, count in counts.items()}
    return Verdict(
        history="h",
        valid=not named,
        counts=named,
        anomalies={name: [{"key": "t-0", "value": 7}] for name in named},
        exercise=Exercise(attempted=120, acknowledged=100, acknowledged_in_fault=in_fault, drained=drained),
        faults=[killed(sequence) for sequence in range(faults)],
    )


def run(settings: Settings, found: Verdict, *, seed: int = 1, cell: str = "", family: str = "kill") -> VerdictLine:
    name = cell or f"acks={settings.acks}/{family}"
    facts = RunFacts(cell=name, family=family, world="simulated", seed=seed, settings=settings.to_mapping())
    return VerdictLine.of(msgspec.structs.replace(found, history=f"runs/{seed}"), facts)


def only(*runs: VerdictLine) -> Cell:
    (cell,) = build_cells(runs)
    return cell


@pytest.mark.parametrize(
    ("settings", "found", "outcome"),
    [
        (SAFE, verdict(), "held"),
        (A1, verdict(lost_write=3), "permitted loss"),
        (SAFE, verdict(lost_write=1), "broken promise"),
        (SAFE, verdict(in_fault=0), "not exercised"),
        (SAFE, verdict(drained=False), "unknown"),
    ],
)
def test_each_outcome(settings: Settings, found: Verdict, outcome: str) -> None:
    assert only(run(settings, found)).outcome == outcome


def stalled(found: Verdict) -> Verdict:
    found.recovery = Recovery(tried=True, unwritten={"t-1": "no answer within 20,000 ms"})
    return found


def test_a_log_that_nobody_can_write_after_healing_is_stalled() -> None:
    cell = only(run(A1, stalled(verdict(lost_write=2))), run(A1, verdict(), seed=2))
    assert (cell.outcome, cell.stalled) == ("stalled", {"no answer within 20,000 ms": 1})
    assert cell.note == "the log did not come back in 1 of 2 runs: no answer within 20,000 ms"
    summary = summarise([cell])
    assert (summary.exit_code, summary.sentence[:36]) == (1, "The log did not come back in 1 of 1 ")


def test_a_broken_promise_is_worse_than_a_stall() -> None:
    assert only(run(SAFE, stalled(verdict(lost_write=1)))).outcome == "broken promise"


def test_a_log_that_waits_for_a_destroyed_copy_may_stall_and_the_reason_says_so() -> None:
    found = stalled(under("powerloss", "kill"))
    found.exercise.drained = False
    judged = judge(SAFE, found)
    assert (judged.outcome, judged.stalled) == ("unknown", {})
    assert judged.reason is not None
    assert judged.reason.endswith("that it did not come back is permitted")


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
    assert weak.note == "no loss seen in 1 run; loss is permitted, so this is not a promise"
    assert strong.note == "no loss in 1 run, as promised"


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


def test_few_unknown_runs_leave_a_cell_held_and_are_counted() -> None:
    cell = only(*(run(SAFE, verdict(drained=seed > 1), seed=seed) for seed in range(1, 11)))
    assert (cell.outcome, cell.runs, cell.runs_judged) == ("held", 10, 9)
    assert cell.acknowledged_in_fault == 9 * 40


def test_silence_has_an_upper_bound_per_write_and_per_run() -> None:
    cell = only(*(run(SAFE, verdict(in_fault=30), seed=seed) for seed in range(10)))
    assert cell.loss.high == pytest.approx(3 / 300)
    assert cell.lossy_runs.high == pytest.approx(3 / 10)


def test_loss_has_an_interval_over_the_writes_at_risk() -> None:
    cell = only(*(run(A1, verdict(in_fault=5, lost_write=int(seed < 5)), seed=seed) for seed in range(10)))
    assert (cell.loss.count, cell.loss.total, cell.lossy_runs.count, cell.lossy_runs.total) == (5, 50, 5, 10)
    assert cell.lossy_runs.low == pytest.approx(0.18709, rel=1e-3)
    assert only(run(A1, verdict(in_fault=2, lost_write=3))).loss.total == 3


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
    nearest = cells[0].nearest
    assert nearest is not None
    assert (nearest.cell, nearest.changes) == ("all/1", {"acks": "all", "unclean.leader.election.enable": False})
    assert all(cell.nearest is None for cell in cells[1:])


def test_labels_hold_the_settings_that_vary() -> None:
    cells = build_cells([run(A1, verdict(), cell="a"), run(SAFE, verdict(), cell="b")])
    assert [settings_words(cell.label) for cell in cells] == [
        "acks=1, min.insync.replicas=1",
        "acks=all, min.insync.replicas=2",
    ]


def left_to_client(settings: Settings, cell: str, *, world: str = "simulated") -> VerdictLine:
    facts = RunFacts(
        cell=cell, family="kill", world=world, seed=1, settings=settings.to_mapping(), client_defaults=(IDEMPOTENCE,)
    )
    return VerdictLine.of(verdict(lost_write=int(settings.acks == 1)), facts)


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
    assert [cell.label for cell in cells] == [{IDEMPOTENCE: True}, {IDEMPOTENCE: False}]


def test_what_producers_got_is_counted_by_run() -> None:
    ordered, mixed = verdict(), verdict()
    ordered.delivery = Delivery(observed="exactly-once", ordered=True)
    mixed.delivery = Delivery(observed="at-least-once", ordered=False, reordered=3)
    cell = only(*(run(SAFE, found, seed=seed) for seed, found in enumerate((ordered, mixed, ordered))))
    assert cell.delivery == {"exactly-once, in order": 2, "at-least-once, not in order": 1}


def test_availability_is_the_worst_of_all_runs() -> None:
    slow, dead = verdict(), verdict()
    slow.availability = {"t-0": Availability(longest_gap_us=5, gap_start_us=1, recovery_us=9)}
    dead.availability = {"t-0": Availability(longest_gap_us=7, gap_start_us=1)}
    cell = only(run(SAFE, slow), run(SAFE, dead, seed=2))
    assert (cell.longest_gap_us, cell.recovery_us, cell.unrecovered) == (7, 9, 1)


def test_faults_without_evidence_are_counted_apart() -> None:
    found = verdict()
    found.faults = [killed(0), killed(1, took_effect=False)]
    cell = only(run(SAFE, found))
    assert (cell.faults, cell.faults_without_effect) == ({"kill": 1}, 1)


def under(*kinds: str) -> Verdict:
    """A verdict of a run in which these faults took effect, each of a broker of its own."""
    found = verdict(faults=len(kinds))
    found.faults = [
        {**receipt, "fault": kind, "targets": [node]}
        for node, (receipt, kind) in enumerate(zip(found.faults, kinds, strict=True))
    ]
    return found


def test_faults_of_different_runs_permit_together_no_more_than_each_alone() -> None:
    apart = only(run(SAFE, under("powerloss")), run(SAFE, under("kill"), seed=2))
    assert (apart.loss_permitted, apart.note) == (False, "no loss in 2 runs, as promised")
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
        ([run(SAFE, verdict(lost_write=2)), run(A1, verdict())], 1, "A promise was broken in 1 of 2 cells: acks=all"),
        ([run(SAFE, verdict(drained=False)), run(A1, verdict())], 2, "Unknown: 1 of 2 cells could be told"),
        ([run(SAFE, verdict(in_fault=0))], 2, "Unknown: 0 of 1 cell could be told"),
        (
            [run(SAFE, verdict(in_fault=0)), run(A1, verdict())],
            2,
            "Unknown: 1 of 2 cells could be told, and in these no promise was broken (1 not exercised).",
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
    first = matrix["cells"][0]
    assert (first["outcome"], first["witness"]["run"], first["settings"]["acks"]) == ("permitted loss", "runs/1", 1)
    assert first["loss"]["count"] == 1
