"""A campaign: stages over one directory. Each reads files and writes files, and can be repeated alone.

``runs`` performs every run of the plan; ``check`` judges all histories in one Spark job and writes ``verdicts.jsonl``
and ``matrix.json``; ``witnesses`` writes ``witnesses.json`` and leaves a trace of the cluster in those runs; ``report``
writes ``matrix.md`` and ``report.html``. Nothing that completed is overwritten, and what was done stays when a run
fails, the user interrupts, or the disk is full: then the campaign can be continued.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

import msgspec

from checkers import prepare
from harness.campaigns.campaign.continuing import record_of_ended, undo_and_delete
from harness.campaigns.campaign.judged_histories import check_campaign
from harness.campaigns.campaign.judging_thread import Checking
from harness.campaigns.campaign.pool import PerformRun, Pool
from harness.campaigns.campaign.runs import CampaignRuns, PendingRuns, side_by_side
from harness.campaigns.campaign.spread_runs import SpreadRuns
from harness.campaigns.campaign.witnesses import witness
from harness.ground.errors import HarnessError, NamedWronglyError, PlanError
from harness.ground.machine.this_call import this_command, utc_now
from harness.ground.machine.versions import this_machine, versions
from harness.ground.progress import Progress
from harness.plan import ACCEPTED_FILE, AnyWorld, Kafka, Plan, RealTime, RunSpec
from harness.records.campaign_record import (
    CampaignRecord,
    Continuation,
    WorldRuns,
    read_campaign_record,
    write_campaign_record,
)
from harness.records.files import PLAN_FILE, REPORT_FILE, files_of, only_user_of, run_directories, write_file
from harness.runs.run import perform_run, to_heal


class Stage(NamedTuple):
    """One stage after the runs: its name in ``campaign.json``, and what it does with a campaign's directory.

    ``prepare`` is called in a thread while the last runs go on, if there are several.
    """

    name: str
    work: Callable[[Path, Progress], object]
    prepare: Callable[[], None] | None = None


def write_report(directory: Path, progress: Progress) -> None:
    """The stage of the report, of a directory that was checked and has its witnesses."""
    from harness.campaigns.report import write  # noqa: PLC0415 - charts take half a second to load, and `check` draws none

    with progress.phase("writing the report", None):
        write(directory)


#: The stages after the runs, in this order.
STAGES: Final = (Stage("check", check_campaign, prepare), Stage("witnesses", witness), Stage("report", write_report))


class Campaign:
    """The ``runs`` of a plan in one directory; some of them may be ``done`` already."""

    def __init__(self, plan: Plan, runs: Sequence[RunSpec], directory: Path, record: CampaignRecord) -> None:
        self._plan, self._runs, self._directory = plan, runs, directory
        self._record = record
        self._done: set[Path] = set()

    @classmethod
    def new(cls, plan: Plan, runs: Sequence[RunSpec], directory: Path) -> Campaign:
        """A campaign that begins in the empty ``directory``."""
        record = CampaignRecord(
            name=plan.name,
            plan=plan.file,
            seed=plan.seed,
            status="running",
            began=utc_now(),
            command=this_command(),
            machine=this_machine(),
            versions=versions(),
            worlds=_planned(runs),
            cells=_cells(runs),
        )
        return cls(plan, runs, directory, record)

    @classmethod
    def continued(cls, plan: Plan, directory: Path) -> Campaign:
        """The campaign of ``plan`` that was begun in ``directory``: runs that completed are not done again.

        Raises:
            NamedWronglyError: there is no campaign, or one of another plan, or of another version of the program whose
                runs are not these.
        """
        record = read_campaign_record(directory)
        if record is None:
            raise NamedWronglyError(f"{directory} holds no campaign to be continued; leave --continue out to begin one")
        runs = plan.runs()
        _refuse_another_plan(plan, runs, directory, record)
        campaign = cls(plan, runs, directory, record)
        record.worlds, record.cells, record.failures = _planned(runs), _cells(runs), {}
        record.continued.append(Continuation(began=utc_now(), command=this_command(), versions=versions()))
        for run in runs:
            campaign._keep(run)
        return campaign

    def _keep(self, run: RunSpec) -> None:
        """Count ``run`` as done if it completed; one that failed is performed again, for its cell lacks it."""
        directory = self._directory / run.directory()
        record = record_of_ended(directory)
        if record is None or record.ended.status != "completed":
            return
        if record.spec() != run:
            raise NamedWronglyError(
                f"{directory} is another run than the plan asks for now, so another version of the program made it; "
                "begin a new campaign"
            )
        self._done.add(directory)
        counted = self._record.worlds[run.world.name]
        counted.completed += 1
        counted.wall_ms += record.ended.wall_ms

    @property
    def missing(self) -> list[RunSpec]:
        """The runs that are to be done."""
        return [run for run in self._runs if self._directory / run.directory() not in self._done]

    def perform_stages(
        self,
        progress: Progress,
        *,
        perform_run: PerformRun = perform_run,
        stages: Sequence[Stage] = STAGES,
        master: str | None = None,
    ) -> Path:
        """Perform what is missing, and do the other stages; the answer is the report's path.

        With a ``master``, all runs are in virtual time, and its Spark cluster performs them.

        Raises:
            HarnessError: too many runs failed, or a stage could not do its work. Everything that was done is kept.
            ResultsError: another ackproof works on this campaign now.
            KeyboardInterrupt: the user wants no more; every world was closed.
        """
        with only_user_of(self._directory):
            try:
                self._perform_each(progress, perform_run, stages, master)
            except KeyboardInterrupt:
                self._write("interrupted")
                kept = f"interrupted; what was done is kept; judge it with: ackproof check {self._directory}"
                if len(self._runs) > 1:
                    kept += f", or do the rest with: ackproof campaign PLAN --out {self._directory} --continue"
                raise KeyboardInterrupt(f"{kept}{to_heal(self._directory)}") from None
            except HarnessError as error:
                self._write("failed")
                if left := to_heal(self._directory):
                    raise HarnessError(f"{error}{left}") from error
                raise
            except BaseException:
                self._write("failed")
                raise
        return self._directory / REPORT_FILE

    def _perform_each(
        self, progress: Progress, perform_run: PerformRun, stages: Sequence[Stage], master: str | None
    ) -> None:
        write_plan(self._plan, self._directory)
        self._write("running")
        missing = self.missing
        for run in missing:
            undo_and_delete(self._directory / run.directory())
        performing = self._performing(progress, perform_run, master)
        groups = [
            PendingRuns(world, [run for run in missing if run.world == world.world]) for world in self._plan.worlds
        ]
        rounds = side_by_side([group for group in groups if group.runs])
        for groups in rounds:
            if master is None and len(missing) > 1 and groups is rounds[-1]:  # a process has one Spark
                _prepare(stages)
            with self._timed("+".join(group.name for group in groups)):
                performing.perform_runs(groups)
        performing.refuse_nothing_done()
        performing.end_checks()
        for stage in stages:
            self._write("running")  # the report quotes campaign.json
            with self._timed(stage.name):
                stage.work(self._directory, progress)
        performing.refuse_failures()
        self._write("completed")

    def _performing(self, progress: Progress, perform_run: PerformRun, master: str | None) -> CampaignRuns:
        directory, record = self._directory, self._record
        if master is not None:
            return SpreadRuns(directory, record, master=master, perform_run=perform_run, progress=progress)
        return CampaignRuns(directory, record, runs=Pool(perform_run), checks=Checking(), progress=progress)

    def _write(self, status: str) -> None:
        self._record.status = status
        write_campaign_record(self._directory, self._record)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._record.stages_ms[stage] = round((time.monotonic() - began) * 1000)


def _prepare(stages: Sequence[Stage]) -> None:
    for stage in stages:
        if stage.prepare is not None:
            threading.Thread(target=stage.prepare, name=f"prepares {stage.name}", daemon=True).start()


def _planned(runs: Sequence[RunSpec]) -> dict[str, WorldRuns]:
    """None of the runs done yet, by the name of their world."""
    worlds = {run.world.name: run.world for run in runs}
    return {name: world_runs(worlds[name], count) for name, count in Counter(run.world.name for run in runs).items()}


def _cells(runs: Sequence[RunSpec]) -> int:
    return len({(run.world.name, run.cell) for run in runs})


def world_runs(world: AnyWorld, planned: int) -> WorldRuns:
    """Counts of ``world`` with this number of planned runs, none of them done."""
    others = world.other_clients if isinstance(world, Kafka) else ()
    return WorldRuns(
        planned=planned,
        host=world.host_name or msgspec.UNSET,
        version=_release_or_default(world.version) if isinstance(world, Kafka) else msgspec.UNSET,
        client=world.client_name if isinstance(world, RealTime) else msgspec.UNSET,
        client_version=_release_or_default(world.client_release) if _has_java(world) else msgspec.UNSET,
        other_clients=tuple(":".join(filter(None, client)) for client in others) or msgspec.UNSET,
    )


def _has_java(world: AnyWorld) -> TypeGuard[RealTime]:
    """True if the clients are of Kafka's own library, whose release is not among the installed distributions."""
    return isinstance(world, RealTime) and world.client == "java"


def _release_or_default(release: str) -> str:
    from harness.worlds.kafka.releases import DEFAULT_VERSION  # noqa: PLC0415 - brings client libraries

    return release or DEFAULT_VERSION


def write_plan(plan: Plan, directory: Path) -> None:
    """Write the plan's files into a campaign's ``directory``.

    Raises:
        ResultsError: they cannot be written.
    """
    for name, content in _written_first(plan).items():
        with files_of(file := directory / name):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content)


#: The name of a file while it is written (:func:`harness.records.files.write_file`).
_UNFINISHED: Final = re.compile(r"\..+\.\d+")


def is_unbegun(directory: Path, plan: Plan) -> bool:
    """True where ``directory`` has nothing but files of this plan: a campaign was killed before its first run."""
    if not directory.is_dir():
        return False
    written = _written_first(plan)
    with files_of(directory):
        files = [path for path in directory.iterdir() if not _UNFINISHED.fullmatch(path.name)]
        return all(path.is_file() and written.get(path.name) == path.read_bytes() for path in files)


def _written_first(plan: Plan) -> dict[str, bytes]:
    return _plan_files(plan) | ({ACCEPTED_FILE: plan.accepted.encode()} if plan.accepted else {})


def _plan_files(plan: Plan) -> dict[str, bytes]:
    """The plan as it was given, and the story file that it names, by their paths in the campaign's directory."""
    own = {plan.own_story.file: plan.own_story.text.encode()} if plan.own_story else {}
    return {PLAN_FILE: plan.text.encode(), **own}


def _refuse_another_plan(plan: Plan, runs: Sequence[RunSpec], directory: Path, record: CampaignRecord) -> None:
    with files_of(directory):
        same = all((directory / name).read_bytes() == content for name, content in _plan_files(plan).items())
    if not same or record.seed != plan.seed:
        raise PlanError(
            f"{directory} was begun with another plan, or another seed (see {directory / PLAN_FILE}); continue it with "
            "that one, or begin a new campaign"
        )
    planned = {directory / run.directory() for run in runs}
    if strange := [run for run in run_directories(directory) if run not in planned]:
        raise NamedWronglyError(
            f"{strange[0]} is not a run of this plan; continue with the plan that made it, or begin a new campaign"
        )
