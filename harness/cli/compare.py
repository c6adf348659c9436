"""The command `ackproof compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import msgspec
from rich.markup import escape

from harness.campaigns.comparison import (
    Change,
    Compared,
    compare_results,
    figures_of,
    made_with,
    read_results,
    sentences,
    side_by_side,
)
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import NamedWronglyError
from harness.records.campaign_record import read_campaign_record

_COLOURS: Final = {
    Change.WORSE: "bold red",
    Change.ACCEPTED: "blue",
    Change.UNTOLD: "magenta",
    Change.DIFFERS: "yellow",
    Change.BETTER: "green",
    Change.SAME: "dim",
}


@click.command()
@click.argument("before", type=path_type, metavar="A")
@click.argument("after", type=path_type, metavar="B")
@click.option("--all", "all_", is_flag=True, help="Show cells that are the same in both, too, and each finding.")
@takes_json
def compare(terminal: Terminal, before: Path, after: Path, *, all_: bool) -> int:
    """Say whether campaign B is worse than campaign A.

    A and B are their directories: two nights, for example, or two releases of Kafka. A cell is the same in both if
    world, settings and family have the same name, a finding if its identity is the same. The last line is the verdict.

    \b
    Exit codes:
      0  B is not worse
      1  B is worse: a promise broken or a log that does not come back where
         A's did better, writes lost that A held as promised, more runs that
         lost than chance explains, or an anomaly that no promise permits, new
         in its cell
      2  not known: B did not run, exercise or judge what A did
    """
    if before.resolve() == after.resolve():
        raise NamedWronglyError(f"{before} and {after} are the same directory; name two campaigns")
    compared = compare_results(read_results(before), read_results(after))
    if terminal.as_json:
        terminal.json(
            {"exit_code": compared.exit_code, "sentence": compared.sentence, **msgspec.structs.asdict(compared)}
        )
        return compared.exit_code
    for letter, directory in (("A", before), ("B", after)):
        record = read_campaign_record(directory)
        about = made_with(msgspec.to_builtins(record)) if record else "no campaign.json"
        terminal.fold(f"{letter}: {directory}: {about}")
    terminal.say("")
    _show_cells(terminal, compared, all_=all_)
    for sentence in sentences(compared, all_=all_):
        terminal.fold(sentence)
    terminal.fold(compared.sentence)
    return compared.exit_code


def _show_cells(terminal: Terminal, compared: Compared, *, all_: bool) -> None:
    """The worst first; where nothing changed there is no table."""
    worst = sorted(compared.cells, key=lambda cell: list(Change).index(cell.change))
    shown = [cell for cell in worst if all_ or cell.change is not Change.SAME]
    if shown:
        rows = [
            (
                f"[{_COLOURS[cell.change]}]{cell.change}[/]",
                escape(cell.key),
                *map(escape, side_by_side(cell.before, cell.after).values()),
            )
            for cell in shown
        ]
        terminal.table_or_blocks(["B is", "cell", *figures_of(None)], rows, named=2)
        terminal.say("")
