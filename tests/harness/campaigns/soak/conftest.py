"""A soak in virtual time: runs that end at once and checks that know by the seed what was found, on real files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checkers import Outcome, VerdictLine
from checkers.measures.history_counts import Exercise
from checkers.verdicts.exercised import FamilyExercised, RunsExercised
from checkers.verdicts.judgement import Judgement
from checkers.verdicts.verdict import RunFacts
from harness.campaigns.campaign import Job, JudgedHistory
from harness.campaigns.soak.disk_budget import DiskBudget
from harness.campaigns.soak.resuming import put_in_order
from harness.campaigns.soak.soak_file import SoakRequest
from harness.campaigns.soak.soak_loop import SoakLoop
from harness.campaigns.soak.state import RecordedState
from harness.campaigns.soak.turn_planner import TurnPlanner
from harness.ground.progress import Progress
from harness.plan import Plan, parse_plan
from harness.records.run_record import Ended, read_record, write_record
from tests.checkers.findings import a_finding
from workloads import Settings

PLAN = """
name = "t"
families = ["kill", "pause"]
[matrix]
acks = [1, "all"]
[worlds.simulated]
parallel = 2
[worlds.processes]
parallel = 1
"""
SILENT = {Outcome.HELD, Outcome.NOT_EXERCISED, Outcome.UNKNOWN}
IDENTITIES = ("a" * 12, "b" * 12)


def asked(**changes) -> SoakRequest:
    usual = {"name": "t", "seed": 7, "began": "then", "command": "ackproof soak", "for_s": 6.0, "disk_bytes": 10**9}
    return SoakRequest(**usual | changes)


def outcome_of_seed(seed: int) -> Outcome:
    """The verdict on a run with this seed: a third is broken."""
    return (Outcome.HELD, Outcome.HELD, Outcome.PERMITTED_LOSS, Outcome.BROKEN_PROMISE, Outcome.BROKEN_PROMISE)[
        seed % 5
    ]


def line_of(world: str, cell: str, seed: int, outcome: Outcome | None = None, **changes) -> VerdictLine:
    outcome = outcome or outcome_of_seed(seed)
    shown = IDENTITIES[seed % 2]
    counts = {"lost-write": 1 + seed % 3} if outcome not in SILENT else {}
    broken = counts if outcome is Outcome.BROKEN_PROMISE else {}
    family, judged = cell.rpartition("/")[2], int(outcome is not Outcome.UNKNOWN)
    judgement = Judgement(
        outcome=outcome,
        broken=broken,
        permitted={} if broken else counts,
        lost=sum(counts.values()),
        judged=bool(judged),
        reason=None,
        permits_loss=bool(counts) and not broken,
        promise="",
        reasons=0,
        faults=(),
        uncertain=0,
        without_effect=0,
        exercised=RunsExercised(
            judged=judged, telling=judged, recovered=judged, acknowledged=9, families={family: FamilyExercised(3, 3)}
        ),
        coverage={"leader_changed_in_flight": seed % 3},
        identities={name: [shown] for name in counts},
    )
    facts = RunFacts(cell=cell, family=family, world=world, seed=seed, settings=Settings().to_mapping())
    usual = {
        "history": f"runs/{world}/{cell}/{seed}",
        "valid": not counts,
        "anomalies": {
            name: [a_finding(name, key="t-0", value=n) for n in range(count)] for name, count in counts.items()
        },
        "counts": counts,
        "exercise": Exercise(attempted=10 + seed % 7, acknowledged=9),
        "run": facts,
        "judgement": judgement,
    }
    return VerdictLine(**usual | changes)


def facts_of(directory: Path) -> tuple[str, str, int]:
    """World, cell and seed of the run in ``directory``."""
    world, choice, family, seed = directory.parts[-4:]
    return world, f"{choice}/{family}", int(seed)


class Clock:
    """Seconds that pass only where somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class InstantRuns:
    """Runs that take half a second each, one after the other; ``effect`` is called at each thing that they do."""

    def __init__(self, clock: Clock, effect: Callable[[str], None], left_bytes: int = 100) -> None:
        self._clock, self._effect, self._left_bytes = clock, effect, left_bytes
        self._jobs: deque[Job] = deque()
        self.performed: list[Job] = []
        self.end = lambda job: Ended(status="completed", wall_ms=500)

    @property
    def busy(self) -> int:
        return len(self._jobs)

    def perform_job(self, job: Job, limit_s: float) -> None:
        self._jobs.append(job)

    def wait(self, patience_s: float | None = None) -> list[tuple[Job, Ended]]:
        job = self._jobs.popleft()
        self._clock.now += 0.5
        job.directory.mkdir(parents=True)
        self._effect("made")
        write_record(job.directory, job.spec, Ended(status="running"))
        self._effect("begun")
        (job.directory / "history").write_bytes(b"x" * self._left_bytes)
        ended = self.end(job)
        write_record(job.directory, job.spec, ended)
        self._effect("ended")
        self.performed.append(job)
        return [(job, ended)]

    def close(self) -> None:
        self._jobs.clear()


class KnowingChecks:
    """Checks whose verdict follows from the run's seed; it must find the run's files whole."""

    def __init__(self, line: Callable[..., VerdictLine] = line_of) -> None:
        self._line, self._batch = line, None

    @property
    def busy(self) -> bool:
        return self._batch is not None

    def begin(self, directories) -> None:
        assert self._batch is None
        self._batch = list(directories)

    def answer(self, patience_s: float = 0.0) -> list[JudgedHistory] | None:
        if self._batch is None:
            return None
        batch, self._batch = self._batch, None
        return [JudgedHistory(directory, self._judge(directory), is_run=True) for directory in batch]

    def _judge(self, directory: Path) -> VerdictLine:
        record = read_record(directory)
        assert record.ended.status == "completed"
        assert (directory / "history").is_file()
        return self._line(record.world.name, record.cell, record.seed)


class Workshop:
    """Soaks of one plan in one directory: each session is one call of :meth:`session`."""

    def __init__(self, directory: Path, plan: Plan, clock: Clock) -> None:
        self.directory, self.plan, self.clock = directory, plan, clock
        self.effect: Callable[[str], None] = lambda what: None
        self.progress = Progress()
        self.checks = KnowingChecks()
        self.left_bytes = 100
        self.runs: InstantRuns | None = None

    def session(self, wanted: SoakRequest | None = None, **more) -> RecordedState:
        """A session to its end, as :func:`harness.campaigns.soak.soak` has it, without signals and report."""
        recorded = RecordedState(self.directory, self.clock)
        try:
            for _ in self.steps(recorded, wanted or asked(), **more):
                pass
        finally:
            recorded.close()
        return recorded

    def steps(self, recorded: RecordedState, wanted: SoakRequest, **more) -> Iterator[SoakLoop]:
        disk = DiskBudget(recorded, wanted.disk_bytes, frozenset({"simulated"}))
        disk.measure([])
        put_in_order(recorded, disk)
        self.runs = InstantRuns(self.clock, self.effect, self.left_bytes)
        parts = {"runs": self.runs, "checks": self.checks, "progress": self.progress, "clock": self.clock} | more
        loop = SoakLoop(wanted, TurnPlanner(self.plan, wanted.seed), recorded, disk, **parts)
        for _ in loop.steps():
            disk.measure(loop.running)
            yield loop
        loop.stop_runs()
        loop.judge_rest(self.clock() + 600)


@pytest.fixture
def plan() -> Plan:
    return parse_plan(PLAN, "t.toml")


@pytest.fixture
def workshop(tmp_path: Path, plan: Plan) -> Workshop:
    (tmp_path / "soak").mkdir()
    return Workshop(tmp_path / "soak", plan, Clock())
