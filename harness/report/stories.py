"""One story for each losing cell, the most interesting first and within bounds; and the command that reruns it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from checkers.verdicts.cells import Cell
from checkers.verdicts.matrix import STRONGEST_FIRST, setting_value
from checkers.verdicts.receipts import read_receipts
from checkers.verdicts.verdict import Verdict
from harness.records.run_record import PLAN_FILE
from harness.report.loading import CampaignFiles
from harness.report.loss_chart import WITH_OFFSETS, chart_data
from harness.report.names import fault_name, moment
from harness.report.narrative import differing, narrate, remains
from harness.report.timeline import Timeline, read_timeline
from workloads.history import HistoryError

#: Losing cells that have a story at all: twelve settings, three families and two worlds are 72 cells, and then some.
STORIES_MAX: Final = 100
#: Charts are left out once they add up to this: with the chart library (0.9 MB) and the tables the page stays below
#: 2 MB, which mail and review tools still take. Sentences and commands are never left out.
CHART_BYTES_MAX: Final = 800_000


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """One losing cell's story as the page shows it.

    ``chart`` is a ``ChartData`` as JSON, None where there is nothing to draw or no room, and ``has_offsets`` tells
    whether it has its lower panel; ``command`` reruns the run; ``finding`` are the plain ones of the checker's fields.
    """

    cell: Cell
    sentences: list[str]
    chart: str | None
    has_offsets: bool
    command: str
    finding: dict[str, Any]
    anomaly: str
    run: str


def cells_with_story(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that have a witness, at most STORIES_MAX: broken promises first, then those whose acks promise most.

    What acks=0 loses needs no story to be believed, and would hide the others.
    """
    witnessed = [cell for cell in cells if cell.witness is not None]
    return sorted(witnessed, key=_interest)[:STORIES_MAX]


def _interest(cell: Cell) -> tuple[bool, int]:
    """Small for what a reader wants to see first."""
    return cell.outcome != "broken promise", STRONGEST_FIRST.index(setting_value(cell.settings["acks"]))


def stories_of(files: CampaignFiles, cells: Sequence[Cell]) -> list[Story]:
    """The stories of the losing cells, charts as long as there is room."""
    room = CHART_BYTES_MAX
    stories: list[Story] = []
    for cell in cells_with_story(cells):
        story = _story(files, cell)
        if story.chart is not None and len(story.chart) > room:
            sentence = "The report has no room for this chart; the replay command below shows the run."
            story = msgspec.structs.replace(story, chart=None, sentences=[*story.sentences, sentence])
        room -= len(story.chart or "")
        stories.append(story)
    return stories


def rerun_command(directory: Path, cell: Cell, run: str, seed: int) -> str:
    """What to type to see it again: exact for the simulated world; elsewhere the seed repeats the plan, not the run."""
    if cell.world == "simulated":
        return shlex.join(["ackproof", "replay", str(directory / run)])
    settings = ",".join(f"{name}={setting_value(value)}" for name, value in cell.label.items())
    chosen = ["--settings", settings] if settings else []
    where = ["--family", cell.family, "--world", cell.world, "--seed", str(seed)]
    return shlex.join(["ackproof", "run", str(directory / PLAN_FILE), *chosen, *where])


def _story(files: CampaignFiles, cell: Cell) -> Story:
    witness = cell.witness
    if witness is None:
        raise ValueError(f"the cell {cell.cell} has no witness")
    verdict = files.verdict(witness.run) or Verdict(history=witness.run, valid="unknown")
    timeline, trouble = _timeline(files, witness.run, witness.finding, verdict)
    data = chart_data(timeline) if timeline else None
    return Story(
        cell=cell,
        sentences=[
            *differing(witness.finding),
            *(narrate(timeline) if timeline else _without_timeline(verdict, trouble)),
            *remains(witness.finding),
        ],
        chart=msgspec.json.encode(data).decode() if data else None,
        has_offsets=data is not None and data.template == WITH_OFFSETS,
        command=rerun_command(files.directory, cell, witness.run, witness.seed),
        finding={
            name: value
            for name, value in witness.finding.items()
            if value is not None and not isinstance(value, (dict, list))
        },
        anomaly=witness.anomaly,
        run=witness.run,
    )


def _timeline(files: CampaignFiles, run: str, finding: dict[str, Any], verdict: Verdict) -> tuple[Timeline | None, str]:
    partition, value = finding.get("key"), _value(finding)
    if not isinstance(partition, str) or value is None:
        return None, "" if "replicas" in finding else "The finding names no single write."
    try:
        receipts = read_receipts(verdict.faults)
        timeline = read_timeline(files.directory / run, partition, value, receipts, _lost(verdict, partition))
    except HistoryError as error:
        return None, f"The history of this run cannot be read any more: {error}."
    return timeline, "" if timeline else "The history holds no acknowledgement of this value."


def _value(finding: dict[str, Any]) -> int | None:
    return next(iter(_values(finding)), None)


def _values(finding: dict[str, Any]) -> list[int]:
    """The written values that a finding of any kind names."""
    several = [finding.get("value"), *(finding.get("values") or ()), *(finding.get("messages") or ())]
    return [value for value in several if isinstance(value, int)]


def _lost(verdict: Verdict, partition: str) -> frozenset[int]:
    found = [*verdict.anomalies.get("lost-write", []), *verdict.anomalies.get("unseen", [])]
    return frozenset(value for finding in found if finding.get("key") == partition for value in _values(finding))


def _without_timeline(verdict: Verdict, trouble: str) -> list[str]:
    faults = [
        f"Fault: {fault_name(receipt)} at {moment(receipt.begun_us)}."
        for receipt in read_receipts(verdict.faults)
        if receipt.took_effect
    ]
    return [*([trouble] if trouble else []), *faults]
