"""A campaign: every run of a plan, one check of all histories, one report.

Nothing that exists is overwritten, and what was done stays when a run fails, the user interrupts, or the disk is full:
runs are complete in themselves, so ``ackproof check`` and ``ackproof report`` can be repeated on whatever there is.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from harness.campaign.pool import Job, Perform, run_jobs
from harness.campaign.progress import Progress
from harness.errors import HarnessError
from harness.machine import Machine, cores, this_machine, versions
from harness.plan import AnyWorld, Kafka, Plan, RealTime, RunSpec, WorldPlan
from harness.records.run_record import CAMPAIGN_FILE, PLAN_FILE, Ended, write_file
from harness.run.heal import heal, is_left_behind
from harness.run.phases import LATE_MS_MAX, WARM_UP_MS_MAX
from harness.worlds.kafka.releases import DEFAULT_VERSION

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


class Runs(msgspec.Struct, kw_only=True):
    """The runs of one world: how many, and in real worlds where nodes live, the release, and the client's library."""

    planned: int
    completed: int = 0
    failed: int = 0
    wall_ms: int = 0
    host: str | msgspec.UnsetType = msgspec.UNSET
    version: str | msgspec.UnsetType = msgspec.UNSET
    client: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, world: AnyWorld, planned: int) -> Runs:
        """None done yet."""
        version = (world.version or DEFAULT_VERSION) if isinstance(world, Kafka) else msgspec.UNSET
        client = world.client if isinstance(world, RealTime) else msgspec.UNSET
        return cls(planned=planned, host=world.host_name or msgspec.UNSET, version=version, client=client)


class CampaignRecord(msgspec.Struct, kw_only=True):
    """What ``campaign.json`` holds. Times are UTC; ``stages_ms`` is the wall time of each stage."""

    name: str
    seed: int
    status: str
    began: str
    command: str
    machine: Machine
    versions: dict[str, str]
    worlds: dict[str, Runs]
    stages_ms: dict[str, int] = {}
    failures: dict[str, str] = {}


class Stages(NamedTuple):
    """What a campaign is made of: performing one run, and what reads the campaign's files when all are done.

    ``witnesses`` names the runs whose stories will be told, ``trace`` makes them tell the cluster's side.
    """

    perform: Perform
    check: Callable[[Path, Progress], object]
    witnesses: Callable[[Path], list[Path]]
    trace: Callable[[Path], None]
    report: Callable[[Path], Path]


def conduct(plan: Plan, runs: list[RunSpec], directory: Path, stages: Stages, progress: Progress) -> Path:
    """Perform ``runs`` of ``plan`` in the empty ``directory``, check and report; the answer is the report.

    Raises:
        HarnessError: too many runs failed, or a stage could not do its work. Everything that was done stands in
            ``directory``.
        KeyboardInterrupt: the user wants no more; every world was closed.
    """
    conductor = _Conductor(plan, runs, directory, stages, progress)
    try:
        report = conductor.conduct()
        conductor.end("completed")
    except KeyboardInterrupt:
        conductor.end("interrupted")
        kept = f"interrupted; what was done is kept: ackproof check {directory}"
        raise KeyboardInterrupt(f"{kept}{_to_heal(directory)}") from None
    except HarnessError as error:
        conductor.end("failed")
        if told := _to_heal(directory):
            raise HarnessError(f"{error}{told}") from error
        raise
    except BaseException:
        conductor.end("failed")
        raise
    return report


def _to_heal(directory: Path) -> str:
    """What to say of runs that did not end in time to undo what they had done."""
    return f"; some of it was not undone: ackproof heal {directory}" if is_left_behind(directory) else ""


class _Conductor:
    """One campaign on its way."""

    def __init__(self, plan: Plan, runs: list[RunSpec], directory: Path, stages: Stages, progress: Progress) -> None:
        self.plan, self.runs, self.directory, self.stages, self.progress = plan, runs, directory, stages, progress
        planned = Counter(run.world.name for run in runs)
        self.record = CampaignRecord(
            name=plan.name,
            seed=plan.seed,
            status="running",
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            command=shlex.join(["ackproof", *sys.argv[1:]]),
            machine=this_machine(),
            versions=versions(),
            worlds={
                world.name: Runs.of(world, planned[world.name])
                for world in (one.world for one in plan.worlds)
                if planned[world.name]
            },
        )

    def conduct(self) -> Path:
        write_file(self.directory / PLAN_FILE, self.plan.text.encode())
        self.end("running")
        for world in self.plan.worlds:
            self.perform(world)
        with self.stage("check"):
            self.stages.check(self.directory, self.progress)
        with self.stage("trace"):
            self.trace()
        self.end("running")  # the report quotes campaign.json
        with self.stage("report"), self.progress.phase("writing the report", None):
            report = self.stages.report(self.directory)
        self.refuse_failures()
        return report

    def perform(self, world: WorldPlan) -> None:
        jobs = [Job(run, self.directory / run.directory()) for run in self.runs if run.world == world.world]
        name = world.world.name
        if not jobs:
            return
        with self.stage(name), self.progress.phase(f"{name} runs", len(jobs)):
            limit_s = max(_limit_s(job.spec) for job in jobs)
            run_jobs(jobs, world.parallel or cores(), self.stages.perform, limit_s, self.count)

    def trace(self) -> None:
        with self.progress.phase("choosing witnesses", None):
            witnesses = self.stages.witnesses(self.directory)
        if not witnesses:
            return
        with self.progress.phase("tracing witnesses", len(witnesses)):
            for witness in witnesses:
                self.stages.trace(witness)
                self.progress.advance()

    def count(self, job: Job, ended: Ended) -> None:
        """One run has ended."""
        runs = self.record.worlds[job.spec.world.name]
        runs.wall_ms += ended.wall_ms
        runs.completed += ended.status == "completed"
        if ended.status != "completed":
            runs.failed += 1
            self.progress.say(f"{job.spec.directory()} failed: {ended.reason}")
            if len(self.record.failures) < QUOTED_MAX:
                self.record.failures[str(job.spec.directory())] = str(ended.reason)
            heal(job.directory)
            if not runs.completed and _failed_first_max(job.spec) <= runs.failed < runs.planned:
                first, last = ("first", "") if runs.failed == 1 else (f"first {runs.failed}", "the last: ")
                raise HarnessError(
                    f"the {first} of {runs.planned} runs in the {job.spec.world.name} world failed in the harness "
                    f"({last}{ended.reason}); what was done stands in {self.directory}"
                )
        self.progress.advance(f"{runs.failed} failed" if runs.failed else "")

    def refuse_failures(self) -> None:
        for world, runs in self.record.worlds.items():
            if runs.failed > FAILED_SHARE_MAX * runs.planned:
                first = next((reason for run, reason in self.record.failures.items() if f"runs/{world}/" in run), "")
                raise HarnessError(
                    f"{runs.failed} of {runs.planned} runs in the {world} world failed in the harness, so its cells "
                    f"say little (the first: {first}); the report of the rest is in {self.directory}"
                )

    def stage(self, name: str) -> _Stopwatch:
        return _Stopwatch(self.record.stages_ms, name)

    def end(self, status: str) -> None:
        self.record.status = status
        encoded = msgspec.json.format(msgspec.json.encode(self.record), indent=2)
        write_file(self.directory / CAMPAIGN_FILE, encoded + b"\n")


class _Stopwatch:
    """Writes down the milliseconds between its begin and end."""

    def __init__(self, times: dict[str, int], name: str) -> None:
        self._times, self._name, self._began = times, name, 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._times[self._name] = round((time.monotonic() - self._began) * 1000)


def _failed_first_max(spec: RunSpec) -> int:
    return FAILED_FIRST_ELSEWHERE_MAX if spec.world.elsewhere else FAILED_FIRST_MAX


def _limit_s(spec: RunSpec) -> float:
    """Wall seconds after which a run is given up: its phases, the client's own limits, and the start."""
    if spec.world.virtual_time:
        return SIMULATED_LIMIT_S
    settings, workload = spec.chosen(), spec.workload
    answers_ms = settings.delivery_timeout_ms + settings.request_timeout_ms
    phases_ms = WARM_UP_MS_MAX + workload.duration_ms + LATE_MS_MAX + workload.drain_limit_ms
    return (phases_ms + answers_ms) / 1000 + STARTING_LIMIT_S
