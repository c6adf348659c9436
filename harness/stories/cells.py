"""The cells of the table: one story in one column in virtual time, judged by the checkers and held against its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import Final

import msgspec

from checkers import NEVER, InconsistentOffset, LostWrite, SkippedRecord, Verdict, check_rows
from harness.errors import HarnessError, PlanError
from harness.machine.forked import forked_pool
from harness.machine.spread import Workers, spread
from harness.plan import RunSpec, Simulated
from harness.records.replica_dump import replicas_in_memory
from harness.stories.columns import COLUMNS, Column, column_named
from harness.stories.fitting import fitted
from harness.stories.performer import Performance, perform_script
from harness.stories.story import Expected, Sign, Story
from harness.stories.trace import ACKNOWLEDGED, Trace, record_name
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
    anomalies: dict[str, int]
    disagreements: tuple[str, ...]
    trace: Trace

    @property
    def letters(self) -> str:
        """The cell as the table shows it."""
        lost, acknowledged, skipped = map(frozenset, (self.lost, self.acknowledged, self.skipped))
        return Expected(lost=lost, acknowledged=acknowledged, skipped=skipped, signs=frozenset(self.signs)).letters


def perform_cell(
    story: Story, column: str | Column, watch: Callable[[SimulatedWorld], None] | None = None
) -> StoryCell:
    """Perform one cell in virtual time, where nothing is left to chance. ``watch`` is given the world before it opens.

    The cluster has as many brokers as a log partition has replicas, three in every named column.

    Raises:
        SettingsError: what the story changes does not fit the column's settings.
        PlanError: a group has another protocol than that of virtual time.
    """
    chosen = column_named(column) if isinstance(column, str) else column
    settings = chosen.chosen(story.settings)
    if story.grouped and settings.group_protocol not in Simulated.protocols:
        raise PlanError(f'{story.number} needs group.protocol="consumer": virtual time has no other')
    if chosen.own:
        story = fitted(story, settings.replication_factor)
    spec = RunSpec(
        world=Simulated(),
        cell=chosen.name,
        family=story.number,
        story=story.number,
        settings=settings.to_mapping(),
        workload=msgspec.structs.replace(WORKLOAD, name=story.workload),
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
    performance = perform_script(story, spec, world, history)
    return judged_in_memory(story, chosen.name, performance, history, world)


def judged_in_memory(
    story: Story, column: str, performance: Performance, history: HistoryInMemory, world: World
) -> StoryCell:
    """The cell of a performance whose whole ``history`` is in memory; its ``world`` is closed."""
    logs = world.replica_logs()
    replicas = None if logs is None else replicas_in_memory(performance.report.ends, logs)
    verdict = check_rows(history.rows, name=f"{story.number}/{column}", replicas=replicas, shown=None)
    return judged(story, column, performance, verdict)


def judged(story: Story, column: str, performance: Performance, verdict: Verdict) -> StoryCell:
    """The cell that a performance and its verdict make."""
    records = performance.trace.records
    names = {record.value: name for name, record in records.items()}
    lost = {names[finding.value] for finding in verdict.findings(LostWrite)}
    acknowledged = {name for name, record in records.items() if record.outcome == ACKNOWLEDGED}
    skipped = {record_name(names, finding.value) for finding in verdict.findings(SkippedRecord)}
    signs = frozenset(_signs(performance, verdict))
    shown = Expected(
        lost=frozenset(lost), acknowledged=frozenset(acknowledged), skipped=frozenset(skipped), signs=signs
    )
    return StoryCell(
        story=story.number,
        column=column,
        lost=tuple(sorted(lost)),
        acknowledged=tuple(sorted(acknowledged)),
        skipped=tuple(sorted(skipped)),
        signs=tuple(sign for sign in Sign if sign in signs),
        anomalies=dict(verdict.counts),
        disagreements=(
            *(f"it did not play as written: {problem}" for problem in performance.trace.problems),
            *(f"{name} was seen, which must never happen" for name in NEVER if verdict.counts.get(name)),
            *(_unread(performance) if Sign.HANGING not in signs else ()),
            *(
                _disagreements(shown, story.expected(column), performance)
                if story.expects and column in story.columns
                else ()
            ),
        ),
        trace=performance.trace,
    )


def _signs(performance: Performance, verdict: Verdict) -> Iterator[Sign]:
    if performance.trace.for_good:
        yield Sign.FOR_GOOD
    elif performance.trace.leaderless:
        yield Sign.LEADERLESS
    yield from (sign for anomaly, sign in _SIGNS.items() if verdict.counts.get(anomaly))
    if verdict.groups.processed_again:
        yield Sign.AGAIN
    for finding in verdict.findings(InconsistentOffset):
        if len({witness.value for witness in finding.seen if witness.by == "poll"}) > 1:
            yield Sign.CHANGED_READ


#: The signs that follow from a count of anomalies alone.
_SIGNS: Final = {
    "divergent-replicas": Sign.DIVERGED,
    "divergent-tables": Sign.DIVERGED,
    "duplicate": Sign.DUPLICATE,
    "reordered": Sign.REORDERED,
    "returned-key": Sign.RETURNED,
    "aborted-read": Sign.ABORTED_READ,
    "early-read": Sign.EARLY,
    "torn-transaction": Sign.TORN,
    "zombie": Sign.ZOMBIE,
    "hanging-transaction": Sign.HANGING,
    "group-went-back": Sign.WENT_BACK,
    "two-owners": Sign.OWNERS,
}


def _unread(performance: Performance) -> Iterator[str]:
    """A log that was not read to its end may have lost more."""
    if not performance.report.drained and not performance.trace.for_good:
        yield "the log was not read to its end, so its losses are not known"


def _disagreements(shown: Expected, expected: Expected, performance: Performance) -> Iterator[str]:
    for what, had, wanted in (
        ("lost", shown.lost, expected.lost),
        ("acknowledged", shown.acknowledged, expected.acknowledged),
        ("skipped", shown.skipped, expected.skipped),
        ("seen", shown.signs, expected.signs),
    ):
        if more := sorted(had - wanted):
            yield f"{what}, and not expected to be: {', '.join(more)}"
        if less := sorted(wanted - had):
            yield f"expected to be {what}, and not: {', '.join(less)}"
    for lack in () if performance.trace.for_good else performance.report.unhealthy.values():
        yield f"the log partition did not come back: {lack}"


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
