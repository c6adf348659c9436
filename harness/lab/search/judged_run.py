"""One simulated run wholly in memory, judged by what judges every other run: no files, no Spark, one process.

It costs little more than the simulation itself, so that a search can afford thousands.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import msgspec

from checkers import SHOWN, Judgement, Verdict, check_rows, judge
from harness.ground.choices import Choices, Recording
from harness.ground.errors import PlanError
from harness.plan import RunSpec, Simulated
from harness.records.replica_dump import replicas_in_memory
from harness.runs.run import choices_of, perform_schedule
from harness.worlds.simulated import SimulatedWorld
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import BrokenInvariant, Settings
from workloads.garbage_collection import without_collecting
from workloads.history import HistoryInMemory

#: Groups that are kept for longer outlive a run. The rest have this time to be given up by, and forgotten.
OUTLIVED_MINUTES: Final = 2
FORGETTING_US: Final = 10_000_000


class OtherDraws(NamedTuple):
    """From ``time_us`` of the run's clock on, every draw of chance is that of another ``seed``."""

    time_us: int
    seed: int


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that was performed and judged.

    ``spec`` has the ``schedule`` that was performed, so that attempting it again with ``recording`` gives the same.
    ``broken`` is None where no invariant was broken, or no invariants were checked.
    """

    spec: RunSpec
    verdict: Verdict
    judgement: Judgement
    schedule: Schedule
    receipts: list[Receipt]
    recording: Recording
    broken: BrokenInvariant | None = None

    @property
    def choices(self) -> Choices:
        """The choices of this run, to be performed again."""
        return Choices.recorded(self.recording)


@without_collecting()  # One look for garbage when all is over, as where runs are performed.
def run_in_memory(
    spec: RunSpec,
    *,
    schedule: Schedule | None = None,
    choices: Choices | None = None,
    invariants: bool = True,
    others: OtherDraws | None = None,
    shown: int | None = SHOWN,
) -> JudgedRun:
    """Perform ``spec`` in virtual time and judge it.

    ``schedule`` is performed as it is; without one it is that of ``spec``, or drawn as in every run. ``choices`` take
    the place of those that follow from the seed. Without ``invariants`` they are not checked.
    ``others`` take over at a moment of the run; then also where nothing was left to chance. ``shown`` is the most
    findings that are kept of each anomaly.

    Raises:
        PlanError: ``spec`` is not of the simulated world, or performs a scripted story.
        HarnessError: the run could not be done; ChoicesError among them, where recorded choices do not fit it.
    """
    if not isinstance(spec.world, Simulated) or spec.story:
        raise PlanError("only runs of the simulated world without a scripted story can be attempted in memory")
    if schedule is not None:
        spec = msgspec.structs.replace(spec, schedule=schedule)
    drawn = choices or choices_of(spec)
    world = SimulatedWorld(spec, drawn, invariants=invariants)
    if others is not None:
        world.clock.call_at(others.time_us, partial(drawn.reseed, others.seed))
    recorder = HistoryInMemory()
    report = perform_schedule(spec, world, recorder, drawn.draw, partial(_outlive_groups, world, spec.chosen()))
    replicas = replicas_in_memory(report.ends, world.replica_logs())
    verdict = check_rows(recorder.rows, name=str(spec.directory()), replicas=replicas, shown=shown)
    return JudgedRun(
        spec=msgspec.structs.replace(spec, schedule=report.schedule),
        verdict=verdict,
        judgement=judged(spec, verdict),
        schedule=report.schedule,
        receipts=report.faults,
        recording=drawn.recording(),
        broken=world.broken_invariant,
    )


def _outlive_groups(world: SimulatedWorld, settings: Settings) -> None:
    """Leave the cluster alone until its groups are forgotten: invariants look, and no history has to know of it."""
    if settings.offsets_retention_minutes <= OUTLIVED_MINUTES:
        kept_us = settings.offsets_retention_minutes * 60_000_000
        world.drive(lambda: False, world.clock.now_us() + kept_us + FORGETTING_US)


def judged(spec: RunSpec, verdict: Verdict) -> Judgement:
    """The judgement of ``verdict`` under the promise of the run's settings."""
    return judge(spec.chosen(), verdict, spec.faults.exercised_min, spec.family.split("+"))
