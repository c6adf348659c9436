"""The command `ackproof run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from harness.cli.campaign import dry_option, out_option, perform_stages, plan_argument, rehearse_all, seed_range
from harness.cli.matrix_table import show_campaign
from harness.cli.terminal import Terminal, assigned, takes_json
from harness.plan import PlanKey, families_in, read_plan, with_scenarios


@click.command()
@plan_argument
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="Fix a setting; may be repeated.")
@click.option("--family", help="The fault family, if the plan has several.")
@click.option("--world", help="The world, if the plan has several.")
@click.option("--scenario", "scenarios", multiple=True, metavar="S09", help="Perform this scenario; may be repeated.")
@click.option("--story", "older", multiple=True, hidden=True)
@click.option("--seed", type=seed_range, help="The run's own seed, instead of one derived from the plan's.")
@out_option
@dry_option
@takes_json
def run(
    terminal: Terminal,
    plan_path: Path,
    *,
    settings: Sequence[str],
    family: str | None,
    world: str | None,
    scenarios: Sequence[str],
    older: Sequence[str],
    seed: int | None,
    out: Path | None,
    dry_run: bool,
) -> int:
    """Do one run of PLAN, judge it, and write a report.

    One run has one choice of settings, one fault family, one world and one seed. The report's path is the last line.
    """
    plan = read_plan(plan_path, assigned(settings))
    scenarios = (*scenarios, *older)
    if family is not None and family not in plan.families:
        families_in(family, PlanKey("--family"))
    if family is not None and scenarios:
        plan = msgspec.structs.replace(plan, families=(family,))
    if scenarios:
        plan = with_scenarios(plan, scenarios)
    single = plan.single(family, world, seed)
    if dry_run:
        return rehearse_all(terminal, [single])
    return show_campaign(terminal, *perform_stages(terminal, plan, [single], out))
