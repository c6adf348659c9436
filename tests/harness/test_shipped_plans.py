"""Every plan that `ackproof init` can write ends as it should, in virtual time: with 0, or with 1 where it is to alarm.

And what it expects as data comes: in these few runs, or in twenty of each cell.

Of a plan for real worlds its twin is run: the same faults and settings in the simulated world, as far as that has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from checkers import Matrix, VerdictLine, build_matrix, check_one
from harness.campaigns.campaign import room_sentences
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD
from harness.plan import Plan, RunSpec, Simulated, plans_here, read_plan
from harness.records.run_record import read_record
from harness.records.verdict_lines import facts_of
from harness.runs.run import perform_run
from harness.worlds.limits import limits_of
from tests.plans_performed import has_come, problems

PLANS: Final = plans_here()
#: Plans with a defect in the log, that must be found: planted, or as Kafka's releases have it.
ALARMING: Final = {"canary", "compaction", "eras"}
#: Plans of which nothing is done in virtual time: it has no wall clock. For "keyed" the plan "compaction" does it, for
#: "transactions", "kafka-groups" and "kafka-consume-transform-produce" those of such names, too.
#: Those without a fault are about figures alone, which tests/test_plans_keep_their_word.py holds.
QUIET: Final = {"isr-churn", "kafka-idempotence-prices", "kafka-prices-java", "kafka-prices-librdkafka"}
#: A user's program runs in real time. The reference broker's controller changes no replicas. All cells of
#: "quorum-latency" are performed by tests/test_plans_keep_their_word.py.
REAL_ONLY: Final = {
    "application", "kafka-consume-transform-produce", "drawn/clock", "kafka-groups", "keyed", "quorum-latency",
    "racks-reassigned", "transactions", *QUIET,
}  # fmt: skip
#: Cells that are tried, runs of each, and time and writes of a run: enough to put a cell to the test.
RUNS_MAX: Final = 3
CELLS_MAX: Final = 5
WRITES_PER_SECOND_MAX: Final = 25.0
DURATION_MAX_MS: Final = 240_000
#: The plans that a newcomer begins with: a second each. Others take a minute of processor time together.
BEGUN_WITH: Final = {"canary", "demo", "pull-request", "smoke"}
SLOW: Final = {name for name in PLANS if name not in BEGUN_WITH and not name.startswith("stories/")}


def in_virtual_time(plan: Plan, runs: int) -> Plan:
    """A small part of ``plan`` in the simulated world, without the families that there are in real worlds only."""
    own = next((world for world in plan.worlds if isinstance(world.world, Simulated)), plan.worlds[0])
    world = msgspec.structs.replace(own, world=Simulated(), runs=min(own.runs, runs))
    every = -(-len(plan.choices) * len(plan.families) // CELLS_MAX)
    small = msgspec.structs.replace(plan, worlds=(world,), choices=plan.choices[::-every])
    lacking = {run.family for run in small.runs() if any(limit.nothing_left for limit in limits_of(run))}
    return msgspec.structs.replace(small, families=tuple(name for name in plan.families if name not in lacking))


def verdict_line(spec: RunSpec, directory: Path) -> VerdictLine:
    rate = min(spec.workload.writes_per_second, WRITES_PER_SECOND_MAX)
    duration_ms = min(spec.workload.duration_ms, DURATION_MAX_MS)
    workload = msgspec.structs.replace(spec.workload, writes_per_second=rate, duration_ms=duration_ms)
    # So few runs and writes put few at stake.
    faults = msgspec.structs.replace(spec.faults, at_stake_min=1)
    slow = msgspec.structs.replace(spec, workload=workload, faults=faults)
    assert perform_run(slow, directory).status == "completed"
    return VerdictLine.of(check_one(directory), facts_of(read_record(directory)))


def matrices(plan: Plan, directory: Path) -> Iterator[Matrix]:
    """The matrix after one run of each cell, after two and after three, of the same runs."""
    lines: dict[Path, VerdictLine] = {}
    for runs in range(1, RUNS_MAX + 1):
        for spec in in_virtual_time(plan, runs).runs():
            run_directory = directory / spec.directory()
            lines[run_directory] = lines.get(run_directory) or verdict_line(spec, run_directory)
        yield build_matrix([*lines.values()], len(in_virtual_time(plan, runs).cells))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.system if name in SLOW else ()) for name in PLANS if name not in REAL_ONLY],
)
def test_a_plan_ends_as_it_should(name: str, tmp_path: Path) -> None:
    plan = read_plan(PLANS[name])
    expected = EXIT_BROKEN if name in ALARMING else EXIT_HELD
    for matrix in matrices(plan, tmp_path):
        if matrix.verdict.exit_code == expected:
            break
    assert matrix.verdict.exit_code == expected, matrix.verdict.sentence
    assert has_come(plan, matrix.cells) or problems(plan, 20) == []


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_has_room_for_the_faults_that_its_cells_need(name: str) -> None:
    """In every world of it, real ones too; a plan that is to alarm, or has no faults, needs no cell that is held."""
    runs = read_plan(PLANS[name]).runs()
    assert room_sentences(runs) == [] or name in {"canary", *QUIET}
    assert room_sentences(runs, by_the_clock=True) == [] or name in QUIET
