"""Performs one run in its directory: makes the world, records the history, and writes down how it ended."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from harness.ground.choices import Choices, Recording
from harness.ground.errors import AckproofError, ResultsError
from harness.plan import RunSpec
from harness.records.cluster_file import write_observations
from harness.records.files import (
    CHOICES_FILE,
    CLOCK_FILE,
    CLUSTER_FILE,
    HISTORY,
    advice_on,
    files_of,
    is_out_of_room,
    read_json,
    write_file,
)
from harness.records.replica_dump import write_replicas
from harness.records.run_record import Ended, RunRecord, write_record
from harness.runs.phases import RunReport, own_failure
from harness.runs.run.scheduled import perform_schedule
from harness.runs.run.story_run import perform_story, prepared, story_of
from harness.worlds.clients import without_secrets
from harness.worlds.factory import world_for
from harness.worlds.simulated.steady import Steady
from workloads.garbage_collection import without_collecting
from workloads.history import HistoryWriter, LiveHistoryWriter


def perform_run(
    spec: RunSpec,
    directory: Path,
    *,
    observe: bool = False,
    invariants: bool = True,
    choices: Choices | None = None,
) -> Ended:
    """Perform ``spec`` in the new directory ``directory``. A failure of the harness is an answer, not an exception.

    ``observe`` has a simulated cluster observed too (``cluster.jsonl``); real ones always do. Without ``invariants``
    those of a simulated cluster are not looked at; those of real ones never are. ``choices`` take the place of those
    that follow from the run's seed: recorded ones, or ones that the caller wants to keep afterwards
    (:func:`write_choices`).

    Raises:
        ResultsError: the directory exists or the disk is full; no later run would fare better.
    """
    began = time.monotonic()
    with files_of(directory):
        directory.mkdir(parents=True)
    write_record(directory, spec, Ended(status="running"))
    try:
        chosen = choices or choices_of(spec)
        # Steps in virtual time make no cycles, and this thread makes all that is made: one look when all is over.
        with without_collecting() if spec.world.virtual_time else nullcontext():
            report, configuration = _perform_in_world(spec, directory, chosen, observe=observe, invariants=invariants)
        failure = own_failure(spec, report.deaths, report.faults)
        ended = Ended(
            status="completed" if failure is None else "harness-failed",
            reason=failure,
            wall_ms=_since(began),
            report=msgspec.to_builtins(report),
            configuration=configuration,
        )
    except KeyboardInterrupt:
        write_record(
            directory, spec, Ended(status="interrupted", reason="stopped before its end", wall_ms=_since(began))
        )
        raise
    except Exception as error:
        if isinstance(error, OSError) and is_out_of_room(error):
            raise ResultsError(f"{directory}: {advice_on(error)}") from error
        ended = Ended(status="harness-failed", reason=_sentence(error), wall_ms=_since(began))
    write_record(directory, spec, ended)
    return ended


def _perform_in_world(
    spec: RunSpec, directory: Path, choices: Choices, *, observe: bool, invariants: bool
) -> tuple[RunReport, dict[str, dict[str, Any]]]:
    story = story_of(spec) if spec.story else None
    shown = prepared(spec, story) if story else spec
    world = world_for(shown, directory, choices, observe=observe, invariants=invariants)
    try:
        with recorder_for(spec, directory / HISTORY) as recorder:
            if story:
                report = perform_story(spec, story, world, recorder, directory)
            else:
                report = perform_schedule(spec, world, recorder, choices.draw)
        write_replicas(directory, report.ends, world.replica_logs())
        return report, world.effective_configuration()
    finally:
        world.close()
        if observe or not spec.world.virtual_time:
            write_observations(directory, world.observations())


def choices_of(spec: RunSpec) -> Choices:
    """The choices of chance in a run; a scripted story leaves nothing to it, nor does a plan that says so."""
    return Steady(spec.seed) if spec.story or spec.chance == "none" else Choices(spec.seed)


def recorder_for(spec: RunSpec, history: Path) -> HistoryWriter:
    """A writer for what the run's clients see: in memory in virtual time, on disk within a second in real time."""
    kind = HistoryWriter if spec.world.virtual_time else LiveHistoryWriter
    return kind(history, str(spec.directory()))


def write_choices(directory: Path, choices: Choices) -> None:
    """Write ``choices.json``: every draw of a run, which :func:`perform_run` can be given again.

    Some hundred kilobytes for a minute of virtual time, so it is written only on request.

    Raises:
        ResultsError: it cannot be written.
    """
    write_file(directory / CHOICES_FILE, msgspec.json.encode(choices.recording()))


def read_choices(file: Path) -> Choices:
    """The choices that ``file`` holds, a ``choices.json``, to be performed again.

    Raises:
        ResultsError: it cannot be read.
    """
    return Choices.recorded(read_json(file, Recording, "name a choices.json, which `ackproof replay` leaves"))


def recover_observations(record: RunRecord, directory: Path) -> None:
    """Write ``cluster.jsonl`` of a run in real time whose harness was killed before it could: the nodes' files have it.

    Nothing is written where they have nothing.
    """
    if seen := world_for(record.spec(), directory, Choices(record.seed)).observations():
        write_observations(directory, seen)


def lacks_observations(directory: Path) -> bool:
    """True where the run in ``directory`` was begun in real time and has no ``cluster.jsonl``."""
    return (directory / CLOCK_FILE).is_file() and not (directory / CLUSTER_FILE).is_file()


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _sentence(error: Exception) -> str:
    """Without passwords, which a library may repeat in what it says of a broker."""
    words = str(error) if isinstance(error, AckproofError) else ""
    return without_secrets(words or f"unexpected {type(error).__name__}: {' '.join(str(error).split())}")
