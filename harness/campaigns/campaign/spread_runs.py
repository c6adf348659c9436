"""The first stage of a campaign on a Spark cluster: executors perform its runs, and this process writes their files.

Executors see no directory of this machine, so each run is performed in one of theirs, which is gone afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from typing_extensions import override

from checkers import Scratch, ScratchKind
from harness.campaigns.campaign.judging_thread import Checking
from harness.campaigns.campaign.pool import Job, PerformRun, Pool, perform_within_limit
from harness.campaigns.campaign.runs import CampaignRuns
from harness.campaigns.campaign.turn_loop import limit_of
from harness.ground.errors import AckproofError
from harness.ground.machine.spread import spread
from harness.ground.progress import Progress
from harness.plan import RunSpec
from harness.records.campaign_record import CampaignRecord
from harness.records.files import RUN_FILE, files_of, write_file
from harness.records.run_record import Ended, write_record

#: Runs that are given to an executor at a time.
BLOCK: Final = 4


class SentRun(NamedTuple):
    """A run as an executor sends it: its end, and the files of its directory by their paths there."""

    ended: Ended
    files: dict[str, bytes]


class SpreadRuns(CampaignRuns):
    """Performs runs in virtual time on the Spark cluster of ``master``, and counts them as they come.

    None is judged meanwhile: a process has one Spark, and the next stage judges on this machine.
    """

    def __init__(
        self, directory: Path, record: CampaignRecord, *, master: str, perform_run: PerformRun, progress: Progress
    ) -> None:
        super().__init__(directory, record, runs=Pool(perform_run), checks=Checking(), progress=progress)
        self._master, self._perform_run = master, perform_run

    @override
    def _perform_left(self) -> None:
        for world, runs in self._left:
            specs = list(runs)
            blocks = [specs[start : start + BLOCK] for start in range(0, len(specs), BLOCK)]
            with closing(spread(self._master, partial(_perform_each, self._perform_run), blocks, _lost)) as sent:
                for run in chain.from_iterable(sent):
                    self._take(runs.popleft(), run)
                    if world.world.name in self.given_up:
                        break

    def _take(self, spec: RunSpec, run: SentRun | AckproofError) -> None:
        if isinstance(run, AckproofError):
            raise run
        job = Job(spec, self._directory / spec.directory())
        self.running[job.directory] = job
        _write(job, run)
        self._end_run(job, run.ended)


def _perform_each(perform_run: PerformRun, specs: Sequence[RunSpec]) -> list[SentRun | AckproofError]:
    """Perform runs as an executor; the answer is what became of each."""
    return [_performed(perform_run, spec) for spec in specs]


def _performed(perform_run: PerformRun, spec: RunSpec) -> SentRun | AckproofError:
    with Scratch(ScratchKind.RUN) as scratch:
        directory = scratch.path / "run"
        ended = perform_within_limit(perform_run, Job(spec, directory), limit_of(spec))
        if isinstance(ended, AckproofError):
            return ended
        files = (file for file in directory.rglob("*") if file.is_file())
        return SentRun(ended, {file.relative_to(directory).as_posix(): file.read_bytes() for file in files})


def _lost(specs: Sequence[RunSpec], why: str) -> list[SentRun | AckproofError]:
    return [SentRun(Ended(status="harness-failed", reason=why), {}) for _ in specs]


def _write(job: Job, run: SentRun) -> None:
    """Write what an executor sent; the run's record last, for it says that the others are whole."""
    with files_of(job.directory):
        job.directory.mkdir(parents=True)
    for name, content in sorted(run.files.items(), key=lambda file: file[0] == RUN_FILE):
        file = job.directory / name
        with files_of(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content)
    if not run.files:
        write_record(job.directory, job.spec, run.ended)
