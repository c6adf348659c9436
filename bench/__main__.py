"""Measurements with the size of the machine beside them: `python -m bench`, for developers. No wheel has it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from bench.checking_speed import main as measure_checking
from bench.cluster_speed import measure_cluster
from bench.search_speed import measure_search
from bench.simulated import STANDARD_SCHEDULE, measure_simulated
from bench.yardstick import measure_yardstick
from checkers import Scratch, ScratchKind
from harness.cli.app import main
from harness.cli.numbers import WholeNumber
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD
from harness.ground.machine.versions import this_machine, versions
from harness.plan import read_plan
from harness.runs.run import kept_until_undone

SCHEDULES: Final = 100
TURNS: Final = 3
#: The versions that are printed with each figure, and their words.
_NAMED: Final = {"python": "Python", "kafka-python": "kafka-python"}


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure speed on this machine.

    Without a subcommand, the speed of the simulator and of the cluster is measured.
    """
    if context.invoked_subcommand is None:
        context.invoke(simulated, plan_path=STANDARD_SCHEDULE, schedules=SCHEDULES)
        context.invoke(cluster)


@bench.command()
@click.option("--plan", "plan_path", type=path_type, default=STANDARD_SCHEDULE, show_default="standard")
@click.option("--schedules", type=WholeNumber(1, 10**6), default=SCHEDULES, show_default=True)
@takes_json
def simulated(terminal: Terminal, plan_path: Path, schedules: int) -> int:
    """Measure schedules and virtual seconds a second on one core."""
    plan = read_plan(plan_path)
    with Scratch(ScratchKind.BENCH) as scratch:
        speed = measure_simulated(plan, schedules, scratch.path)
    return _show(terminal, {"simulated": speed}, speed.lines())


@bench.command()
@takes_json
def cluster(terminal: Terminal) -> int:
    """Measure writes a second, and latency, on three brokers.

    Only acknowledged writes count. The harness's own overhead is measured beside them.
    """
    with kept_until_undone("ackproof-cluster-") as directory:
        speed = measure_cluster(directory)
    return _show(terminal, {"cluster": speed}, speed.lines())


@bench.command()
@click.option("--master", metavar="URL", required=True, help="Spark master, such as spark://host:7077.")
@click.option("--cores", type=WholeNumber(1, 10**6), required=True, help="Cores of its workers.")
@click.option("--schedules", type=WholeNumber(1, 10**6), default=SCHEDULES, show_default=True, help="For each core.")
@click.option("--turns", type=WholeNumber(1, 10**6), default=TURNS, show_default=True)
@takes_json
def search(terminal: Terminal, master: str, cores: int, schedules: int, turns: int) -> int:
    """Measure a hunt on a Spark cluster against one here.

    Both perform the same runs, here in as many processes as the cluster has cores.
    """
    speed = measure_search(master, cores, cores * schedules, turns)
    return _show(terminal, {"search": speed}, speed.lines())


bench.add_command(measure_checking, "check")


def _show(terminal: Terminal, measured: dict[str, object], lines: Iterable[str]) -> int:
    """Print what was measured, with what it was measured on, and the yardstick of this machine now."""
    machine, package_versions, yardstick = this_machine(), versions(), measure_yardstick()
    named = ", ".join(f"{words} {package_versions[name]}" for name, words in _NAMED.items())
    head = f"{machine.sentence()}; {named}"
    told = {"machine": machine, "versions": package_versions, "yardstick": yardstick, **measured}
    terminal.answer(told, [head, *yardstick.lines(), *lines])
    return EXIT_HELD


if __name__ == "__main__":
    main(command=bench, name="python -m bench")
