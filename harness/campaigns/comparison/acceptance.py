"""Acceptances in words: findings that are accepted, and those that were and fail again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def accept_command(directory: str, identities: Iterable[str]) -> str:
    """The command that accepts findings of the campaign in ``directory``."""
    few = list(dict.fromkeys(identities))[:LISTED_MAX]
    return command("accept", directory, *few, "--reason", "WHY", "--until", "DAY")


def accept_commands(directory: str, cells: Iterable[Cell]) -> Iterator[str]:
    """Two lines for each cell that is red: the command that accepts what is red there."""
    for cell in [cell for cell in cells if cell.red()][:LISTED_MAX]:
        yield f"To accept what {cell.key} shows until a day:"
        yield f"  {accept_command(directory, (identity for _, identity in cell.red()))}"


def accepted_sentences(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each finding that ``accepted.toml`` names, failing ones first, and how many of them are accepted."""
    all_cells = list(cells)
    named = [(finding, cell) for cell in all_cells for finding in cell.accepted]
    order = list(_HEADS)
    named.sort(key=lambda each: order.index(AcceptanceStatus(each[0].status)))
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
