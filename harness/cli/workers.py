"""Options of commands that spread their work: over processes of this machine, or over a Spark cluster."""

from __future__ import annotations

from typing import Final

import click

from harness.cli.numbers import BoundedNumber
from harness.ground.errors import PlanError
from harness.ground.machine.spread import Workers
from harness.ground.machine.versions import cores

workers_option: Final = click.option(
    "--workers", type=BoundedNumber("workers"), help="Processes at a time; by default as many as there are cores."
)
master_option: Final = click.option(
    "--master", metavar="URL", help="Spark master, such as spark://host:7077: its executors perform the runs."
)


def chosen_workers(workers: int | None, master: str | None) -> Workers:
    """The processes that the two options name, by default one for each core.

    Raises:
        PlanError: both were given.
    """
    if master is not None and workers is not None:
        raise PlanError("--workers are processes of this machine, and --master names others; leave one of the two out")
    return master or workers or cores()
