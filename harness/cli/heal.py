"""The command `ackproof heal`."""

from __future__ import annotations

from pathlib import Path

import click

from checkers import remove_abandoned
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD
from harness.runs.run import heal_all


@click.command()
@click.argument("path", type=path_type)
@takes_json
def heal(terminal: Terminal, path: Path) -> int:
    """End what a dead harness left behind in PATH.

    PATH is a run or a campaign. Processes are ended, network rules removed, file systems unmounted. It prints a line
    for each of them, then a summary. Exit code 70 if something is still there or in doubt. Temporary directories of all
    harnesses that were killed (such as ackproof-check-...) are deleted too.
    """
    healed = heal_all(path)
    healed.undone += [f"directory {removed}" for removed in remove_abandoned()]
    lists = {"healed": healed.undone, "remains": healed.remaining, "doubt": healed.doubts}
    terminal.answer(lists, (f"{kind}: {thing}" for kind, things in lists.items() for thing in things))
    healed.refuse(healed.summary())
    if not terminal.as_json:
        terminal.say(healed.summary())
    return EXIT_HELD
