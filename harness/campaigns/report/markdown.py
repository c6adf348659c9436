"""The matrix as a table in Markdown, for a terminal, a pull request or the summary of a CI job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from checkers import Cell, Outcome, Summary, WorldsCompared, compare, counted, percent, settings_words
from harness.campaigns.report.accounts import Account
from harness.campaigns.report.grid import (
    bound_words,
    columns_of,
    exercised_faults,
    grid_of,
    minimum_words,
    situations_met,
)
from harness.campaigns.report.junit import Case
from harness.campaigns.report.outcomes import BOUND_MEANING, STYLES, legend_of, style_of
from harness.campaigns.report.setups import left_to_clients
from workloads import spelled

#: Outcomes that a person must look at.
_DEFECTS: Final = {Outcome.BROKEN_PROMISE, Outcome.STALLED}
#: Accounts in the table's file; a comment on a pull request has room for 65,536 characters.
_ACCOUNTS_MAX: Final = 10
#: Families of all worlds beside each other; a comment cuts or squeezes what is wider.
_ACROSS_MAX: Final = 8
#: Characters that would be markup, a link, a picture from elsewhere, or the end of a table's cell.
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", "|": "\\|", "[": "\\[", "`": "\\`", "\n": " ", "\r": " "})


def as_markdown(summary: Summary, cells: Sequence[Cell], accounts: Sequence[Account] = ()) -> str:
    """The verdict, one row for each choice of settings, what the cells mean, accounts of what must not be, and where
    worlds differ.
    """
    return "\n".join(
        [
            f"**{_text(summary.sentence)}**",
            "",
            *_matrix(cells),
            "",
            _legend(cells),
            *(line for sentence in left_to_clients(cells) for line in ("", _text(sentence))),
            *_minimum(cells),
            *_defects([account for account in accounts if account.cell.outcome in _DEFECTS]),
            *_lacking(cells),
            *_coverage(cells),
            *_differences(compare(cells)),
            "",
        ]
    )


def _matrix(cells: Sequence[Cell]) -> list[str]:
    """A row for each choice of settings; where that would be too wide, for each of its families, with worlds across."""
    columns = columns_of(cells)
    names = list(cells[0].label) if cells else []
    places = [(world, family) for world, families in columns for family in families]
    grid = [
        ([*map(spelled, label.values())] if names else ["settings not known"], dict(zip(places, row, strict=True)))
        for label, row in grid_of(cells, columns)
    ]
    if len(places) <= _ACROSS_MAX:
        heads = [f"{world}: {family}" if len(columns) > 1 else family for world, family in places]
        rows = [[*label, *(_cell(row[column]) for column in places)] for label, row in grid]
    else:
        heads = ["faults", *(world for world, _ in columns)]
        down = dict.fromkeys(family for _, family in places)
        rows = [
            [*label, family, *(_cell(row.get((world, family))) for world, _ in columns)]
            for label, row in grid
            for family in down
        ]
    return _table([*(names or ["settings"]), *heads], rows)


def cases_as_markdown(cases: Sequence[Case]) -> str:
    """A row for each case of JUnit's, for histories that belong to no campaign; the worst first."""
    worst = sorted(cases, key=lambda case: case.outcome.badness)
    counts = Counter(case.outcome for case in worst)
    head = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    rows = [[case.outcome, case.name, case.line] for case in worst]
    return "\n".join([f"**{head}**", "", *_table(["outcome", "what", ""], rows), ""])


def _legend(cells: Sequence[Cell]) -> str:
    """A line with each sign of the table, and the meaning of its bounds."""
    styles = legend_of(cells)
    meanings = [f"{style.signed}: {style.meaning}" for style in styles]
    return ". ".join([*meanings, *([BOUND_MEANING] if STYLES[Outcome.HELD] in styles else []), ""]).rstrip()


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    faults = exercised_faults(cell)
    words = {
        "broken promise": ", ".join(f"{count:,} {name}" for name, count in cell.broken.items()),
        "permitted loss": f"{cell.lost:,} of {cell.loss.total:,} ({percent(cell.loss.rate)})",
        "held": f"0 in {counted(faults, 'fault')}" + ("" if cell.loss_permitted else f" ({bound_words(cell)})"),
    }
    wedged = ", clients wedged" if "wedged-client" in cell.permitted else ""
    return f"{style_of(cell).sign} {words.get(cell.outcome, cell.outcome)}{wedged}"


def _minimum(cells: Sequence[Cell]) -> list[str]:
    """Say where a plan asks for another amount of evidence than is usual."""
    return ["", f"Note: {_text(minimum)}."] if (minimum := minimum_words(cells)) else []


def _defects(accounts: Sequence[Account]) -> Iterator[str]:
    """List what must not be, folded as pages of jobs and pull requests know it, and the command that shows it again."""
    for account in accounts[:_ACCOUNTS_MAX]:
        cell = account.cell
        head = f"{style_of(cell).sign} {settings_words(cell.label)} under {cell.family}, {cell.world}: {account.title}"
        yield from ("", f"<details><summary>{_text(head)}</summary>", "")
        yield from (f"1. {_text(sentence)}" for sentence in account.sentences)
        yield from (
            "",
            f"Why: {_text(account.why)}",
            "",
            f"    {' '.join(account.command.splitlines())}",
            "",
            *(line for words in account.accept.splitlines() for line in (f"Accept what the cell shows: `{words}`", "")),
            "</details>",
        )
    if len(accounts) > _ACCOUNTS_MAX:
        yield from ("", f"... and {len(accounts) - _ACCOUNTS_MAX} more in the report.")


def _lacking(cells: Sequence[Cell]) -> list[str]:
    """List what silent cells lack to be evidence."""
    silent = [cell for cell in cells if cell.outcome.proves_nothing]
    rows = [[settings_words(cell.label), cell.family, cell.world, cell.outcome, cell.note] for cell in silent]
    return ["", *_table(["settings", "faults", "world", "outcome", "what is missing"], rows)] if rows else []


def _coverage(cells: Sequence[Cell]) -> list[str]:
    """The risky situations that cells met."""
    met = situations_met(cells)
    rows = [
        [settings_words(cell.label), cell.family, cell.world, *map(_count, map(cell.coverage.get, met))]
        for cell in cells
    ]
    names = [name.replace("_", " ") for name in met]
    what = "; ".join(f"*{name.replace('_', ' ')}*: {words}" for name, words in met.items())
    head = ["", f"Risky situations that the runs met (? where no history shows it): {what}.", ""]
    return [*head, *_table(["settings", "faults", "world", *names], rows)] if met else []


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _differences(comparison: WorldsCompared) -> list[str]:
    if not comparison.compared:
        return []
    same = comparison.compared - len(comparison.differences)
    head = f"{same} of {comparison.compared} cells that ran in several worlds have the same outcome in each."
    if not comparison.differences:
        return ["", head]
    rows = [
        [
            difference.settings,
            difference.family,
            "; ".join(f"{world}: {outcome}" for world, outcome in difference.outcomes.items()),
            difference.why,
        ]
        for difference in comparison.differences
    ]
    return ["", f"{head} The others:", "", *_table(["settings", "faults", "outcomes", "why"], rows)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_text, cells)) + " |"


def _text(words: str) -> str:
    """Names come from files: none may end a cell or begin a tag."""
    return words.translate(_ESCAPES)
