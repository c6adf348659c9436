"""The command `ackproof clients`."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import click
from rich.markup import escape

from harness.cli.terminal import RESULTS, Terminal, WordType, path_type, takes_json
from harness.ground.errors import PlanError
from harness.lab.client_table import CELLS, as_markdown, as_page, client_table, headline
from harness.plan import ClientChoice, ClientName, ClientProgram
from harness.records.client_table_file import CellOutcome, ClientTable
from harness.records.files import files_of, write_file, write_json
from workloads import unknown_name

_NAMES: Final[tuple[ClientName, ...]] = get_args(ClientName)
_COLOURS: Final = {CellOutcome.KEPT: "green", CellOutcome.BROKEN: "red", CellOutcome.NOT_MET: "yellow"}


@click.command(epilog="\b\nSituations:\n" + "\n".join(f"  {name}" for name in CELLS))
@click.option("--client", "clients", multiple=True, metavar="NAME|COMMAND", help="A client, or the words of a program.")
@click.option("--cell", "cells", multiple=True, type=WordType("cell", CELLS), metavar="NAME", help="Only this one.")
@click.option("--out", type=path_type, help="The directory of the table, instead of results/clients.")
@takes_json
def clients(terminal: Terminal, *, clients: Sequence[str], cells: Sequence[str], out: Path | None) -> int:
    """Say which client library keeps its word in which situation.

    Each is put into small situations on a cluster of the reference broker, behind a relay that refuses, delays or
    loses single answers. An outcome is kept, permitted by the settings, broken, not supported, or not met where the
    situation did not occur. Without --client: the libraries that plans can name. A program is of the protocol in
    docs/guides/client-programs.md. Exit code 1 if something is broken, 2 if something is not known.
    """
    chosen = [_choice(client) for client in clients] or list(_NAMES)
    directory = out or RESULTS / "clients"
    with files_of(directory):
        directory.mkdir(parents=True, exist_ok=True)
    named = {name: CELLS[name] for name in cells} or CELLS
    with tempfile.TemporaryDirectory(prefix="ackproof-clients-") as work:
        for table in client_table(chosen, named, Path(work), terminal.progress()):
            write_json(directory / "clients.json", table)
            write_file(directory / "clients.html", as_page(table).encode())
            write_file(directory / "clients.md", as_markdown(table).encode())
    if terminal.as_json:
        terminal.json(table)
        return table.exit_code
    _show(terminal, table)
    terminal.say(str(directory / "clients.html"))
    return table.exit_code


def _choice(text: str) -> ClientChoice:
    words = tuple(shlex.split(text))
    for name in _NAMES:
        if words == (name,):
            return name
    if len(words) < 2 and "/" not in text:
        raise PlanError(f"{unknown_name('client', text, dict.fromkeys(_NAMES))}; or write the words of a program")
    return ClientProgram(command=words)


def _show(terminal: Terminal, table: ClientTable) -> None:
    for client in table.clients:
        if client.failed:
            terminal.complain(f"{client.name}: {client.failed}")
    names = table.played
    rows = []
    for cell in table.cells:
        outcomes = (result.outcome if (result := table.of(name, cell.name)) else None for name in names)
        marks = (f"[{_COLOURS.get(each, 'default')}]{escape(each)}[/]" if each else "" for each in outcomes)
        rows.append((cell.name, *marks))
    terminal.table(["situation", *names], rows)
    for result in table.results:
        for breach, sentence in result.breaches if result.outcome is CellOutcome.BROKEN else ():
            terminal.fold(f"{result.client}, {result.cell}: {breach}: {sentence}")
    terminal.verdict(headline(table))
