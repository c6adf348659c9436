"""The first stage of a campaign: its runs are performed in worker processes, and their ends are counted.

Runs are complete in themselves. One that failed in the harness says nothing about the log and costs a campaign nothing,
unless there are so many that the rest would do the same, or that a world was not examined.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.campaign.pool import Job, PerformRun, Queue, perform_jobs
from harness.errors import HarnessError
from harness.machine.versions import cores
from harness.plan import RunSpec, WorldPlan
from harness.progress import Progress
from harness.records.campaign_record import CampaignRecord
from harness.records.run_record import Ended
from harness.run import LATE_MS_MAX, WARM_UP_MS_MAX, heal

#: A world with more failed runs than this share was not examined: the campaign as a whole has failed.
FAILED_SHARE_MAX: Final = 0.1
#: When this many runs of a world have failed and none has completed, the rest would do the same.
FAILED_FIRST_MAX: Final = 3
#: The same on a cluster or machines elsewhere: what keeps the first run out (an address, a key, a right) keeps out the
#: next, and those who own them need not see it tried again.
FAILED_FIRST_ELSEWHERE_MAX: Final = 1
#: Wall seconds for one run in virtual time; the standard schedule takes a twentieth of a second.
SIMULATED_LIMIT_S: Final = 300.0
#: Wall seconds of a run in real time beyond its workload and drain: starting, waiting for a full ISR, closing.
STARTING_LIMIT_S: Final = 150.0
#: Failures that campaign.json quotes; every run.json has its own.
QUOTED_MAX: Final = 20


class Group(NamedTuple):
    """The runs of one world that are to be done."""

    world: WorldPlan
    runs: Sequence[RunSpec]

    @property
    def name(self) -> str:
        """The world's."""
        return self.world.world.name


def side_by_side(groups: Sequence[Group]) -> list[list[Group]]:
    """``groups`` in turns: virtual time takes the processors that the first world in real time leaves.

    Two worlds in real time would disturb each other, so they have turns of their own.
    """
    virtual = [group for group in groups if group.world.world.virtual_time]
    turns = [[group] for group in groups if not group.world.world.virtual_time] or [[]]
    turns[0] += virtual
    return turns if groups else []


class Performing:
    """Performs runs below ``directory``, and counts them in the campaign's ``record``."""

    def __init__(self, directory: Path, record: CampaignRecord, perform_run: PerformRun, progress: Progress) -> None:
        self._directory, self._record, self._perform_run, self._progress = directory, record, perform_run, progress

    def perform_runs(self, groups: Sequence[Group]) -> None:
        """Perform ``groups`` of runs side by side.

        Raises:
            HarnessError: the first ones of a world failed, and none completed; the rest was not tried.
        """
        names = " and ".join(group.name for group in groups)
        with self._progress.phase(f"{names} runs", sum(len(group.runs) for group in groups)):
            perform_jobs([self._queue(group) for group in groups], self._perform_run, self._count)

    def _queue(self, group: Group) -> Queue:
        jobs = deque(Job(run, self._directory / run.directory()) for run in group.runs)
        return Queue(jobs, group.world.parallel or cores(), max(limit_of(run) for run in group.runs))

    def refuse_failures(self) -> None:
        """Say that a world was not examined.

        Raises:
            HarnessError: more than FAILED_SHARE_MAX of its runs failed.
        """
        for world, runs in self._record.worlds.items():
            if runs.failed > FAILED_SHARE_MAX * runs.planned:
                failures = self._record.failures.items()
                first = next((reason for run, reason in failures if f"runs/{world}/" in run), "")
                raise HarnessError(
                    f"{runs.failed} of {runs.planned} runs in the {world} world failed in the harness, so its cells "
                    f"say little (the first: {first}); the report of the rest is in {self._directory}"
                )

    def _count(self, job: Job, ended: Ended) -> None:
        """One run has ended."""
        runs = self._record.worlds[job.spec.world.name]
        runs.wall_ms += ended.wall_ms
        runs.completed += ended.status == "completed"
        if ended.status != "completed":
            runs.failed += 1
            self._fail(job, str(ended.reason))
        self._progress.advance(f"{runs.failed} failed" if runs.failed else "")

    def _fail(self, job: Job, reason: str) -> None:
        self._progress.say(f"{job.spec.directory()} failed: {reason}")
        if len(self._record.failures) < QUOTED_MAX:
            self._record.failures[str(job.spec.directory())] = reason
        heal(job.directory)
        runs, world = self._record.worlds[job.spec.world.name], job.spec.world
        most = FAILED_FIRST_ELSEWHERE_MAX if world.elsewhere else FAILED_FIRST_MAX
        if not runs.completed and most <= runs.failed < runs.planned:
            first, last = ("first", "") if runs.failed == 1 else (f"first {runs.failed}", "the last: ")
            raise HarnessError(
                f"the {first} of {runs.planned} runs in the {world.name} world failed in the harness "
                f"({last}{reason}); what was done is in {self._directory}"
            )


def limit_of(spec: RunSpec) -> float:
    """Wall seconds after which a run is given up: its phases, the client's own limits, and the start."""
    if spec.world.virtual_time:
        return SIMULATED_LIMIT_S
    workload = spec.workload
    phases_ms = WARM_UP_MS_MAX + workload.duration_ms + LATE_MS_MAX + workload.ending_limit_ms
    return (phases_ms + spec.chosen().answer_limit_ms) / 1000 + STARTING_LIMIT_S
