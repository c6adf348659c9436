"""The cells of the table: one story in one column in virtual time, judged by the checkers and held against its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import Final

import msgspec

from checkers import Verdict, check_rows
from harness.ground.errors import HarnessError
from harness.ground.machine.forked import forked_pool
from harness.ground.machine.spread import Workers, spread
from harness.plan import RunSpec, Simulated
from harness.records.replica_dump import replicas_in_memory
from harness.runs.stories.script.performer import Performance, perform_script
from harness.runs.stories.stage.trace import Trace
from harness.runs.stories.table.columns import COLUMNS, Column, column_named
from harness.runs.stories.table.fitting import fitted
from harness.runs.stories.table.outcome import outcome_of
from harness.runs.stories.table.story import Expected, Sign, Story, following
from harness.worlds.contract import World
from harness.worlds.simulated.steady import Steady
from harness.worlds.simulated.world import SimulatedWorld
from nemesis.plan import FaultPlan
from workloads import WorkloadPlan
from workloads.history import HistoryInMemory

#: A broker whose disk fails has another one.
LOG_DIRS: Final = 2
#: One log partition; only the script writes.
WORKLOAD: Final = WorkloadPlan(topic="story", partitions=1, producers=1, consumers=1)


class StoryCell(msgspec.Struct, frozen=True, kw_only=True):
    """One story in one column. ``disagreements`` are sentences: what is not as the story's file expects it.

    ``anomalies`` counts everything that the checkers found, by name.
    """

    story: str
    column: str
    lost: tuple[str, ...]
    acknowledged: tuple[str, ...]
    skipped: tuple[str, ...]
    signs: tuple[Sign, ...]
    others: tuple[str, ...]
    anomalies: dict[str, int]
    disagreements: tuple[str, ...]
    trace: Trace

    @property
    def seen(self) -> Expected:
        """The expectation that would be right, which names no more than it has to."""
        seen = Expected(**{name: frozenset(getattr(self, name)) for name in Expected.__struct_fields__})
        return msgspec.structs.replace(seen, others=seen.others - following(seen.lost, seen.signs))


def perform_cell(
    story: Story, column: str | Column, watch: Callable[[SimulatedWorld], None] | None = None
) -> StoryCell:
    """Perform one cell in virtual time, where nothing is left to chance. ``watch`` is given the world before it opens.

    The cluster has as many brokers as a log partition has replicas, three in every named column.

    Raises:
        SettingsError: what the story changes does not fit the column's settings.
    """
    chosen = column_named(column) if isinstance(column, str) else column
    settings = chosen.chosen(story.settings)
    if chosen.own:
        story = fitted(story, settings.replication_factor)
    spec = RunSpec(
        world=Simulated(),
        cell=chosen.name,
        family=story.number,
        story=story.number,
        settings=settings.to_mapping(),
        workload=msgspec.structs.replace(WORKLOAD, name=story.workload, partitions=story.log_partitions),
        faults=FaultPlan(),
        seed=0,
        brokers=settings.replication_factor,
        log_dirs=LOG_DIRS,
    )
    # A story's file says itself what goes wrong in which column.
    world = SimulatedWorld(spec, Steady(0), invariants=False)
    if watch is not None:
        watch(world)
    history = HistoryInMemory()
    performance = perform_script(story.in_column(spec.cell), spec, world, history)
    verdict = verdict_in_memory(story, chosen.name, performance, history, world)
    return judged(story, chosen.name, performance, verdict)


def verdict_in_memory(
    story: Story, column: str, performance: Performance, history: HistoryInMemory, world: World
) -> Verdict:
    """The verdict on a performance whose whole ``history`` is in memory; its ``world`` is closed."""
    logs = world.replica_logs()
    replicas = None if logs is None else replicas_in_memory(performance.report.ends, logs)
    return check_rows(history.rows, name=f"{story.number}/{column}", replicas=replicas, shown=None)


def judged(story: Story, column: str, performance: Performance, verdict: Verdict) -> StoryCell:
    """The cell that a performance and its verdict make."""
    outcome = outcome_of(performance, verdict)
    return StoryCell(
        story=story.number,
        column=column,
        lost=outcome.lost,
        acknowledged=outcome.acknowledged,
        skipped=outcome.skipped,
        signs=outcome.signs,
        others=outcome.others or (),
        anomalies=dict(verdict.counts),
        disagreements=outcome.disagreements(story, column),
        trace=performance.trace,
    )


def perform_table(stories: Iterable[Story], columns: Sequence[Column], workers: Workers = 1) -> Iterator[StoryCell]:
    """Every story in those of ``columns`` that it takes, story by story; the same whatever ``workers`` are.

    Raises:
        HarnessError: a worker process was killed, or a Spark job failed.
    """
    cells = [(story, column) for story in stories for column in columns if story.takes(column)]
    block = max(1, min(len(cells), len(COLUMNS)) // 2)
    if isinstance(workers, str):
        blocks = (cells[start : start + block] for start in range(0, len(cells), block))
        yield from chain.from_iterable(spread(workers, _perform_each, blocks))
        return
    if workers < 2 or len(cells) < 2:
        yield from map(_perform, cells)
        return
    try:
        with forked_pool(workers) as pool:
            yield from pool.map(_perform, cells, chunksize=block)
    except BrokenProcessPool as error:
        raise HarnessError(
            "a worker process of the stories was killed; see that there is memory for it, or name fewer with --workers"
        ) from error


def _perform_each(cells: Sequence[tuple[Story, Column]]) -> list[StoryCell]:
    return [_perform(cell) for cell in cells]


def _perform(cell: tuple[Story, Column]) -> StoryCell:
    return perform_cell(*cell)
