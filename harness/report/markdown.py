"""The matrix as a table in Markdown, for a terminal, a pull request or the summary of a CI job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers import SITUATIONS, Cell, Comparison, Outcome, Summary, compare, setting_value, settings_words
from harness.report.grid import columns_of, exercised_faults, grid_of, percent
from harness.report.outcomes import look_of
from harness.report.setups import left_to_clients

_LEGEND: Final = (
    "✓ none lost, as promised, in so many faults that met writes (at most this share of such faults loses some, at "
    "95 %); ○ none seen, but loss is permitted; ▼ lost as permitted, of so many acknowledged; ✖ broken promise; "
    "■ stalled after healing; – not exercised; ? unknown."
)


def as_markdown(summary: Summary, cells: Sequence[Cell]) -> str:
    """The verdict, one row for each choice of settings, what the cells mean, and where worlds differ."""
    columns = columns_of(cells)
    names = list(cells[0].label) if cells else []
    places = [
        f"{world}: {family}" if len(columns) > 1 else family for world, families in columns for family in families
    ]
    rows = [
        [*map(setting_value, label.values()), *map(_cell, row)] if names else ["the only settings", *map(_cell, row)]
        for label, row in grid_of(cells, columns)
    ]
    return "\n".join(
        [
            f"**{_text(summary.sentence)}**",
            "",
            *_table([*(names or ["settings"]), *places], rows),
            "",
            _LEGEND,
            *(line for sentence in left_to_clients(cells) for line in ("", _text(sentence))),
            *_lacking(cells),
            *_coverage(cells),
            *_differences(compare(cells)),
            "",
        ]
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    faults = exercised_faults(cell)
    words = {
        "broken promise": ", ".join(f"{count:,} {name}" for name, count in cell.broken.items()),
        "permitted loss": f"{cell.lost:,} of {cell.loss.total:,} ({percent(cell.loss.rate)})",
        "held": f"0 in {faults:,} fault{'' if faults == 1 else 's'}"
        + ("" if cell.loss_permitted else f" (≤ {percent(cell.bound)})"),
    }
    return f"{look_of(cell).sign} {words.get(cell.outcome, cell.outcome)}"


def _lacking(cells: Sequence[Cell]) -> list[str]:
    """What silent cells lack to be evidence."""
    silent = [cell for cell in cells if cell.outcome in {Outcome.NOT_EXERCISED, Outcome.UNKNOWN}]
    rows = [[settings_words(cell.label), cell.family, cell.world, cell.outcome, cell.note] for cell in silent]
    return ["", *_table(["settings", "faults", "world", "outcome", "what is missing"], rows)] if rows else []


def _coverage(cells: Sequence[Cell]) -> list[str]:
    """The risky situations that cells met."""
    rows = [
        [settings_words(cell.label), cell.family, cell.world, *map(_count, map(cell.coverage.get, SITUATIONS))]
        for cell in cells
    ]
    names = [name.replace("_", " ") for name in SITUATIONS]
    what = "; ".join(f"*{name.replace('_', ' ')}*: {words}" for name, words in SITUATIONS.items())
    head = ["", f"Risky situations that the runs met (? where no history shows it): {what}.", ""]
    return [*head, *_table(["settings", "faults", "world", *names], rows)] if rows else []


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _differences(comparison: Comparison) -> list[str]:
    if not comparison.compared:
        return []
    same = comparison.compared - len(comparison.differences)
    head = f"{same} of {comparison.compared} cells that ran in several worlds have the same outcome in each."
    if not comparison.differences:
        return ["", head]
    rows = [
        [one.settings, one.family, "; ".join(f"{world}: {outcome}" for world, outcome in one.outcomes.items()), one.why]
        for one in comparison.differences
    ]
    return ["", f"{head} The others:", "", *_table(["settings", "faults", "outcomes", "why"], rows)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_text, cells)) + " |"


def _text(words: str) -> str:
    """Names come from files: none may end a cell or begin a tag."""
    return words.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
