"""The matrix on a terminal: it tells apart what was promised and what only did not happen, as its verdict does."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from checkers import RunFacts, Verdict, VerdictLine, build_matrix
from checkers.verdicts.matrix import summarise
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import as_junit, as_markdown, cases_of, write
from harness.cli.matrix_table import show_campaign, show_cells
from harness.cli.terminal import VERDICT_WIDTH, Terminal
from harness.ground.machine.versions import MachineSize
from harness.records.campaign_record import CampaignRecord, WorldRuns
from harness.records.files import CAMPAIGN_FILE
from harness.records.verdict_lines import write_matrix
from workloads.settings import Settings


def test_silence_without_a_promise_has_a_sign_of_its_own(
    campaign: tuple[Path, Callable[..., Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, make = campaign
    make(Settings(acks=-1, min_insync_replicas=2))
    make(Settings(acks=1, min_insync_replicas=2))
    show_cells(Terminal(out=Console(width=200, soft_wrap=True)), write_matrix(directory).cells)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["simulated kill", "acks=-1,isr=2 ✓ held 0/1", "acks=1,isr=2 ○ held 0/1"]


def test_the_legend_follows_the_verdict_and_has_only_words_that_occur(
    campaign: tuple[Path, Callable[..., Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, make = campaign
    make(Settings(acks=1, min_insync_replicas=2))
    verdict = write_matrix(directory).verdict.sentence
    choose_witnesses(directory)
    show_campaign(Terminal(out=Console(width=500, soft_wrap=True)), directory, write(directory))
    printed = capsys.readouterr().out
    before, folded, after = printed.partition("\n".join(textwrap.wrap(verdict, VERDICT_WIDTH)))
    assert before
    assert folded.count("\n") >= 1
    assert after.splitlines()[1:] == [
        "○ held: none lost, though these settings permit it: not a promise",
        "n/k: n of k runs lost acknowledged writes",
        str(directory / "report.html"),
    ]


def test_why_a_run_could_not_be_judged_stands_wherever_its_cell_stands(capsys: pytest.CaptureFixture[str]) -> None:
    facts = RunFacts(cell="c/kill", family="kill", world="processes", seed=1, settings=Settings().to_mapping())
    unread = Verdict(history="h", valid="unknown", reason="the final readers did not reach the end of ackproof-0")
    matrix = build_matrix([VerdictLine.of(unread, facts)])
    show_cells(Terminal(out=Console(width=200, soft_wrap=True)), matrix.cells)
    shown = (
        capsys.readouterr().out,
        as_markdown(summarise(matrix.cells), matrix.cells),
        as_junit(cases_of(matrix.cells)).decode(),
    )
    assert [str(unread.reason) in words for words in shown] == [True, True, True]


@pytest.mark.parametrize(
    ("status", "end"),
    [("running", "; if it was killed, first run: ackproof heal {directory}"), ("interrupted", "")],
)
def test_a_campaign_that_may_have_been_killed_names_what_ends_its_remains(
    campaign: tuple[Path, Callable[..., Verdict]], capsys: pytest.CaptureFixture[str], status: str, end: str
) -> None:
    directory, make = campaign
    make(Settings(acks=1))
    record = CampaignRecord(
        name="synthetic",
        seed=1,
        status=status,
        began="2026-11-21T16:00:00+00:00",
        command="ackproof campaign p.toml",
        machine=MachineSize(processor="p", cores=2, memory_bytes=1, system="s"),
        versions={},
        worlds={"simulated": WorldRuns(planned=4)},
    )
    (directory / CAMPAIGN_FILE).write_bytes(msgspec.json.encode(record))
    write_matrix(directory)
    choose_witnesses(directory)
    show_campaign(Terminal(out=Console(width=500, soft_wrap=True)), directory, write(directory))
    rest = f"; do the rest with: ackproof campaign {directory}/plan.toml --out {directory} --continue."
    wanted = "This campaign is not finished: 1 of its 4 runs are here" + end.format(directory=directory) + rest
    assert wanted in capsys.readouterr().out.splitlines()
