"""The judgement stands beside the verdict: cells need no run.json, and lines without a judgement are still read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from checkers import Exercise, Outcome, RunFacts, Verdict, VerdictLine
from harness.ground.errors import ResultsError
from harness.plan import RunSpec, Simulated
from harness.records.files import RUN_FILE, VERDICTS_FILE
from harness.records.run_record import Ended, write_record
from harness.records.verdict_lines import read_lines, read_matrix, write_lines, write_matrix
from nemesis.plan import FaultPlan
from tests.checkers.findings import a_finding
from tests.nemesis.receipt_factory import a_receipt
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

Campaign = Callable[[Settings], VerdictLine]


@pytest.fixture
def add(tmp_path: Path) -> Campaign:
    """Adds a run that lost one write under a kill."""

    def make(settings: Settings) -> VerdictLine:
        facts = RunFacts(cell="c/kill", family="kill", world="simulated", seed=3, settings=settings.to_mapping())
        name = f"runs/simulated/acks={settings.acks}/kill/3"
        fields = {name: getattr(facts, name) for name in ("cell", "family", "seed", "settings")} | {
            "world": Simulated()
        }
        spec = RunSpec(**fields, workload=WorkloadPlan(), faults=FaultPlan())
        (tmp_path / name).mkdir(parents=True)
        write_record(tmp_path / name, spec, Ended(status="completed"))
        lossy = Verdict(
            history=name,
            valid=False,
            counts={"lost-write": 1},
            anomalies={"lost-write": [a_finding("lost-write", key="t-0", value=7)]},
            exercise=Exercise(attempted=9, acknowledged=9, acknowledged_in_fault=4, drained=True),
            faults=[a_receipt()],
        )
        return VerdictLine.of(lossy, facts)

    return make


def test_the_promise_is_stored_with_the_verdict_it_was_applied_to(tmp_path: Path, add: Campaign) -> None:
    write_lines(tmp_path / VERDICTS_FILE, [line := add(Settings(acks=1))])
    (stored,) = read_lines(tmp_path).lines.values()
    assert stored == line
    assert stored.judgement is not None
    assert (stored.outcome, stored.judgement.permitted, stored.judgement.permits_loss) == (
        Outcome.PERMITTED_LOSS,
        {"lost-write": 1},
        True,
    )
    assert "acks=1: the leader answers alone" in stored.judgement.promise


def test_cells_need_nothing_but_the_lines(tmp_path: Path, add: Campaign) -> None:
    write_lines(tmp_path / VERDICTS_FILE, [add(Settings(acks=1)), add(Settings(acks=-1))])
    whole = write_matrix(tmp_path)
    for record in tmp_path.rglob(RUN_FILE):
        record.write_text("{")
    assert write_matrix(tmp_path) == whole
    for record in tmp_path.rglob(RUN_FILE):
        record.unlink()
    assert write_matrix(tmp_path) == read_matrix(tmp_path) == whole


def test_the_witness_of_a_cell_is_a_run_whose_files_are_there(tmp_path: Path, add: Campaign) -> None:
    line = add(Settings(acks=1))
    dropped = msgspec.structs.replace(line, history=line.history.replace("/3", "/2"))
    write_lines(tmp_path / VERDICTS_FILE, [dropped, line])
    (cell,) = write_matrix(tmp_path).cells
    assert cell.witness is not None
    assert (cell.runs, cell.witness.run) == (2, line.history)


def test_a_line_of_an_earlier_version_is_judged_from_its_run(tmp_path: Path, add: Campaign) -> None:
    line = add(Settings(acks=1))
    fields = {name: getattr(line, name) for name in Verdict.__struct_fields__}
    (tmp_path / VERDICTS_FILE).write_bytes(msgspec.json.encode(Verdict(**fields)) + b"\n")
    assert read_lines(tmp_path).lines == {line.history: line}


@pytest.mark.parametrize(
    ("written", "instead", "why"),
    [
        ('"mark":"end"', '"mark":"weird"', "Invalid enum value 'weird'"),
        ('"settings":{', '"settings":{"min.insinc.replicas":2,', 'unknown setting "min.insinc.replicas"'),
        ('"acks":1', '"acks":7', "acks=7 is not possible"),
        (
            '"counts":{"lost-write":1}',
            '"counts":{"lost-writ":1}',
            'unknown anomaly "lost-writ"; did you mean "lost-write"',
        ),
    ],
)
def test_what_no_version_writes_into_a_line_is_said_with_its_number(
    tmp_path: Path, add: Campaign, written: str, instead: str, why: str
) -> None:
    write_lines(tmp_path / VERDICTS_FILE, [add(Settings(acks=-1)), add(Settings(acks=1))])
    first, second = (tmp_path / VERDICTS_FILE).read_text().splitlines()
    assert written in second
    (tmp_path / VERDICTS_FILE).write_text(f"{first}\n{second.replace(written, instead)}\n")
    with pytest.raises(ResultsError) as caught:
        write_matrix(tmp_path)
    assert f"line 2 of {tmp_path / VERDICTS_FILE} cannot be read ({why}" in str(caught.value)
    assert str(caught.value).endswith(f"; check its histories first: ackproof check {tmp_path}")


def test_a_run_that_nobody_can_place_is_left_out_of_the_matrix_and_named(tmp_path: Path, add: Campaign) -> None:
    whole, damaged = add(Settings(acks=1)), add(Settings(acks=-1))
    unknown = VerdictLine.of(Verdict(history=damaged.history, valid="unknown", reason="its run.json is damaged"))
    write_lines(tmp_path / VERDICTS_FILE, [whole, unknown])
    (tmp_path / damaged.history / RUN_FILE).write_text("{")
    matrix = write_matrix(tmp_path)
    assert [cell.settings["acks"] for cell in matrix.cells] == [1]
    assert matrix.verdict.exit_code == Outcome.UNKNOWN.exit_code
    assert matrix.verdict.sentence.startswith(
        "Unknown: 1 of 1 cell could be judged, and in these no promise was broken (1 run left out)."
    )
    assert list(matrix.left_out) == [damaged.history]
    (sentence,) = read_matrix(tmp_path).left_out_sentences()
    assert sentence.startswith(f"The run {damaged.history} is left out: ")
    assert f"{tmp_path / damaged.history / RUN_FILE} cannot be read" in sentence


def test_a_foreign_history_has_no_judgement_and_is_in_no_cell(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text("{}")
    foreign = VerdictLine.of(Verdict(history="a.jsonl", valid=False, counts={"G1a": 1}))
    write_lines(tmp_path / VERDICTS_FILE, [foreign])
    assert foreign.outcome is Outcome.NOT_VALID
    assert msgspec.json.decode((tmp_path / VERDICTS_FILE).read_bytes())["judgement"] is None
    assert write_matrix(tmp_path).cells == []
