"""Prints a campaign's matrix on a terminal, and answers with its exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rich.markup import escape

from checkers import Cell, wedged_clients
from harness.campaigns.comparison import accepted_sentences, accepting_sentences, expected_sentences, offered_sentences
from harness.campaigns.report import application_sentences, legend_of, style_of, terminal_colour
from harness.cli.terminal import Terminal
from harness.ground.errors import AckproofError, ResultsError
from harness.plan import read_plan
from harness.records.campaign_record import CampaignRecord, read_campaign_record
from harness.records.files import PLAN_FILE
from harness.records.verdict_lines import read_lines, read_matrix

#: Silent cells for which the terminal says what they lack; matrix.md has all.
SILENT_MAX: Final = 6


def show_campaign(terminal: Terminal, directory: Path, report: Path) -> int:
    """Print the table, the verdict, and the report's path as the last line; the answer is the exit code."""
    matrix = read_matrix(directory)
    if terminal.as_json:
        terminal.json({"verdict": matrix.verdict, "directory": str(directory), "report": str(report)})
        return matrix.verdict.exit_code
    show_cells(terminal, matrix.cells)
    lines = read_lines(directory).lines.values()
    for client in wedged_clients(line.anomalies for line in lines):
        terminal.say(client.sentence())
    for sentence in application_sentences(lines):
        terminal.say(sentence)
    for sentence in matrix.left_out_sentences():
        terminal.say(sentence)
    offered = offered_sentences(directory, matrix.cells, _record(directory))
    accepting = accepting_sentences(str(directory), matrix.cells)
    for sentence in (*accepted_sentences(matrix.cells), *accepting, *offered):
        terminal.say(sentence)
    if unfinished := _unfinished(directory, matrix.cells):
        terminal.say(unfinished)
    for sentence in _as_expected(directory, matrix.cells):
        terminal.say(sentence)
    terminal.verdict(matrix.verdict.sentence)
    show_legend(terminal, matrix.cells)
    terminal.say(str(report))
    return matrix.verdict.exit_code


def _as_expected(directory: Path, cells: Sequence[Cell]) -> Iterator[str]:
    """Say whether the plan's expected outcome came, where all its runs are here."""
    with suppress(AckproofError):  # a plan of another version, or no plan
        plan = read_plan(directory / PLAN_FILE)
        if len(plan.runs()) == sum(cell.runs for cell in cells):
            yield from expected_sentences(plan.expected, cells)


def _record(directory: Path) -> CampaignRecord | None:
    with suppress(ResultsError):
        return read_campaign_record(directory)
    return None


def _unfinished(directory: Path, cells: Sequence[Cell]) -> str:
    """Say what a campaign lacks that was interrupted or killed, or still runs: its matrix has the runs that exist."""
    try:
        campaign = read_campaign_record(directory)
    except ResultsError as error:
        return f"It is not known whether this campaign is finished: {error}."
    if campaign is None:
        return ""
    planned, present = sum(world.planned for world in campaign.worlds.values()), sum(cell.runs for cell in cells)
    if present >= planned:
        return ""
    healing = f"; if it was killed, first run: ackproof heal {directory}" if campaign.status == "running" else ""
    rest = f"do the rest with: ackproof campaign {directory / PLAN_FILE} --out {directory} --continue"
    return f"This campaign is not finished: {present} of its {planned} runs are here{healing}; {rest}."


def show_cells(terminal: Terminal, cells: Sequence[Cell]) -> None:
    """Print a table for each world: a row for every choice of settings, a column for every family."""
    for world in dict.fromkeys(cell.world for cell in cells):
        here = [cell for cell in cells if cell.world == world]
        families = list(dict.fromkeys(cell.family for cell in here))
        rows: dict[str, dict[str, Cell]] = {}
        for cell in here:
            rows.setdefault(cell.cell.rpartition("/")[0], {})[cell.family] = cell
        shown = [(escape(label), *(_shown(row.get(family)) for family in families)) for label, row in rows.items()]
        terminal.table(list(map(escape, (world, *families))), shown)
        terminal.say("")
    show_silent(terminal, cells)


def show_legend(terminal: Terminal, cells: Sequence[Cell]) -> None:
    """Print a line for each word that the table has."""
    for style in legend_of(cells):
        terminal.say(f"{style.signed}: {style.meaning}")
    terminal.say("n/k: n of k runs lost acknowledged writes")


def show_silent(terminal: Terminal, cells: Sequence[Cell]) -> None:
    """Print a sentence for each cell whose silence proves nothing: what it lacks."""
    silent = [cell for cell in cells if cell.outcome.proves_nothing]
    for cell in silent[:SILENT_MAX]:
        terminal.say(f"{cell.cell} ({cell.world}) {cell.outcome}: {cell.note}.")
    if len(silent) > SILENT_MAX:
        terminal.say(f"... and {len(silent) - SILENT_MAX} more cells that lack evidence.")


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"[{terminal_colour(cell)}]{style_of(cell).signed} {cell.runs_lost}/{cell.runs}[/]"
