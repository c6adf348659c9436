"""The command `ackproof doctor`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HARNESS, EXIT_HELD
from harness.worlds.machine_abilities import examine


@click.command()
@click.option("--out", type=path_type, default="results", show_default=True, help="Where results would go.")
@takes_json
def doctor(terminal: Terminal, out: Path) -> int:
    """Say what this machine can do, and how to get the rest.

    Exit code 70 if something is missing that the default campaign needs.
    """
    checks = examine(out)
    missing = [check for check in checks if check.needed and not check.good]
    if terminal.as_json:
        terminal.json(checks)
        return EXIT_HARNESS if missing else EXIT_HELD
    rows = []
    for check in checks:
        mark = "[green]yes[/]" if check.good else "[red]no[/]" if check.needed else "[yellow]no[/]"
        rows.append((check.name, mark, escape(check.state), check.purpose, "" if check.good else escape(check.how)))
    terminal.table(["what", "", "found", "for", "how to get it"], rows)
    names = ", ".join(check.name for check in missing)
    terminal.say(f"missing, and needed: {names}" if missing else "this machine can run the default campaign")
    return EXIT_HARNESS if missing else EXIT_HELD
