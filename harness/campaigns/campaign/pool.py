"""Runs jobs in worker processes, and outlives workers that die, hang or are interrupted.

Workers are forked from a process that has read the modules of runs and did nothing else: they begin at once, and share
nothing with the harness but a pipe each. They ignore Ctrl-C (the harness tells them to stop, and they close their world
first), and stop by themselves when the harness is gone.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from harness.ground.errors import AckproofError, HarnessError
from harness.plan import RunSpec
from harness.records.run_record import Ended, write_record

#: Makes workers. Each would take half a second of a processor to read what all of them need.
CONTEXT: Final = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["harness.runs.run.performing"])
#: New workers after a death. A machine that kills more of them (out of memory) will not finish the campaign anyway.
DEATHS_MAX: Final = 10
#: Seconds for a worker to close its world after it was asked to stop.
STOP_LIMIT_S: Final = 20.0
#: Seconds beyond a job's own limit after which a worker that does not answer is killed.
GRACE_S: Final = 30.0
#: The niceness of workers; a program that needs its processor now is ten times as likely to have it.
NICENESS: Final = 10
#: Reasons of a failed run whose worker died, with its exit code, was killed after its limit, or ended in order.
DIED: Final = "its worker process died (exit {}); dmesg shows if this machine is out of memory"
STOPPED: Final = "its worker process was sent SIGTERM; send signals to ackproof itself"
LATE: Final = "the run did not end within its limit; lower the load of this machine, writes_per_second or duration_ms"


class Job(NamedTuple):
    """A run and where it leaves its files."""

    spec: RunSpec
    directory: Path


PerformRun = Callable[[RunSpec, Path], Ended]


class Pool:
    """Worker processes that are there while they are needed: each job goes to one that is idle, or to a new one.

    Workers of runs in virtual time give way to everybody else on this machine: real clocks do not wait for them.
    ``perform_run`` must be importable by name. ``jobs_max`` jobs are the life of a worker, so that what libraries keep
    in memory goes with it; None: no limit.
    """

    def __init__(self, perform_run: PerformRun, jobs_max: int | None = None) -> None:
        self._perform_run, self._jobs_max = perform_run, jobs_max
        self._workers: list[_Worker] = []
        self._deaths = 0

    @property
    def busy(self) -> int:
        """Jobs that are being performed."""
        return sum(worker.job is not None for worker in self._workers)

    def perform_job(self, job: Job, limit_s: float) -> None:
        """Have ``job`` performed; one that takes more than ``limit_s`` seconds is ended and has failed."""
        niceness = NICENESS if job.spec.world.virtual_time else 0
        idle = (worker for worker in self._workers if worker.job is None and worker.niceness == niceness)
        worker = next(idle, None)
        if worker is None:
            worker = _Worker(self._perform_run, niceness)
            self._workers.append(worker)
        worker.perform_job(job, limit_s)

    def wait(self, patience_s: float | None = None) -> list[tuple[Job, Ended]]:
        """Return the jobs that have ended; wait for one no longer than ``patience_s`` (None: as long as it takes).

        Raises:
            AckproofError: workers died too often, or a job raised one (a full disk).
        """
        ended = []
        for worker in _ready(self._workers, patience_s):
            ended.append(worker.take())
            if not worker.lives:
                self._deaths += 1
                if self._deaths >= DEATHS_MAX:
                    raise HarnessError(
                        f"worker processes died {self._deaths} times; dmesg shows if this machine is out of memory"
                    )
            if not worker.lives or worker.jobs == self._jobs_max:
                self._workers.remove(worker)
                _stop([worker])
        return ended

    def close(self) -> None:
        """End all workers; busy ones close their world first."""
        _stop(self._workers)
        self._workers = []


def _ready(workers: Iterable[_Worker], patience_s: float | None) -> list[_Worker]:
    """Busy workers that answered, died, or are past their limit; waits until there is one."""
    busy = {worker.pipe: worker for worker in workers if worker.job is not None}
    limits = [worker.deadline - time.monotonic() for worker in busy.values()]
    answered = connection.wait(list(busy), max(0.0, min(limits if patience_s is None else [*limits, patience_s])))
    late = [worker for worker in busy.values() if worker.deadline <= time.monotonic() and worker.pipe not in answered]
    for worker in late:
        worker.killed = True
        worker.process.kill()
    return [worker for pipe, worker in busy.items() if pipe in answered] + late


class _Worker:
    """A worker process as the harness sees it: a pipe, and the job that it is busy with."""

    def __init__(self, perform_run: PerformRun, niceness: int) -> None:
        self.pipe, theirs = CONTEXT.Pipe()
        self.niceness = niceness
        self.process = CONTEXT.Process(
            target=_work, args=(theirs, perform_run, niceness, dict(os.environ)), daemon=False
        )
        # It inherits that Ctrl-C waits: until it ignores that, a worker would end with a traceback.
        resource_tracker.ensure_running()  # its first start would end the waiting
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.job: Job | None = None
        self.lives, self.killed = True, False
        self.jobs = 0
        self.deadline = 0.0

    def perform_job(self, job: Job, limit_s: float) -> None:
        self.job = job
        self.jobs += 1
        self.deadline = time.monotonic() + limit_s + GRACE_S
        with contextlib.suppress(BrokenPipeError):  # it died idle: take() finds out
            self.pipe.send((job, limit_s))

    def take(self) -> tuple[Job, Ended]:
        """The job and its end; a worker that died leaves a failed run."""
        job, self.job = self.job, None
        assert job is not None  # noqa: S101 - asked of busy workers only
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self.lives = False
            self.process.join(GRACE_S)
            ended = Ended(status="harness-failed", reason=self._why_gone())
            job.directory.mkdir(parents=True, exist_ok=True)
            write_record(job.directory, job.spec, ended)
            return job, ended
        if isinstance(answer, AckproofError):
            raise answer
        return job, answer

    def _why_gone(self) -> str:
        if self.killed:
            return LATE
        return DIED.format(self.process.exitcode) if self.process.exitcode else STOPPED


def _stop(workers: Sequence[_Worker]) -> None:
    """Idle workers end when their pipe closes; busy ones are asked to close their world, and killed if they do not."""
    for worker in workers:
        worker.pipe.close()
        if worker.job is not None:
            worker.process.terminate()
    deadline = time.monotonic() + STOP_LIMIT_S
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        worker.process.kill()
        worker.process.join()


def _work(pipe: Connection, perform_run: PerformRun, niceness: int, environment: Mapping[str, str]) -> None:
    """The life of a worker process: jobs come in over the pipe, their ends go out.

    The process that it was forked from has the environment of its own start, which may be another one.
    """
    os.environ.clear()
    os.environ.update(environment)
    os.nice(niceness)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal that waits is dropped by that
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # for what the worker starts itself
    signal.signal(signal.SIGTERM, _on_stop)
    logging.raiseExceptions = False  # a full disk is logged once, not once for every line that a client wanted to log
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            job, limit_s = pipe.recv()
            pipe.send(perform_within_limit(perform_run, job, limit_s))


def perform_within_limit(perform_run: PerformRun, job: Job, limit_s: float) -> Ended | AckproofError:
    """The end of ``job``, performed in this process, which waits for it no longer than ``limit_s`` seconds.

    An error is what no later run would be spared, such as a full disk.
    """
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return perform_run(job.spec, job.directory)
    except AckproofError as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _on_stop(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: closing a world must not be interrupted
    raise KeyboardInterrupt


def _on_alarm(_signal: int, _frame: FrameType | None) -> None:
    raise HarnessError("the run did not end within its limit; see its logs, and lower the load or raise drain_limit_ms")


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
