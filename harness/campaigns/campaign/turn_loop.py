"""The loop of campaigns and soaks: workers perform turns, failures are counted, and verdicts come meanwhile.

A turn is one run. A campaign has a list of turns (:mod:`harness.campaigns.campaign.runs`), a soak draws them
(:mod:`harness.campaigns.soak.soak_loop`). Either says which turns may begin, and keeps their results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from harness.campaigns.campaign.judged_histories import JudgedHistory
from harness.campaigns.campaign.pool import Job
from harness.campaigns.campaign.simulated_cost import simulated_s
from harness.ground.progress import Progress
from harness.plan import AnyWorld, RunSpec
from harness.records.run_record import Ended
from harness.runs.run import WARM_UP_MS_MAX, heal, late_ms_max

#: Seconds between two looks at the clock, and at what has ended.
STEP_S: Final = 0.25
#: Runs that one check takes at most.
BATCH_MAX: Final = 200
#: A world is given up when this many of its runs in a row failed: the rest would do the same.
FAILED_IN_ROW_MAX: Final = 3
#: The same on a cluster or machines elsewhere before a run of it has completed. What keeps the first run out (an
#: address, a key, a right) keeps out the next, and those who own them need not see it tried again.
FAILED_FIRST_ELSEWHERE_MAX: Final = 1
#: A world with more failed runs than this share was not examined: the campaign or the soak as a whole has failed.
FAILED_SHARE_MAX: Final = 0.1
#: Wall seconds for one run in virtual time, which gives way to all other programs: the least (the standard schedule
#: takes a twentieth of a second), and the number for each second of processor time that it is estimated to take.
SIMULATED_LIMIT_S: Final = 300.0
SIMULATED_PATIENCE: Final = 30.0
#: Wall seconds of a run in real time beyond its workload and drain: starting, waiting for a full ISR, closing.
STARTING_LIMIT_S: Final = 150.0


class Runs(Protocol):
    """Performs runs (:class:`harness.campaigns.campaign.Pool`)."""

    @property
    def busy(self) -> int:
        """Runs that are under way."""

    def perform_job(self, job: Job, limit_s: float) -> None:
        """Begin one run."""

    def wait(self, patience_s: float | None = None) -> list[tuple[Job, Ended]]:
        """Return the runs that have ended; wait for one no longer than ``patience_s``."""

    def close(self) -> None:
        """Stop those that have not ended."""


class Checks(Protocol):
    """Judges runs, a batch at a time (:class:`harness.campaigns.campaign.judging_thread.Checking`)."""

    @property
    def busy(self) -> bool:
        """True while a batch is being judged."""

    def begin(self, directories: Sequence[Path]) -> None:
        """Judge the runs in these directories."""

    def answer(self, patience_s: float = 0.0) -> list[JudgedHistory] | None:
        """Return the verdicts on the batch, None while it is being judged; wait no longer than ``patience_s``."""


class TurnLoop(ABC):
    """Performs the turns of one ``directory`` and has them judged.

    Attributes:
        running: the runs that are under way, by their directories.
        given_up: why a world is given up, by its name.
    """

    def __init__(
        self, directory: Path, *, runs: Runs, checks: Checks, progress: Progress, clock: Callable[[], float]
    ) -> None:
        self._directory, self._runs, self._checks = directory, runs, checks
        self._progress, self._clock = progress, clock
        self._batch_at = clock()
        self._failed: Counter[str] = Counter()
        self._reached: set[str] = set()
        self.running: dict[Path, Job] = {}
        self.given_up: dict[str, str] = {}

    # A campaign or a soak says

    @abstractmethod
    def _begin_turns(self) -> None:
        """Begin the turns that may begin now (:meth:`_begin_run`)."""

    @abstractmethod
    def _keep(self, job: Job, ended: Ended) -> None:
        """Note that a run has ended."""

    @abstractmethod
    def _give_up(self, world: str, why: str) -> None:
        """Note that no more runs of ``world`` are begun."""

    @abstractmethod
    def _waiting(self) -> Sequence[Path]:
        """The directories of runs that have ended and have no verdict, the oldest first."""

    @abstractmethod
    def _is_due(self, waiting: int, since_s: float) -> bool:
        """True where this many runs that wait are to be judged now; the last batch began ``since_s`` seconds ago."""

    @abstractmethod
    def _settle(self, judged: Sequence[JudgedHistory]) -> None:
        """Take up the verdicts on the batch, which was the first of those that wait."""

    # The loop

    def _begin_run(self, spec: RunSpec, directory: Path) -> None:
        self.running[directory] = job = Job(spec, directory)
        self._runs.perform_job(job, limit_of(spec))

    def _has_room(self, world: AnyWorld, parallel: int) -> bool:
        """True where ``world`` is not given up, and fewer than ``parallel`` of its runs are under way."""
        under_way = sum(job.spec.world.name == world.name for job in self.running.values())
        return world.name not in self.given_up and under_way < parallel

    def _step(self) -> None:
        """Take what has ended and what was judged, and have judged what waits."""
        for job, ended in self._runs.wait(STEP_S) if self._runs.busy else ():
            self._end_run(job, ended)
        self._take_verdicts(0.0 if self._runs.busy or not self._checks.busy else STEP_S)
        if (waiting := len(self._waiting())) and self._is_due(waiting, self._clock() - self._batch_at):
            self._check()

    def _take_verdicts(self, patience_s: float) -> None:
        """Take up the verdicts on the batch if they are there, or come in time."""
        if (judged := self._checks.answer(patience_s)) is not None:
            self._settle(judged)

    def _end_run(self, job: Job, ended: Ended) -> None:
        del self.running[job.directory]
        if ended.status != "completed":
            self._progress.say(f"{job.directory.relative_to(self._directory)} failed: {ended.reason}")
            heal(job.directory)
        self._keep(job, ended)
        self._count_failure(job.spec.world, ended)

    def _count_failure(self, world: AnyWorld, ended: Ended) -> None:
        """Give the world up where its runs do nothing but fail."""
        name = world.name
        if ended.status == "completed":
            self._failed[name] = 0
            self._reached.add(name)
            return
        self._failed[name] += 1
        first = world.elsewhere and name not in self._reached
        most = FAILED_FIRST_ELSEWHERE_MAX if first else FAILED_IN_ROW_MAX
        if self._failed[name] >= most and name not in self.given_up:
            runs = "its first run" if self._failed[name] == 1 else f"{self._failed[name]} runs in a row"
            self.given_up[name] = f"the {name} world is given up: {runs} failed ({ended.reason})"
            self._give_up(name, self.given_up[name])

    def _check(self) -> None:
        """Have what waits judged, if nothing else is."""
        if not self._checks.busy:
            self._batch_at = self._clock()
            self._checks.begin(self._waiting()[:BATCH_MAX])

    def stop_runs(self) -> None:
        """End the runs that are under way and undo what they did."""
        self._runs.close()
        for directory in self.running:
            if directory.exists():
                heal(directory)
        self.running.clear()


def limit_of(spec: RunSpec) -> float:
    """Wall seconds after which a run is given up: its phases, the client's own limits, and the start."""
    if spec.world.virtual_time:
        return max(SIMULATED_LIMIT_S, SIMULATED_PATIENCE * simulated_s(spec.workload))
    workload = spec.workload
    phases_ms = WARM_UP_MS_MAX + workload.duration_ms + late_ms_max(spec) + workload.ending_limit_ms
    return (phases_ms + spec.chosen().answer_limit_ms) / 1000 + STARTING_LIMIT_S
