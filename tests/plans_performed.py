"""Plans of the project performed in virtual time: the cells of their matrix, from all or the first of their runs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from checkers import HISTORY, Cell, Verdict, VerdictLine, build_matrix, check_one
from harness.plan import Plan, RunSpec, Simulated
from harness.records.verdict_lines import facts_of
from harness.run import perform_run
from harness.search.judged_run import run_in_memory


def virtual_runs(plan: Plan, runs_max: int) -> list[RunSpec]:
    """The runs of ``plan`` in virtual time, at most ``runs_max`` of each cell, those of the world that it has first.

    A plan for real nodes alone is performed as it stands, with as many runs as it has.
    """
    own = [world for world in plan.worlds if isinstance(world.world, Simulated)]
    here = own or [msgspec.structs.replace(plan.worlds[0], world=Simulated())]
    worlds = tuple(msgspec.structs.replace(world, runs=min(world.runs, runs_max)) for world in here)
    return msgspec.structs.replace(plan, worlds=worlds).runs()


def performed(runs: list[RunSpec]) -> list[Cell]:
    """The cells of these runs."""
    return build_matrix(map(_line, runs)).cells


def _line(spec: RunSpec) -> VerdictLine:
    verdict = _of_story(spec) if spec.story else run_in_memory(spec, invariants=False).verdict
    return VerdictLine.of(verdict, facts_of(spec))


def _of_story(spec: RunSpec) -> Verdict:
    with TemporaryDirectory(prefix="ackproof-plan-") as scratch:
        directory = Path(scratch) / "run"
        perform_run(spec, directory, invariants=False)
        return check_one(directory / HISTORY)
