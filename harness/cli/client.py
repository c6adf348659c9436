"""The command `ackproof client check`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.markup import escape

from harness.cli.terminal import Terminal, takes_json
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD
from harness.lab.client_check import CheckedProgram, check_program


@click.group()
def client() -> None:
    """Check a client library that is a program of yours.

    A plan names it: client = { command = ["node", "client.js"] }.
    """


@client.command("check", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@takes_json
def check_command(terminal: Terminal, command: tuple[str, ...]) -> int:
    """Say if COMMAND keeps to the protocol of client programs.

    It is tried against a cluster of the reference broker on ports of this machine, in about a minute. Write options of
    this command before COMMAND.
    """
    with tempfile.TemporaryDirectory(prefix="ackproof-client-") as directory:
        checked = check_program(command, Path(directory), terminal.progress())
    if terminal.as_json:
        terminal.json(checked)
    else:
        _show(terminal, checked)
    return EXIT_HELD if checked.keeps else EXIT_BROKEN


def _show(terminal: Terminal, checked: CheckedProgram) -> None:
    marks = {True: "[green]yes[/]", False: "[red]no[/]", None: "-"}
    rows = [
        (point.name, marks[point.holds], escape(point.tries if point.holds else point.problem))
        for point in checked.points
    ]
    terminal.table(["point", "", "what it does"], rows)
    name = f"{checked.name} {checked.version}".strip() or "the program"
    broken, tried = (sum(point.holds in wanted for point in checked.points) for wanted in ({False}, {False, True}))
    terminal.say(f"{name} keeps to the protocol" if checked.keeps else f"{name} breaks {broken} of {tried} points")
