"""The command `ackproof report`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.campaigns.campaign import witness
from harness.campaigns.report import write
from harness.cli.matrix_table import show_campaign
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.records.verdict_lines import write_matrix


@click.command()
@click.argument("campaign_dir", type=path_type)
@click.option("--compare", "other", type=path_type, metavar="OTHER", help="Hold it against the campaign in OTHER.")
@takes_json
def report(terminal: Terminal, campaign_dir: Path, *, other: Path | None) -> int:
    """Write the report of a campaign again.

    The last stages of CAMPAIGN_DIR are done again: matrix.json, witnesses.json and their traces, report.html. They read
    the campaign's files alone. With --compare, the page also says what differs from OTHER: outcomes, bounds,
    findings (`ackproof compare` prints that, and has an exit code for it). The report's path is the last line.

    A run whose files are damaged is left out, and named. As with `ackproof check`, the exit code is then 2, or 1 where
    another run is broken.
    """
    write_matrix(campaign_dir)
    witness(campaign_dir, terminal.progress())
    return show_campaign(terminal, campaign_dir, write(campaign_dir, other))
