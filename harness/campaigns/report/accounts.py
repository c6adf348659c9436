"""The account of a finding, from the files of its run; one for each cell with a witness, the most interesting first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from checkers import (
    ANOMALIES,
    Cell,
    Finding,
    LostWrite,
    Outcome,
    TornTransaction,
    Unseen,
    Verdict,
    Witness,
    WriteView,
    latest_receipts,
)
from harness.campaigns.comparison import accept_commands
from harness.campaigns.report.finding_chart import FindingChart, finding_chart
from harness.campaigns.report.loading import CampaignFiles
from harness.campaigns.report.loss_chart import loss_chart
from harness.campaigns.report.narrative import named_faults, narrate, places, remains, unlike_title
from harness.campaigns.report.over_time import over_time_chart
from harness.campaigns.report.seen import PlainFields, plain_fields
from harness.campaigns.report.shared_epoch import shared_epoch
from harness.campaigns.report.timeline import LOSSES, Subject, Timeline, read_timeline
from harness.ground.errors import ResultsError
from harness.ground.machine.this_call import command
from harness.plan import Simulated
from harness.records.explanation_file import Explanation, read_explanation
from harness.records.files import PLAN_FILE, STORY_FILE
from nemesis.receipts import Receipt
from workloads import IDEMPOTENCE, spelled
from workloads.history import HistoryError

#: Their charts are left out once they add up to this, so that the page of the default campaign stays below 600 kB,
#: which mail and review tools take. Sentences and commands are never left out.
CHART_BYTES_MAX: Final = 45_000
_ACCEPTED_MAX: Final = 12


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One cell's account as the page shows it.

    ``title`` says what was found, ``why`` why it must not be or may, ``is_loss`` is true of writes that are gone.
    ``chart`` is a drawing as SVG, empty where there is nothing to draw or no room, and ``has_offsets`` says that it has
    its lower panel; ``chart_words`` explain it where it is another one than that of a write; ``over_time`` is that of
    the whole run; ``explanation`` is what ``ackproof explain`` left;
    ``command`` reruns the run; each line of ``accept`` accepts a finding that is red in the cell, "" where nothing is;
    ``finding`` are the plain ones of the checker's fields.
    """

    cell: Cell
    title: str
    why: str
    is_loss: bool
    sentences: list[str]
    chart: Markup
    has_offsets: bool
    chart_words: str
    over_time: Markup
    explanation: Explanation | None
    command: str
    accept: str
    finding: PlainFields
    anomaly: str
    run: str


def accounts_of(files: CampaignFiles) -> list[Account]:
    """The accounts that the campaign's witnesses show, charts as long as there is room."""
    room = CHART_BYTES_MAX
    accounts: list[Account] = []
    cells = {(cell.world, cell.cell): cell for cell in files.matrix.cells}
    for shown in files.witnesses:
        cell = cells.get((shown.world, shown.cell))
        if cell is None or (witness := cell.witness) is None:
            continue  # the matrix was made again since
        account = _account(files, cell, witness)
        if len(account.chart) > room:
            sentence = "The report has no room for this chart; the replay command below shows the run."
            account = msgspec.structs.replace(account, chart=Markup(""), sentences=[*account.sentences, sentence])
        room -= len(account.chart)
        if len(account.over_time) > room:
            account = msgspec.structs.replace(account, over_time=Markup(""))
        room -= len(account.over_time)
        accounts.append(account)
    return accounts


def rerun_command(directory: Path, cell: Cell, witness: Witness) -> str:
    """Give the command that shows it again: exact in the simulated world, elsewhere by the plan's seed."""
    if cell.world == Simulated.name:
        return command("replay", str(directory / witness.run))
    settings = ",".join(f"{name}={spelled(value)}" for name, value in cell.label.items())
    chosen = ["--settings", settings] if settings else []
    where = ["--family", cell.family, "--world", cell.world, "--seed", str(witness.seed)]
    return command("run", str(directory / PLAN_FILE), *chosen, *where)


def _account(files: CampaignFiles, cell: Cell, witness: Witness) -> Account:
    run = files.directory / witness.run
    line = files.lines.get(witness.run) or Verdict(history=witness.run, valid="unknown")
    anomaly = ANOMALIES.get(witness.anomaly)
    idempotent = cell.settings[IDEMPOTENCE] is True
    finding = witness.shown
    timeline, sentences = narration_of(run, witness.anomaly, finding, line, idempotent=idempotent)
    receipts, own = latest_receipts(line.faults), FindingChart()
    effective = [receipt for receipt in receipts if receipt.took_effect]
    with contextlib.suppress(HistoryError):  # the sentences say so
        own = finding_chart(run, finding, effective)
    return Account(
        cell=cell,
        title=unlike_title(finding) or (anomaly and anomaly.title) or f"What is contradictory: {witness.anomaly}",
        why=(anomaly and cell.outcome is Outcome.BROKEN_PROMISE and anomaly.rule) or cell.promise,
        is_loss=witness.anomaly in LOSSES,
        sentences=[*_script(files.directory, witness.run, receipts), *sentences],
        chart=own.drawing or (loss_chart(timeline) if timeline else Markup("")),
        chart_words=own.words if own.drawing else "",
        has_offsets=timeline is not None and timeline.write.offset is not None,
        explanation=_explanation(run),
        over_time=over_time_chart(line.over_time, effective),
        command=rerun_command(files.directory, cell, witness),
        accept="\n".join(accept_commands(str(files.directory), cell)[:_ACCEPTED_MAX]),
        finding=plain_fields(finding),
        anomaly=witness.anomaly,
        run=witness.run,
    )


def _explanation(run: Path) -> Explanation | None:
    """Read what ``ackproof explain`` left there, if it took the run back at all; a damaged file counts as none."""
    with contextlib.suppress(ResultsError):
        explanation = read_explanation(run)
        return explanation if explanation and explanation.steps else None
    return None


def _script(directory: Path, run: str, receipts: Sequence[Receipt]) -> list[str]:
    """The name of the scripted story that a run performed, and where its steps are."""
    if not receipts or not (directory / run / STORY_FILE).is_file():
        return []
    return [f"Script {receipts[0].family}, {receipts[0].story}: step by step in {run}/{STORY_FILE}."]


class Narration(NamedTuple):
    """The sentences of a finding, and the timeline that they come from; None where there is no single write."""

    timeline: Timeline | None
    sentences: list[str]


def narration_of(run: Path, anomaly: str, finding: Finding, line: Verdict, *, idempotent: bool) -> Narration:
    """The narration of ``finding`` of the run in ``run``, whose verdict is ``line``.

    ``idempotent`` says that its producers were.
    """
    receipts, told = latest_receipts(line.faults), [finding, *_torn(finding, line)]
    ends: list[str] = []
    try:
        timeline, trouble = _timeline(run, anomaly, finding, line, receipts)
        ends = [words for each in told if (words := shared_epoch(run, each))]
    except HistoryError as error:
        timeline, trouble = None, [f"The history of this run cannot be read any more: {error}."]
    effective = [receipt for receipt in receipts if receipt.took_effect]
    own = [words for each in told if (words := each.words())]
    left = [*places(finding, idempotent=idempotent), *remains(finding)]
    around = [*narrate(timeline), *left] if timeline else [*trouble, *left, *named_faults(effective)]
    return Narration(timeline, [*own, *ends, *around])


def _torn(finding: Finding, line: Verdict) -> list[Finding]:
    """The transaction that a lost write has torn, if any: the loss is what the account is about."""
    if not isinstance(finding, LostWrite):
        return []
    return [
        torn for torn in line.findings(TornTransaction) if torn.key == finding.key and torn.value in finding.written
    ]


def _timeline(
    run: Path, anomaly: str, finding: Finding, line: Verdict, receipts: Sequence[Receipt]
) -> tuple[Timeline | None, list[str]]:
    """The timeline of the write that the finding names first, or the reason why it is missing."""
    partition, view, is_told = finding.key, finding.view(), bool(finding.words())
    values = _values(view.values if isinstance(view, WriteView) else finding.written)
    if not isinstance(partition, str) or not values:
        return None, [] if is_told else ["The finding names no single write."]
    others = [*line.findings(LostWrite), *line.findings(Unseen)]
    lost = frozenset(value for other in others if other.key == partition for value in _values(other.written))
    subject = Subject(anomaly, partition, values, view.offsets if isinstance(view, WriteView) else ())
    timeline = read_timeline(run, subject, receipts, lost)
    return timeline, [] if timeline or is_told else ["The history holds no acknowledgement of this value."]


def _values(written: Iterable[object]) -> list[int]:
    """The values of writes of our own: those of other tools are any JSON."""
    return [value for value in written if isinstance(value, int)]
