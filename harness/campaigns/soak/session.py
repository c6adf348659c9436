"""One session of a soak, from what an earlier one left to a report, whether it begins, goes on or is stopped."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from checkers import counted
from harness.campaigns.campaign import Checking, Checks, Pool, Runs, begin_session
from harness.campaigns.soak.disk_budget import DiskBudget
from harness.campaigns.soak.ending import Ending, end
from harness.campaigns.soak.ledger import Failed, Sampled
from harness.campaigns.soak.nights import Night, known_findings
from harness.campaigns.soak.resources import memory_used
from harness.campaigns.soak.resuming import perform_turn, put_in_order, wait_for_workers
from harness.campaigns.soak.soak_file import (
    SoakHeartbeat,
    SoakRequest,
    read_heartbeat_s,
    write_heartbeat,
    write_request,
)
from harness.campaigns.soak.soak_loop import SoakLoop
from harness.campaigns.soak.state import RecordedState
from harness.campaigns.soak.turn_planner import TurnPlanner
from harness.ground.errors import AckproofError, HarnessError, ResultsError
from harness.ground.machine.this_call import utc_now
from harness.ground.progress import Progress
from harness.plan import Plan
from harness.records.accepted_file import accepted_identities, read_accepted
from harness.records.files import only_user_of
from harness.runs.run import undone_sentence

#: Runs that one worker process performs before another takes its place.
WORKER_JOBS_MAX: Final = 500
#: Seconds between two heartbeats, and between two samples of memory in the ledger.
BEAT_S: Final = 3.0
SAMPLE_S: Final = 60.0
#: Seconds from the wish to end until the last verdict: with the report an end in order takes 30.
STOP_S: Final = 22.0
#: Seconds for the verdicts on the last runs where no person waits.
LAST_CHECK_S: Final = 600.0


def perform_soak(
    directory: Path,
    plan: Plan,
    asked: SoakRequest,
    progress: Progress,
    *,
    earlier: Sequence[Night] = (),
    runs: Runs | None = None,
    checks: Checks | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Begin or resume the soak in ``directory``, and end it with a report, beside ``earlier`` nights.

    Raises:
        ResultsError: another ackproof works on this soak now, or its files cannot be read or written.
        HostError: something that an earlier session left is still there.
    """
    with only_user_of(directory):
        write_request(directory, asked)  # what died after this can be resumed
        wait_for_workers(directory, progress)
        if checks is None:
            begin_session(progress)
        recorded = RecordedState(directory, clock, read_heartbeat_s(directory))
        try:
            virtual = frozenset(world.world.name for world in plan.worlds if world.world.virtual_time)
            disk = DiskBudget(recorded, asked.disk_bytes, virtual)
            if undone := put_in_order(recorded, disk):
                progress.say(undone_sentence(undone))
            loop = SoakLoop(
                asked,
                TurnPlanner(plan, asked.seed),
                recorded,
                disk,
                runs=runs or Pool(partial(perform_turn, directory), WORKER_JOBS_MAX),
                checks=checks or Checking(),
                progress=progress,
                known_findings=known_findings(earlier),
                accepted=accepted_identities(read_accepted(directory), asked.began),
                clock=clock,
            )
            session = _Session(asked, recorded, disk, loop, progress=progress, clock=clock)
            why = session.perform_turns()
            session.last_beat("ending")
            ending = end(recorded, asked, plan, why, earlier=earlier, progress=progress)
            session.last_beat("ended")
        finally:
            recorded.close()
    return ending


class _Session:
    """A soak from its first step to its last, with its heartbeats, its live line, and samples of what it uses."""

    def __init__(
        self,
        asked: SoakRequest,
        recorded: RecordedState,
        disk: DiskBudget,
        loop: SoakLoop,
        *,
        progress: Progress,
        clock: Callable[[], float],
    ) -> None:
        self._recorded, self._disk, self._asked, self._loop = recorded, disk, asked, loop
        self._progress, self._clock = progress, clock
        self._beat_at = self._sample_at = float("-inf")

    def perform_turns(self) -> str:
        """Soak until something ends it; the answer says what, "" where its time is over."""
        why = ""
        with _signals(self._loop), self._progress.phase("soaking", None):
            try:
                for _ in self._loop.steps():
                    self._beat_if_due()
                why = self._loop.why_ended
            except AckproofError as error:
                why = str(error)
                self._note_failure(why)
            self._loop.stop_runs()
            until = self._clock() + (STOP_S if why else LAST_CHECK_S)
            try:
                self._loop.judge_rest(until)
            except AckproofError as error:
                self._note_failure(str(error))
                why = why or str(error)
        return why

    def _note_failure(self, why: str) -> None:
        """Write it down once; a full disk takes no note of itself, and the exit code says it all the same."""
        if why in self._recorded.state.failures:
            return
        try:
            self._recorded.write(Failed(why=why, ended_session=True))
        except HarnessError:
            self._recorded.state.failures.append(why)

    def _beat_if_due(self) -> None:
        now = self._clock()
        if now - self._beat_at < BEAT_S:
            return
        self._beat_at = now
        self._disk.measure(self._loop.running)
        beat = self.beat("running")
        self._progress.advance(_line(beat))
        if now - self._sample_at >= SAMPLE_S:
            self._sample_at = now
            self._recorded.write(Sampled(memory=beat.memory, disk_bytes=beat.disk_bytes, runs=beat.runs))

    def last_beat(self, status: str) -> None:
        """Say how it ends, if there is room for that."""
        with suppress(ResultsError):
            self.beat(status)

    def beat(self, status: str) -> SoakHeartbeat:
        """Say how it goes now."""
        state, elapsed_s, for_s = self._recorded.state, self._recorded.elapsed_s, self._asked.for_s
        beat = SoakHeartbeat(
            time=utc_now(),
            status=status,
            elapsed_s=round(elapsed_s, 1),
            left_s=None if for_s is None else round(max(0.0, for_s - elapsed_s), 1),
            runs=state.judged,
            waiting=len(state.performed),
            running=tuple(str(run.relative_to(self._recorded.directory)) for run in self._loop.running),
            outcomes=dict(state.outcomes),
            findings=dict(state.findings),
            failures=tuple(state.failures),
            disk_bytes=self._disk.used_bytes,
            disk_limit_bytes=self._asked.disk_bytes,
            memory=memory_used(),
        )
        write_heartbeat(self._recorded.directory, beat)
        return beat


def _line(beat: SoakHeartbeat) -> str:
    """A heartbeat for people."""
    left = "" if beat.left_s is None else f", {time_left(beat.left_s)}"
    return (
        f"{counted(beat.runs, 'run')} judged, {counted(len(beat.findings), 'finding')}, {len(beat.running)} running, "
        f"{beat.disk_bytes / 1e6:,.0f} MB of disk, {beat.memory.total / 1e6:,.0f} MB of memory{left}"
    )


def time_left(seconds: float) -> str:
    """The words for the time that is left: minutes, and below ten of them seconds."""
    return f"{seconds / 60:,.0f} min left" if seconds >= 600 else f"{math.ceil(seconds)} s left"


@contextmanager
def _signals(loop: SoakLoop) -> Iterator[None]:
    """Ctrl-C and SIGTERM are wishes, asked for once; the second time they interrupt."""

    def ask(number: int, frame: FrameType | None) -> None:
        if loop.stop_asked:
            signal.default_int_handler(number, frame)
        loop.stop_asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
