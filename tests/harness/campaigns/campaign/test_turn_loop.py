"""The loop of campaigns and soaks with a list of turns: when a world is given up, and verdicts that come meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from checkers import Outcome, VerdictLine
from harness.campaigns.campaign.judged_histories import JudgedHistory
from harness.campaigns.campaign.pool import Job
from harness.campaigns.campaign.runs import CampaignRuns, PendingRuns
from harness.campaigns.campaign.stages import Campaign
from harness.ground.errors import HarnessError
from harness.ground.progress import Progress
from harness.plan import Plan, parse_plan
from harness.records.run_record import Ended

PLAN = 'name = "t"\nfamilies = ["kill", "pause"]\n[worlds.simulated]\nruns = 20\nparallel = 1\n'
ELSEWHERE = '[worlds.kafka]\nhost = "existing"\nbootstrap = ["kafka-1.example:9092"]\nruns = 3\nparallel = 1\n'
End = Callable[[Job], Ended]


def well(_: Job) -> Ended:
    return Ended(status="completed", wall_ms=7)


def failed(_: Job) -> Ended:
    return Ended(status="harness-failed", reason="no java")


class EndingRuns:
    """Runs that end at once, one at a time, as ``end`` says."""

    def __init__(self, end: End) -> None:
        self._end = end
        self.jobs: list[Job] = []
        self.performed: Counter[str] = Counter()

    @property
    def busy(self) -> int:
        return len(self.jobs)

    def perform_job(self, job: Job, limit_s: float) -> None:
        job.directory.mkdir(parents=True)
        self.jobs.append(job)

    def wait(self, patience_s: float | None = None) -> list[tuple[Job, Ended]]:
        job = self.jobs.pop(0)
        self.performed[job.spec.world.name] += 1
        return [(job, self._end(job))]

    def close(self) -> None:
        self.jobs.clear()


class HeldChecks:
    """Checks that find that everything held, or fail."""

    def __init__(self, error: str = "") -> None:
        self._error = error
        self.batches: list[Sequence[Path]] = []
        self.busy = False

    def begin(self, directories: Sequence[Path]) -> None:
        self.batches.append(directories)
        self.busy = True

    def answer(self, patience_s: float = 0.0) -> list[JudgedHistory] | None:
        if not self.busy:
            return None
        self.busy = False
        if self._error:
            raise HarnessError(self._error)
        line = VerdictLine(history="", valid=True)
        assert line.outcome is Outcome.HELD
        return [JudgedHistory(directory, line) for directory in self.batches[-1]]


class Notes(Progress):
    """The words for a person who waits."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.said: list[str] = []

    def advance(self, note: str = "") -> None:
        self.notes.append(note)

    def say(self, text: str) -> None:
        self.said.append(text)


class Performed:
    """All runs of a plan, performed in a clock of which each look takes a second."""

    def __init__(self, directory: Path, text: str, end: End, checks: HeldChecks) -> None:
        plan: Plan = parse_plan(text, "t.toml")
        self.progress, self.checks, self.runs = Notes(), checks, EndingRuns(end)
        self.record = Campaign.new(plan, plan.runs(), directory)._record
        seconds = iter(range(10_000))
        self.loop = CampaignRuns(
            directory, self.record, runs=self.runs, checks=checks, progress=self.progress, clock=lambda: next(seconds)
        )
        self.loop.perform_runs(
            [PendingRuns(world, [run for run in plan.runs() if run.world == world.world]) for world in plan.worlds]
        )
        self.loop.end_checks()


def test_a_campaign_says_its_verdicts_so_far(tmp_path: Path) -> None:
    performed = Performed(tmp_path, PLAN, well, HeldChecks())
    first, *_ = performed.checks.batches
    assert len(first) < 40
    assert performed.progress.notes[-1].endswith(" held")
    assert len(performed.progress.notes) == performed.record.worlds["simulated"].completed == 40


def test_a_check_that_fails_while_runs_go_on_costs_no_run(tmp_path: Path) -> None:
    performed = Performed(tmp_path, PLAN, well, HeldChecks("Spark is gone"))
    assert performed.progress.said == ["no verdicts while runs go on: Spark is gone"]
    assert (len(performed.checks.batches), performed.record.worlds["simulated"].completed) == (1, 40)


def test_a_world_whose_runs_fail_in_a_row_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    performed = Performed(
        tmp_path,
        PLAN + "[worlds.processes]\nruns = 9\nparallel = 1\n",
        lambda job: failed(job) if job.spec.world.name == "processes" else well(job),
        HeldChecks(),
    )
    assert performed.runs.performed == {"simulated": 40, "processes": 3}
    performed.loop.refuse_nothing_done()
    with pytest.raises(
        HarnessError, match=r"processes world is given up: 3 runs in a row failed \(no java\); not performed: 15 runs"
    ):
        performed.loop.refuse_failures()


@pytest.mark.parametrize(("completed", "performed"), [(0, 1), (1, 4)])
def test_elsewhere_the_first_run_decides_and_later_ones_as_everywhere(
    tmp_path: Path, completed: int, performed: int
) -> None:
    ended = iter(range(6))
    done = Performed(
        tmp_path,
        f'families = ["kill", "pause"]\n{ELSEWHERE}',
        lambda job: well(job) if next(ended) < completed else failed(job),
        HeldChecks(),
    )
    assert done.runs.performed == {"kafka": performed}
    assert "kafka" in done.loop.given_up


def test_a_world_of_which_every_run_has_begun_is_not_given_up(tmp_path: Path) -> None:
    performed = Performed(tmp_path, PLAN.replace("20", "1"), failed, HeldChecks())
    assert performed.loop.given_up == {}
    with pytest.raises(HarnessError, match="2 of 2 runs in the simulated world failed"):
        performed.loop.refuse_failures()
