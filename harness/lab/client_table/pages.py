"""The table of clients as Markdown, and as one HTML page in the style of the report that needs no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from checkers import counted
from harness.campaigns.report import page_style
from harness.ground.templates import templates_of
from harness.records.client_table_file import CellOutcome, ClientTable

#: The mark of a cell on the pages.
MARKS: Final = {
    CellOutcome.KEPT: "kept",
    CellOutcome.PERMITTED: "permitted",
    CellOutcome.BROKEN: "**broken**",
    CellOutcome.NOT_SUPPORTED: "–",
    CellOutcome.NOT_MET: "not met",
}


def headline(table: ClientTable) -> str:
    """The answer in one sentence."""
    counts = Counter(each.outcome for each in table.results)
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in CellOutcome if counts[outcome])
    size = f"{counted(len(table.clients), 'client')} in {counted(len(table.cells), 'situation')}"
    return f"{size}: {told or 'nothing was played'}"


def as_page(table: ClientTable) -> str:
    """The page. Everything in it is escaped."""
    template = templates_of("harness.lab.client_table").get_template("clients.html.j2")
    return template.render(table=table, headline=headline(table), code=table.exit_code, style=page_style())


def as_markdown(table: ClientTable) -> str:
    """The same in Markdown, without histories."""
    return "\n".join(_markdown(table)) + "\n"


def _markdown(table: ClientTable) -> Iterator[str]:
    names = table.played
    yield from ("# Client libraries", "", f"{headline(table)}. By ackproof {table.by}.", "")
    yield f"| situation | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    for cell in table.cells:
        marks = (MARKS[result.outcome] if (result := table.of(name, cell.name)) else "" for name in names)
        yield f"| {cell.name} | {' | '.join(marks)} |"
    yield ""
    for client in table.clients:
        if client.failed:
            yield f"{client.name} failed: {client.failed}"
    for cell in table.cells:
        finding = f" Finding {cell.finding}." if cell.finding else ""
        yield from (f"## {cell.name}", "", f"{cell.happens}. {cell.expects}.{finding}", "")
        for name in names:
            result = table.of(name, cell.name)
            if result is None or result.outcome is CellOutcome.KEPT:
                continue
            told = "; ".join(sentence for _, sentence in result.breaches)
            words = ". ".join(filter(None, (result.why, told)))
            yield f"* {name}: {result.outcome}: {words}"
        yield ""
