"""The stage of witnesses: files of its own, nothing done twice; on the campaign that the tests of the report make."""

from pathlib import Path

import msgspec
import pytest

from checkers.verdicts.cells import Cell
from harness.campaigns.campaign import witnesses as stage
from harness.campaigns.campaign.witnesses import choose_witnesses, trace_runs, witness
from harness.campaigns.report import write
from harness.ground.errors import ResultsError
from harness.ground.progress import Progress
from harness.records.files import CLUSTER_FILE, WITNESSES_FILE
from harness.records.verdict_lines import write_matrix
from harness.records.witness_file import Witnessed, read_witnesses
from tests.harness.campaigns.report.conftest import MakeRun
from workloads.settings import ACKS_ALL, Settings

Campaign = tuple[Path, MakeRun]
A1, SAFE = Settings(acks=1), Settings(acks=ACKS_ALL, min_insync_replicas=2)


def test_witnesses_are_the_runs_whose_stories_are_told(campaign: Campaign) -> None:
    directory, make = campaign
    verdict = make(A1, lost=1)
    make(SAFE)
    write_matrix(directory)
    (chosen,) = choose_witnesses(directory)
    assert chosen == Witnessed(world="simulated", cell="acks=1,isr=1/kill", run=verdict.history, anomaly="lost-write")
    assert read_witnesses(directory) == [chosen]


def test_the_strongest_settings_stories_are_told_first(campaign: Campaign) -> None:
    directory, make = campaign
    for acks in (0, 1, ACKS_ALL):
        make(Settings(acks=acks), lost=2, history=True)
    make(Settings(acks=1, min_insync_replicas=2), lost=2, history=True)
    write_matrix(directory)
    cells = [chosen.cell for chosen in choose_witnesses(directory)]
    assert [cell.partition(",")[0] for cell in cells] == ["acks=-1", "acks=1", "acks=1", "acks=0"]


def test_the_stage_can_be_repeated_alone_and_traces_only_what_has_no_trace(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, make = campaign
    make(A1, lost=1, history=True)
    write_matrix(directory)
    traced = []

    def keeps(run, scratch):
        traced.append(run)
        (run / CLUSTER_FILE).touch()

    # The run was made by hand, so it cannot be done again.
    monkeypatch.setattr("harness.campaigns.campaign.replaying._done_again", lambda run, scratch: True)
    monkeypatch.setattr("harness.campaigns.campaign.replaying._keep_trace", keeps)
    witness(directory, Progress())
    first = (directory / WITNESSES_FILE).read_bytes()
    witness(directory, Progress())
    assert traced == [directory / read_witnesses(directory)[0].run]
    assert (directory / WITNESSES_FILE).read_bytes() == first


def test_a_run_that_cannot_be_traced_is_said_and_no_more(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, make = campaign
    runs = [directory / make(A1, lost=1, seed=seed).history for seed in (7, 8)]
    message, tried = [], []

    def fails(run):
        tried.append(run)
        raise ResultsError("it came out otherwise")

    monkeypatch.setattr(stage, "trace_missing", fails)
    monkeypatch.setattr(Progress, "say", lambda _, text: message.append(text))
    trace_runs(runs, Progress())
    assert tried == runs
    assert message == [f"{run}: what its brokers did is not known: it came out otherwise" for run in runs]


def test_a_report_without_witnesses_says_how_to_make_them(campaign: Campaign) -> None:
    directory, make = campaign
    make(A1, lost=1)
    write_matrix(directory)
    with pytest.raises(ResultsError, match=r"holds no witnesses\.json; make it with: ackproof report"):
        write(directory)
    (directory / WITNESSES_FILE).write_text("{")
    with pytest.raises(ResultsError, match=r"witnesses\.json cannot be read"):
        write(directory)


def test_a_witness_whose_cell_is_gone_is_passed_over(campaign: Campaign) -> None:
    directory, make = campaign
    make(A1, lost=1, history=True)
    cells: list[Cell] = write_matrix(directory).cells
    gone = Witnessed(world="kafka", cell=cells[0].cell, run="runs/kafka/gone/1", anomaly="lost-write")
    (directory / WITNESSES_FILE).write_bytes(msgspec.json.encode([gone]))
    assert "runs/kafka/gone" not in write(directory).read_text()
