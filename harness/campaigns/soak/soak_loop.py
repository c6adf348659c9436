"""A soak at work: turns are drawn, performed, judged and dropped, in as many places as each world has.

One loop does everything but the runs themselves (worker processes) and the checking (a thread that waits for PySpark).
What it does is in the ledger before anything is built on it, so the loop may end at any instruction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers import Outcome, VerdictLine
from harness.campaigns.campaign import (
    BATCH_MAX,
    STEP_S,
    Checks,
    Job,
    JudgedHistory,
    Runs,
    TurnLoop,
    undo_and_delete,
)
from harness.campaigns.soak.disk_budget import DiskBudget
from harness.campaigns.soak.kept_runs import findings_of, trimmed
from harness.campaigns.soak.ledger import Began, Failed, Planned, Tried
from harness.campaigns.soak.resources import memory_is_short
from harness.campaigns.soak.soak_file import SoakRequest
from harness.campaigns.soak.state import RecordedState
from harness.campaigns.soak.turn_planner import TurnPlanner
from harness.ground.errors import HarnessError
from harness.ground.machine.this_call import utc_now
from harness.ground.progress import Progress
from harness.plan import WorldPlan
from harness.records.run_record import Ended

#: Seconds that performed runs wait for a check at most, and how many do.
BATCH_S: Final = 10.0
BATCH_MIN: Final = BATCH_MAX // 4
#: No run is begun while this many wait for the checking.
WAITING_MAX: Final = 2 * BATCH_MAX


class SoakLoop(TurnLoop):
    """A soak as it was ``asked`` for, from where its ``recorded`` state says it is.

    Attributes:
        stop_asked: set it, and the soak ends at its next step.

    ``known_findings`` and those that are ``accepted`` do not end it where it goes on until a finding.
    """

    def __init__(
        self,
        asked: SoakRequest,
        planner: TurnPlanner,
        recorded: RecordedState,
        disk: DiskBudget,
        *,
        runs: Runs,
        checks: Checks,
        progress: Progress,
        known_findings: frozenset[str] = frozenset(),
        accepted: frozenset[str] = frozenset(),
        clock: Callable[[], float],
    ) -> None:
        super().__init__(recorded.directory, runs=runs, checks=checks, progress=progress, clock=clock)
        self._asked, self._planner, self._recorded, self._disk = asked, planner, recorded, disk
        self._known_findings, self._accepted, self._state = known_findings | accepted, accepted, recorded.state
        self._again = deque(recorded.state.planned.values())
        self._turns: dict[Path, Planned] = {}
        self._batch_at = float("-inf")
        self.stop_asked = False

    def steps(self) -> Iterator[None]:
        """Soak, a step each time; what ends it is :attr:`why_ended`.

        Raises:
            HarnessError: it cannot go on. Everything that was done is in the ledger.
        """
        self._recorded.write(Began(utc=utc_now()))
        while not (self.why_ended or self._is_over()):
            self._begin_turns()
            self._step()
            yield
            if len(self.given_up) == len(self._planner.worlds) and not self.running:
                raise HarnessError("; ".join(self.given_up.values()))

    # What ends it

    @property
    def why_ended(self) -> str:
        """The reason to end before its time; "" without one."""
        if self.stop_asked:
            return "it was asked to stop"
        if self._asked.fail_fast and self._state.findings.keys() - self._accepted:
            return "a promise was broken (--fail-fast)"
        return ""

    @property
    def _goes_on(self) -> bool:
        """New turns are drawn."""
        if self._asked.until_finding and self._state.findings.keys() - self._known_findings:
            return False
        return self._asked.for_s is None or self._recorded.elapsed_s < self._asked.for_s

    def _is_over(self) -> bool:
        """Nothing new is drawn, and nothing is under way; findings in virtual time were tried again, that is cheap."""
        if self._goes_on or self._again:
            return False
        self._begin_tries(only_virtual=not self._asked.until_finding)
        return not (self.running or self._state.performed or self._checks.busy)

    # What is begun

    def _begin_turns(self) -> None:
        if self._goes_on:
            self._begin_tries(only_virtual=False)
        for world in self._planner.worlds:
            while self._has_place(world) and (planned := self._next_of(world.world.name)) is not None:
                self._begin(planned)

    def _begin_tries(self, *, only_virtual: bool) -> None:
        """Findings that were not yet tried again go before new turns; in virtual time once, in real time as asked."""
        for kept in self._state.kept_runs.best if self._state.findings else ():
            world = self._planner.world(kept.planned.world)
            virtual = world.world.virtual_time
            wanted = 1 if virtual else 0 if only_virtual else self._asked.tries
            while self._state.needs_try(kept, wanted) and self._has_place(world):
                again = msgspec.structs.replace(kept.planned, turn=self._state.turns, again=kept.planned.turn)
                self._recorded.write(again)
                self._begin(again)

    def _next_of(self, world: str) -> Planned | None:
        """The next turn of a world: one that an earlier session did not finish, else a new one while there is time."""
        for planned in self._again:
            if planned.world == world:
                self._again.remove(planned)
                return planned
        if not self._goes_on:
            return None
        planned = self._planner.next_turn(self._state.turns, world, self._state.cells)
        self._recorded.write(planned)
        return planned

    def _has_place(self, world: WorldPlan) -> bool:
        """One more run of ``world`` may begin now.

        Raises:
            HarnessError: it may not, nor ever after.
        """
        name = world.world.name
        if not self._has_room(world.world, self._planner.places(name)):
            return False
        under_way = [job.spec.world.name for job in self.running.values()]
        if len(self._state.performed) >= WAITING_MAX:
            return False
        if not self._disk.has_for([*under_way, name]):
            if not under_way and not self._state.performed:
                raise HarnessError(self._disk.why_no_room(name))
            return False
        if why_short := memory_is_short(self._asked.memory_bytes):
            if not under_way and not self._checks.busy:
                raise HarnessError(why_short)
            return False
        return True

    def _begin(self, planned: Planned) -> None:
        directory = self._directory / planned.directory
        self._turns[directory] = planned
        self._begin_run(self._planner.spec_of(planned), directory)

    # What has ended

    def _end_run(self, job: Job, ended: Ended) -> None:
        """A run that failed on a full disk has not been performed: a later session does it again, where there is room.

        Raises:
            HarnessError: the disk is full.
        """
        if ended.status == "completed" or self._disk.is_free_for(job.spec.world.name):
            super()._end_run(job, ended)
            return
        why = self._disk.why_no_room(job.spec.world.name)
        undo_and_delete(job.directory)
        raise HarnessError(why)

    def _keep(self, job: Job, ended: Ended) -> None:
        self._recorded.write(self._disk.performed(self._turns.pop(job.directory), ended))

    def _give_up(self, world: str, why: str) -> None:
        self._again = deque(planned for planned in self._again if planned.world != world)
        self._fail(why, ended_session=True)

    def _fail(self, why: str, *, ended_session: bool = False) -> None:
        """The harness did something wrong; or it could not go on, which is over where a later session can."""
        self._progress.say(why)
        self._recorded.write(Failed(why=why, ended_session=ended_session))

    def _waiting(self) -> Sequence[Path]:
        return [self._directory / planned.directory for planned, _ in self._state.performed.values()]

    def _is_due(self, waiting: int, since_s: float) -> bool:
        return waiting >= BATCH_MIN or since_s >= BATCH_S or not self.running

    def _settle(self, judged: Sequence[JudgedHistory]) -> None:
        """Take up the verdicts on the batch, and drop what need not stay."""
        lines: list[tuple[int, VerdictLine]] = []
        tries: list[tuple[Planned, Tried]] = []
        batch = [planned for planned, _ in self._state.performed.values()][: len(judged)]
        for planned, history in zip(batch, judged, strict=True):
            if planned.again is None:
                lines.append((planned.turn, trimmed(msgspec.structs.replace(history.line, history=planned.directory))))
            else:
                shown = self._is_shown(self._state.sought[planned.again], planned.world, history.line)
                tries.append((planned, Tried(planned.turn, planned.again, shown)))
        self._recorded.add_verdicts(lines, [tried for _, tried in tries])
        for planned, tried in tries:
            self._disk.remove(planned)
            self._refuse_to_differ(planned, tried)
        self._disk.drop(self._state.kept_runs.superfluous())

    def _is_shown(self, sought: frozenset[str], world: str, line: VerdictLine) -> bool | None:
        """A try in virtual time shows all that was ``sought``; elsewhere one of it is enough. None: not known."""
        if line.outcome is Outcome.UNKNOWN:
            return None
        shown = findings_of(line)
        return sought <= shown if self._planner.world(world).world.virtual_time else not sought.isdisjoint(shown)

    def _refuse_to_differ(self, planned: Planned, tried: Tried) -> None:
        """A seed is a whole run in virtual time: one that does not repeat itself is the harness's own error."""
        if self._planner.world(planned.world).world.virtual_time and tried.shown is False:
            sought = ", ".join(sorted(self._state.sought[tried.again]))
            run = msgspec.structs.replace(planned, again=None).directory
            self._fail(f"{run} does not repeat itself: done again, it did not show {sought}; report it, with the plan")

    def judge_rest(self, until: float) -> None:
        """Judge what was performed, as long as the clock is before ``until``; the rest waits for a later session."""
        while (self._state.performed or self._checks.busy) and self._clock() < until:
            self._check()
            self._take_verdicts(STEP_S)
