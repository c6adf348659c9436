"""`ackproof report`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.check import trace_or_say
from harness.cli.matrix_table import tell
from harness.cli.terminal import State, as_json, directory_argument
from harness.records.verdict_lines import write_matrix
from harness.report import witnesses, write


@click.command()
@click.argument("campaign_dir", type=directory_argument)
@as_json
@click.pass_obj
def report(state: State, campaign_dir: Path, *, json_: bool) -> int:
    """Make matrix.json and report.html again from the files of CAMPAIGN_DIR; the report's path is the last line."""
    write_matrix(campaign_dir)
    trace_or_say(state, witnesses(campaign_dir))
    return tell(state, campaign_dir, write(campaign_dir), json_=json_)
