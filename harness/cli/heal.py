"""`ackproof heal`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.terminal import State, as_json, directory_argument
from harness.errors import EXIT_HELD
from harness.run import heal_all


@click.command()
@click.argument("path", type=directory_argument)
@as_json
@click.pass_obj
def heal(state: State, path: Path, *, json_: bool) -> int:
    """End every process and remove every rule that a dead harness left behind in PATH (a run or a campaign).

    A line for each thing, then a summary. Exit code 70 if something is still there or in doubt.
    """
    healed = heal_all(path)
    if json_:
        state.json({"healed": healed.undone, "remaining": healed.remaining, "doubts": healed.doubts})
    else:
        for kind, things in (("healed", healed.undone), ("remains", healed.remaining), ("in doubt", healed.doubts)):
            for thing in things:
                state.say(f"{kind}: {thing}")
    healed.refuse(healed.summary())
    if not json_:
        state.say(healed.summary())
    return EXIT_HELD
