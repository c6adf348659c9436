"""Plans of the project performed in virtual time: the cells of their matrix, from all or the first of their runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec.structs import replace

from checkers import HISTORY, Cell, Outcome, Verdict, VerdictLine, build_matrix, check_one
from harness.campaigns.comparison import unexpected
from harness.lab.search.judged_run import run_in_memory
from harness.plan import Plan, RunSpec, Simulated
from harness.records.verdict_lines import facts_of
from harness.runs.run import perform_run

#: With fewer runs than the plan has, these say only that too little was seen.
SILENT: Final = frozenset({Outcome.HELD, Outcome.NOT_EXERCISED})


def virtual_runs(plan: Plan, runs_max: int) -> list[RunSpec]:
    """The runs of ``plan`` in virtual time, at most ``runs_max`` of each cell, those of the world that it has first.

    A plan for real nodes alone is performed as it stands, with as many runs as it has.
    """
    own = [world for world in plan.worlds if isinstance(world.world, Simulated)]
    here = own or [replace(plan.worlds[0], world=Simulated())]
    worlds = tuple(replace(world, runs=min(world.runs, runs_max)) for world in here)
    return replace(plan, worlds=worlds).runs()


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


def problems(plan: Plan, runs_max: int) -> list[str]:
    """The cells with at most that number of runs that contradict the plan; silence of few runs contradicts nothing."""
    runs = virtual_runs(plan, runs_max)
    cells = performed(runs)
    whole = any(isinstance(world.world, Simulated) and world.runs <= runs_max for world in plan.worlds)
    expected = [expectation if whole else replace(expectation, some="", figures={}) for expectation in plan.expected]
    telling = [cell for cell in cells if whole or cell.outcome not in SILENT]
    return list(unexpected(expected, telling))


def has_come(plan: Plan, cells: Iterable[Cell]) -> bool:
    """True if few runs of each cell showed all outcomes that the plan expects.

    A promise holds as long as nothing broke it. Figures are those of the plan's own workload, and not looked at.
    """
    expected = [replace(expectation, figures={}) for expectation in plan.expected]
    early = [replace(cell, outcome=Outcome.HELD) if cell.outcome in SILENT else cell for cell in cells]
    return not list(unexpected(expected, early))
