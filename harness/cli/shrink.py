"""The command `ackproof shrink`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.numbers import seconds_type
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD
from harness.lab.search import shrink_run


@click.command()
@click.argument("run_dir", type=path_type)
@click.option("--finding", default="", metavar="NAME", help="Keep this anomaly (duplicate), not the worst one.")
@click.option("--seconds", type=seconds_type, help="End with the best so far after this time.")
@takes_json
def shrink(terminal: Terminal, run_dir: Path, *, finding: str, seconds: float | None) -> int:
    """Make a run as small as it can be while it shows the same.

    The run in RUN_DIR gets fewer faults, then fewer writes, then rounder times and less chance. The smaller run is left
    in RUN_DIR as a plan (shrunk.toml), and as a scripted story (shrunk-story.toml) where it can be said step by step.
    Ctrl-C keeps the best so far. See docs/guides/shrink.md.
    """
    smaller = shrink_run(run_dir, finding, seconds)
    terminal.answer(smaller, smaller.lines())
    return EXIT_HELD
