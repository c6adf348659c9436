"""Prepares a dead soak to go on: nothing of it runs any more, and files are as the ledger says."""

from __future__ import annotations

import fcntl
import os
import time
from functools import cache
from pathlib import Path
from typing import Final

from harness.campaigns.campaign import record_of_ended, undo_and_delete
from harness.campaigns.soak.disk_budget import DiskBudget
from harness.campaigns.soak.state import RecordedState
from harness.ground.errors import HarnessError
from harness.ground.progress import Progress
from harness.plan import RunSpec
from harness.records.files import files_of
from harness.records.run_record import Ended
from harness.runs.run import heal, perform_run

#: Held, shared, by every worker while it lives: a new session waits until those of the dead one have ended.
WORKERS_FILE: Final = "workers.lock"
#: Seconds for that; a worker has 20 to close its world (harness.campaigns.campaign).
_WORKERS_LIMIT_S: Final = 60.0
_STEP_S: Final = 0.1


def perform_turn(soak: Path, spec: RunSpec, directory: Path) -> Ended:
    """Perform a run of the soak in ``soak``; what a worker process does.

    Raises:
        ResultsError: as :func:`harness.runs.run.perform_run`.
    """
    _announce(soak)
    return perform_run(spec, directory)


@cache
def _announce(soak: Path) -> int:
    """Take the lock that says that a worker lives; the kernel gives it back when it does not."""
    descriptor = os.open(soak / WORKERS_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def wait_for_workers(soak: Path, progress: Progress, limit_s: float = _WORKERS_LIMIT_S) -> None:
    """Wait until no worker of an earlier session lives.

    Raises:
        HarnessError: one lives on.
    """
    with files_of(soak):
        descriptor = os.open(soak / WORKERS_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    deadline, said = time.monotonic() + limit_s, False
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HarnessError(
                        f"workers of an earlier soak in {soak} still run after {limit_s:.0f} s; end them (fuser "
                        f"{soak / WORKERS_FILE} names them), then resume the soak"
                    ) from None
                if not said:
                    progress.say("workers of the soak that died are closing their worlds")
                    said = True
                time.sleep(_STEP_S)
            else:
                return
    finally:
        os.close(descriptor)


def put_in_order(recorded: RecordedState, disk: DiskBudget) -> int:
    """Undo what runs left that did not end, take up those that did, and delete files of turns that are dropped.

    The answer is how many things were undone.

    Raises:
        HostError: something of a run is still there.
        ResultsError: something cannot be deleted.
    """
    soak, undone = recorded.directory, 0
    for planned in list(recorded.state.planned.values()):
        directory = soak / planned.directory
        if (record := record_of_ended(directory)) is None:
            undone += len(undo_and_delete(directory))
        else:
            undone += len(heal(directory))
            recorded.write(disk.performed(planned, record.ended))
    _delete_strangers(recorded)
    return undone


def _delete_strangers(recorded: RecordedState) -> None:
    """Files of turns that the ledger says are dropped: it was written down, and the session died before it was done."""
    soak, state = recorded.directory, recorded.state
    needed = {soak / planned.directory for planned, _ in state.performed.values()}
    needed |= {soak / kept.planned.directory for kept in state.kept_runs.kept.values()}
    with files_of(soak):
        for directory in sorted(_run_directories(soak) - needed):
            undo_and_delete(directory)


def _run_directories(soak: Path) -> set[Path]:
    """The directories of runs, also of those that were being deleted."""
    return {*(soak / "runs").glob("*/*/*/*"), *(soak / "tries").glob("*")}  # WORLD/SETTINGS/FAMILY/SEED, and TURN
