"""Acceptances in words: findings that are accepted, and those that were and fail again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from checkers import AcceptanceStatus, AcceptedFinding, Cell, counted
from harness.ground.machine.this_call import command

#: Findings that are listed, and those that a line accepts: behind it the command says what is left.
LISTED_MAX: Final = 12

_HEADS: Final = {
    AcceptanceStatus.GROWN: "accepted elsewhere, and now in",
    AcceptanceStatus.MORE_OFTEN: "accepted, and more often than chance explains in",
    AcceptanceStatus.BACK: "was accepted and gone, and is back in",
    AcceptanceStatus.EXPIRED: "accepted no longer in",
    AcceptanceStatus.ACCEPTED: "accepted in",
}


def accept_commands(directory: str, cell: Cell) -> list[str]:
    """A command for each finding that is red in ``cell``: it accepts it, as a campaign in ``directory`` showed it."""
    red = dict.fromkeys(identity for _, identity in cell.red())
    return [command("accept", directory, identity) for identity in red]


def each_accept_command(directory: str, cells: Iterable[Cell]) -> Iterator[tuple[Cell, list[str]]]:
    """The cells that are red, and of their commands those that stand at no cell before."""
    told: set[str] = set()
    for cell in cells:
        if commands := [words for words in accept_commands(directory, cell) if words not in told]:
            told.update(commands)
            yield cell, commands


def accepting_sentences(directory: str, cells: Iterable[Cell]) -> Iterator[str]:
    """Lines for cells that are red: the commands that accept what is red there, each once."""
    for cell, commands in islice(each_accept_command(directory, cells), LISTED_MAX):
        yield f"To accept what {cell.key} shows until a day:"
        yield from (f"  {words}" for words in commands[:LISTED_MAX])


def accepted_sentences(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each finding that ``accepted.toml`` names, failing ones first, and how many of them are accepted.

    A finding that shows as several anomalies has one line.
    """
    all_cells = list(cells)
    order = list(_HEADS)
    each = [(finding, cell) for cell in all_cells for finding in cell.accepted]
    first: dict[tuple[str, str], tuple[AcceptedFinding, Cell]] = {}
    for finding, cell in sorted(each, key=lambda both: order.index(AcceptanceStatus(both[0].status))):
        first.setdefault((cell.key, finding.identity), (finding, cell))
    named = list(first.values())
    yield from (_line(finding, cell) for finding, cell in named[:LISTED_MAX])
    if len(named) > LISTED_MAX:
        yield f"... and {len(named) - LISTED_MAX:,} more such findings."
    yield from red_sentences(all_cells)
    accepted = sum(finding.status == AcceptanceStatus.ACCEPTED for finding, _ in named)
    if named:
        excused = f"{counted(sum(cell.excused for cell in all_cells), 'cell')} with no other finding"
        yield f"Accepted: {counted(accepted, 'finding')}; not counted in the exit code: {excused}."


def red_sentences(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each cell with an accepted finding that still fails for others, which no entry names."""
    unnamed = [(cell.key, others) for cell in cells if cell.accepted and (others := [*_unnamed(cell)])]
    for key, others in unnamed[:LISTED_MAX]:
        more = f" and {len(others) - LISTED_MAX:,} more" if len(others) > LISTED_MAX else ""
        yield f"{key} still fails: no entry names {', '.join(map(_name, others[:LISTED_MAX]))}{more}."
    if len(unnamed) > LISTED_MAX:
        yield f"... and {len(unnamed) - LISTED_MAX:,} more cells still fail."


def _unnamed(cell: Cell) -> Iterator[tuple[str, str]]:
    named = {(finding.anomaly, finding.identity) for finding in cell.accepted}
    yield from (shown for shown in cell.shown() if shown not in named)


def _name(shown: tuple[str, str]) -> str:
    return " ".join(dict.fromkeys(shown))


def _line(finding: AcceptedFinding, cell: Cell) -> str:
    name = _name((finding.anomaly, finding.identity))
    head = _HEADS[AcceptanceStatus(finding.status)]
    more = f": {finding.more}" if finding.more else ""
    return f"{head} {cell.key}: {name}{more}, until {finding.until} ({finding.owner}: {finding.reason})."
