"""`ackproof bench`: measurements with the size of the machine beside them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import click

from harness.bench.checking import main as measure_checking
from harness.bench.cluster import measure_cluster
from harness.bench.simulated import STANDARD_SCHEDULE, measure_simulated
from harness.cli.terminal import State, as_json, directory_argument
from harness.errors import EXIT_HELD
from harness.machine import this_machine, versions
from harness.plan import read_plan

SCHEDULES: Final = 100


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure speed on this machine; without a subcommand, the simulator and the cluster."""
    if context.invoked_subcommand is None:
        context.invoke(simulated, plan_path=STANDARD_SCHEDULE, schedules=SCHEDULES, json_=False)
        context.invoke(cluster, json_=False)


@bench.command()
@click.option("--plan", "plan_path", type=directory_argument, default=STANDARD_SCHEDULE, show_default="standard")
@click.option("--schedules", type=click.IntRange(min=1), default=SCHEDULES, show_default=True)
@as_json
@click.pass_obj
def simulated(state: State, plan_path: Path, schedules: int, *, json_: bool) -> int:
    """Schedules per second and virtual seconds per wall second, on one core."""
    plan = read_plan(plan_path)
    with tempfile.TemporaryDirectory(prefix="ackproof-bench-") as scratch:
        speed = measure_simulated(plan, schedules, Path(scratch))
    if json_:
        state.json({"machine": this_machine(), "versions": versions(), "simulated": speed})
        return EXIT_HELD
    _head(state)
    for line in speed.lines():
        state.say(line)
    return EXIT_HELD


@bench.command()
@as_json
@click.pass_obj
def cluster(state: State, *, json_: bool) -> int:
    """Acknowledged writes per second, their latency, and the harness's own overhead, on three broker processes."""
    with tempfile.TemporaryDirectory(prefix="ackproof-bench-") as scratch:
        speed = measure_cluster(Path(scratch))
    if json_:
        overhead = {
            "latency": speed.latency_overhead,
            "throughput": speed.throughput_overhead,
            "processor_time": speed.cpu_overhead,
        }
        state.json({"machine": this_machine(), "versions": versions(), "cluster": speed, "overhead": overhead})
        return EXIT_HELD
    _head(state)
    for line in speed.lines():
        state.say(line)
    return EXIT_HELD


bench.add_command(measure_checking, "check")


def _head(state: State) -> None:
    known = versions()
    state.say(f"{this_machine().sentence()}; Python {known['python']}, kafka-python {known['kafka-python']}")
