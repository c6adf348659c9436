"""The first stage of a campaign: the turns of a list are performed, and counted with their verdicts so far.

Runs are complete in themselves. One that failed in the harness says nothing about the log and costs a campaign nothing,
unless a world was not examined.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from checkers import counted
from harness.campaigns.campaign.judged_histories import JudgedHistory
from harness.campaigns.campaign.pool import Job
from harness.campaigns.campaign.turn_loop import FAILED_SHARE_MAX, STEP_S, Checks, Runs, TurnLoop
from harness.ground.errors import AckproofError, HarnessError
from harness.ground.machine.versions import cores
from harness.ground.progress import Progress
from harness.plan import RunSpec, WorldPlan
from harness.records.campaign_record import CampaignRecord
from harness.records.run_record import Ended

#: Failures that campaign.json quotes; every run.json has its own.
QUOTED_MAX: Final = 20
#: Seconds between two batches that are judged while runs go on: those who wait see verdicts, the runs have the machine.
BATCH_S: Final = 30.0


class PendingRuns(NamedTuple):
    """The runs of one world that are to be done."""

    world: WorldPlan
    runs: Sequence[RunSpec]

    @property
    def name(self) -> str:
        """The world's name."""
        return self.world.world.name


def side_by_side(groups: Sequence[PendingRuns]) -> list[list[PendingRuns]]:
    """``groups`` in rounds: virtual time takes the processors that the first world in real time leaves.

    Two worlds in real time would disturb each other, so they have rounds of their own.
    """
    virtual = [group for group in groups if group.world.world.virtual_time]
    rounds = [[group] for group in groups if not group.world.world.virtual_time] or [[]]
    rounds[0] += virtual
    return rounds if groups else []


class CampaignRuns(TurnLoop):
    """Performs runs below ``directory``, and counts them in the campaign's ``record``.

    Verdicts that come meanwhile are shown and not kept: the next stage judges all runs, in one job.
    """

    def __init__(
        self,
        directory: Path,
        record: CampaignRecord,
        *,
        runs: Runs,
        checks: Checks,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(directory, runs=runs, checks=checks, progress=progress, clock=clock)
        self._record = record
        self._left: list[tuple[WorldPlan, deque[RunSpec]]] = []
        self._unjudged: list[Path] = []
        self._outcomes: Counter[str] = Counter()
        self._judges = True

    def perform_runs(self, groups: Sequence[PendingRuns]) -> None:
        """Perform ``groups`` of runs side by side. What a world that is given up has left is not performed."""
        self._left = [(group.world, deque(group.runs)) for group in groups]
        names = " and ".join(group.name for group in groups)
        with self._progress.phase(f"{names} runs", sum(len(group.runs) for group in groups)):
            try:
                self._perform_left()
            finally:
                self._runs.close()

    def _perform_left(self) -> None:
        self._begin_turns()
        while self.running:
            self._step()
            self._begin_turns()

    def end_checks(self) -> None:
        """Wait for the batch that is being judged: the next stage wants its place."""
        while self._judges and self._checks.busy:
            self._take_verdicts(STEP_S)

    def _begin_turns(self) -> None:
        for world, runs in self._left:
            while runs and self._has_room(world.world, world.parallel or cores()):
                spec = runs.popleft()
                self._begin_run(spec, self._directory / spec.directory())

    def _keep(self, job: Job, ended: Ended) -> None:
        runs = self._record.worlds[job.spec.world.name]
        runs.wall_ms += ended.wall_ms
        if ended.status == "completed":
            runs.completed += 1
            self._unjudged.append(job.directory)
        else:
            runs.failed += 1
            if len(self._record.failures) < QUOTED_MAX:
                self._record.failures[str(job.spec.directory())] = str(ended.reason)
        failed = [f"{runs.failed} failed"] if runs.failed else []
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self._outcomes.most_common())
        judged = [f"{self._outcomes.total()} judged: {outcomes}"] if outcomes else []
        self._progress.advance(", ".join([*failed, *judged]))

    def _give_up(self, world: str, why: str) -> None:
        """Say so, unless every run of the world has begun: then nothing is given up."""
        if any(runs for plan, runs in self._left if plan.world.name == world):
            self._progress.say(why)
        else:
            del self.given_up[world]

    def _waiting(self) -> Sequence[Path]:
        return self._unjudged

    def _is_due(self, waiting: int, since_s: float) -> bool:  # noqa: ARG002 - however many there are
        return self._judges and since_s >= BATCH_S

    def _take_verdicts(self, patience_s: float) -> None:
        """A check that fails costs what would have been shown; the next stage checks again."""
        try:
            super()._take_verdicts(patience_s)
        except AckproofError as error:
            self._judges = False
            self._progress.say(f"no verdicts while runs go on: {error}")

    def _settle(self, judged: Sequence[JudgedHistory]) -> None:
        del self._unjudged[: len(judged)]
        self._outcomes.update(str(history.outcome) for history in judged)

    def refuse_nothing_done(self) -> None:
        """Refuse to judge and report nothing.

        Raises:
            HarnessError: worlds were given up, and no run of the campaign has completed.
        """
        if self.given_up and not any(runs.completed for runs in self._record.worlds.values()):
            raise HarnessError(f"{'; '.join(self.given_up.values())}; what was done is in {self._directory}")

    def refuse_failures(self) -> None:
        """Say that a world was not examined.

        Raises:
            HarnessError: it was given up, or more than FAILED_SHARE_MAX of its runs failed.
        """
        if self.given_up:
            left = sum(runs.planned - runs.completed - runs.failed for runs in self._record.worlds.values())
            why = "; ".join(self.given_up.values())
            rest = f"not performed: {counted(left, 'run')}; the report of the rest is in {self._directory}"
            raise HarnessError(f"{why}; {rest}")
        for world, runs in self._record.worlds.items():
            if runs.failed > FAILED_SHARE_MAX * runs.planned:
                failures = self._record.failures.items()
                first = next((reason for run, reason in failures if f"runs/{world}/" in run), "")
                raise HarnessError(
                    f"{runs.failed} of {runs.planned} runs in the {world} world failed in the harness, so its cells "
                    f"say little (the first: {first}); the report of the rest is in {self._directory}"
                )
