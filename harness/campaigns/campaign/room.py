"""Says before anything starts which runs have no room for scenarios of each of their families, and the budget that has.

A run begins no more faults once it has ``count``, or ``duration_ms`` is over. The schedules of some runs are drawn, as
the runs will draw them, and their scenarios counted. Drawn again without an end, they say how much is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import msgspec

from checkers import counted
from harness.ground.choices import Choices
from harness.plan import AnyWorld, RunSpec, timings_of
from harness.runs.run import planned
from nemesis.plan import FAULTS_MAX
from nemesis.scenarios import FAMILIES
from nemesis.schedule import Schedule

#: Runs of one family in one world that are looked at; a schedule takes less than a millisecond.
SAMPLE: Final = 10
#: Longer than any schedule that is looked at.
_WITHOUT_END_MS: Final = 10**9


class Budget(msgspec.Struct, frozen=True):
    """Keys of a plan that end a schedule, or keep scenarios out of it."""

    count: int
    duration_ms: int
    dead_brokers_max: int


def room_sentences(runs: Sequence[RunSpec], *, by_the_clock: bool = False) -> list[str]:
    """A sentence for each family and world whose runs lack room, with the numbers that help.

    A run needs room for a scenario of each family of its mixture, and the runs of a cell together for ``exercised_min``
    scenarios of each. Where runs are done ``by_the_clock`` their number is not known: only the first counts.
    """
    sentences = [_sentence(same, by_the_clock=by_the_clock) for same in _alike(runs)]
    return [sentence for sentence in dict.fromkeys(sentences) if sentence]


def runs_needed(runs: Sequence[RunSpec]) -> dict[str, int]:
    """By world, how many runs are usually enough to put each cell to the test, if every scenario meets writes."""
    needed: Counter[str] = Counter(dict.fromkeys((run.world.name for run in runs), 0))
    for same in _alike(runs):
        usual = _usual_scenarios([_scenarios_in(run) for run in same[:SAMPLE]], same[0].faults.families)
        of_cell = math.ceil(same[0].faults.exercised_min / usual) if usual else 1
        needed[same[0].world.name] += of_cell * len({run.cell for run in same})
    return needed


def _alike(runs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Runs whose schedules are drawn, together where these differ by their seeds only."""
    alike: dict[tuple[AnyWorld, str, object], list[RunSpec]] = {}
    for run in runs:
        if run.schedule is None and not run.story:
            alike.setdefault((run.world, run.family, timings_of(run.chosen())), []).append(run)
    return list(alike.values())


def _usual_scenarios(scenarios: Sequence[Counter[str]], families: Sequence[str]) -> float:
    """Scenarios in a run, on average, of the family that has the fewest."""
    return min(sum(counts[family] for counts in scenarios) for family in families) / len(scenarios)


def _sentence(runs: Sequence[RunSpec], *, by_the_clock: bool) -> str:
    """Name the lack of room in ``runs``, whose schedules differ by their seeds only; "" where nothing is lacking."""
    first, sample = runs[0], runs[:SAMPLE]
    families, enough = first.faults.families, first.faults.exercised_min
    scenarios = [_scenarios_in(run) for run in sample]
    usual = _usual_scenarios(scenarios, families)
    reached = min(sum(counts[family] > 0 for family in families) for counts in scenarios)
    cell_runs = Counter(run.cell for run in runs)[first.cell]
    # Where cells lack scenarios in all, more of them in a run help families that a single run leaves out, too.
    if not by_the_clock and usual * cell_runs < enough:
        have = f"{counted(cell_runs, 'run')} of {first.family} {'has' if cell_runs == 1 else 'have'} room for"
        each = " of each family" if len(families) > 1 else ""
        what = f"{have} {math.floor(usual * cell_runs)} of the {enough} scenarios{each} that a cell needs to be held"
        needed = _largest(sample, math.ceil(enough / cell_runs))
        raised = "or runs" if needed else "or raise runs"
        more_runs = f", {raised} from {cell_runs} to {math.ceil(enough / usual)}" if usual else ""
    elif reached < len(families):
        few = f"{reached} of its {len(families)} families" if reached else "no scenario"
        what = f"a run of {first.family} may have room for {few}"
        more_runs, needed = "", _largest(sample, 1)
    else:
        return ""
    return f"In the world {first.world.name}, {what}; {_advice(first, needed)}{more_runs}."


def _advice(run: RunSpec, needed: Budget | None) -> str:
    """The keys to raise, each with the value that it has and the one that helps."""
    if needed is None:
        return "no larger count or duration_ms is enough: choose other families"
    has = Budget(run.faults.count, run.workload.duration_ms, run.faults.dead_brokers_max)
    enough = msgspec.structs.asdict(needed)
    keys = [
        f"{key} from {had} to {enough[key]}" for key, had in msgspec.structs.asdict(has).items() if enough[key] > had
    ]
    return f"raise {' and '.join(keys)}"


def _scenarios_in(run: RunSpec) -> Counter[str]:
    """The number of scenarios of each family that ``run`` performs."""
    steps = planned(run, Choices(run.seed).draw).steps
    return Counter(family for _, family in {(step.group, step.family) for step in steps})


def _largest(runs: Sequence[RunSpec], scenarios: int) -> Budget | None:
    """The budget with which each of ``runs`` performs ``scenarios`` of each family; None where no budget is enough."""
    budgets = [budget for run in runs if (budget := _needed(run, scenarios))]
    if len(budgets) < len(runs):
        return None
    return Budget(
        count=max(budget.count for budget in budgets),
        duration_ms=math.ceil(max(budget.duration_ms for budget in budgets) / 1_000) * 1_000,
        dead_brokers_max=max(budget.dead_brokers_max for budget in budgets),
    )


def _needed(run: RunSpec, scenarios: int) -> Budget | None:
    families = run.faults.families
    # In these rounds each scenario is performed once, and then enough. One has a fault for each broker, or a few.
    rounds = scenarios + max(len(FAMILIES[family].every_scenario) for family in families)
    count = min(len(families) * rounds * max(run.brokers, 3), FAULTS_MAX)
    allowed = range(run.faults.dead_brokers_max, run.brokers + 1)
    budgets = (_until(_without_end(run, count, dead), families, scenarios, dead) for dead in allowed)
    return next((budget for budget in budgets if budget), None)


def _without_end(run: RunSpec, count: int, dead: int) -> Schedule:
    """The schedule of ``run`` with ``count`` faults, however long that takes."""
    faults = msgspec.structs.replace(run.faults, count=count, dead_brokers_max=dead)
    workload = msgspec.structs.replace(run.workload, duration_ms=_WITHOUT_END_MS)
    return planned(msgspec.structs.replace(run, faults=faults, workload=workload), Choices(run.seed).draw)


def _until(schedule: Schedule, families: Sequence[str], scenarios: int, dead: int) -> Budget | None:
    """The least budget of a schedule that goes on until each family had ``scenarios`` of them."""
    performed, before = Counter[str](), 0
    for _, steps in groupby(schedule.steps, key=lambda step: step.group):
        scenario = list(steps)
        performed[scenario[0].family] += 1
        if all(performed[family] >= scenarios for family in families):
            # A scenario begins as long as there are fewer faults than the count.
            return Budget(before + 1, max(step.end_ms for step in scenario), dead)
        before += len(scenario)
    return None
