"""`ackproof heal`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.terminal import State, as_json, directory_argument
from harness.errors import EXIT_HELD
from harness.run import heal as heal_runs


@click.command()
@click.argument("path", type=directory_argument)
@as_json
@click.pass_obj
def heal(state: State, path: Path, *, json_: bool) -> int:
    """End every process and remove every rule that a dead harness left behind in PATH (a run or a campaign)."""
    undone = heal_runs(path)
    if json_:
        state.json({"healed": undone})
        return EXIT_HELD
    for sentence in undone:
        state.say(f"healed: {sentence}")
    state.say(f"{len(undone)} things were left behind and are undone" if undone else "nothing was left behind")
    return EXIT_HELD
