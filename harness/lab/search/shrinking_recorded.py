"""Shrinks a run that was recorded in a directory: to a plan, and where it can be said so a story, beside its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from checkers import counted
from harness.ground.errors import EXIT_UNKNOWN, AckproofError, NamedWronglyError
from harness.lab.search.list_form import operations_of, steps_of
from harness.lab.search.shrinking import Shrunk, shrunk
from harness.lab.search.story_form import story_text_of
from harness.lab.search.twins import twin_of
from harness.plan import RunSpec, plan_text
from harness.records.files import write_file
from harness.records.run_record import RunRecord, read_record
from nemesis.schedule import Schedule

#: The files that are left in the run's directory.
PLAN_FILE: Final = "shrunk.toml"
STORY_FILE: Final = "shrunk-story.toml"
#: Writes that are listed for people; the plan has all of them.
WRITES_SHOWN: Final = 12


class NoTwinError(AckproofError):
    """A real run has no simulated twin that shows the same: what it shows stays without a smaller form."""

    exit_code = EXIT_UNKNOWN


class SmallerRun(msgspec.Struct, frozen=True, kw_only=True):
    """The smaller form of a run, as data for people and machines.

    ``faults`` and ``operations`` are how many there are and were; ``plan`` is the file that repeats it, ``story`` the
    scripted story of it with the ``column`` that shows it, "" where it cannot be said so. ``twin`` says of the smaller
    form of a real run that it is one of its simulated twin.
    """

    finding: str
    faults: tuple[int, int]
    operations: tuple[int, int]
    attempts: int
    complete: bool
    schedule: Schedule
    writes_ms: tuple[float, ...]
    plan: str
    story: str = ""
    column: str = ""
    twin: str = ""

    def lines(self) -> Iterator[str]:
        """For people; the last one is the result."""
        yield f"what it shows: {self.finding}"
        if self.twin:
            yield self.twin
        yield from self.schedule.describe().splitlines()
        more = ", ..." if len(self.writes_ms) > WRITES_SHOWN else ""
        yield f"writes at {', '.join(f'{at_ms / 1000:.2f} s' for at_ms in self.writes_ms[:WRITES_SHOWN])}{more}"
        if self.story:
            yield f"as a scripted story: ackproof stories {self.story} --settings {self.column}"
        ending = "" if self.complete else "; not finished, this is the best so far"
        counts = f"{counted(self.faults[0], 'fault')}, {counted(self.operations[0], 'operation')}"
        yield f"{counts} (of {self.faults[1]} and {self.operations[1]}, {self.attempts} runs{ending}): {self.plan}"


def shrink_run(directory: Path, anomaly: str = "", seconds: float | None = None) -> SmallerRun:
    """Shrink the run in ``directory`` and leave its plan and story there.

    ``anomaly`` names what to keep where it is not the worst; ``seconds`` as in :func:`shrunk`.

    Of a run on real processes it is the simulated twin that is shrunk.

    Raises:
        NamedWronglyError: it shows no such finding, or is no run that can be shrunk.
        NoTwinError: no simulated run with the faults and writes of a real one shows the same.
        ResultsError: it cannot be read, or nothing can be written there.
    """
    record = drawn_record(directory)
    if record.world.virtual_time:
        return left_in(directory, shrunk(record.spec(), anomaly, seconds=seconds))
    twin = twin_of(directory, record, anomaly)
    if twin.run is None:
        raise NoTwinError(f"{directory}: {twin.in_words()}")
    return left_in(directory, shrunk(twin.run.spec, twin.finding, seconds=seconds), twin.in_words())


def drawn_record(directory: Path) -> RunRecord:
    """The record of a run whose faults were drawn or planned.

    Raises:
        NamedWronglyError: it performed a scripted story.
        ResultsError: it cannot be read.
    """
    record = read_record(directory)
    if record.story:
        raise NamedWronglyError(
            f"{directory} performed the scripted story {record.story}, whose steps are as few as its author made them; "
            f"see: ackproof stories {record.story} --settings COLUMN --explain"
        )
    return record


def left_in(directory: Path, smaller: Shrunk, twin: str = "") -> SmallerRun:
    """Leave the plan of a smaller run in ``directory``, and its story; ``twin`` says whose twin it is, if it is one."""
    story = story_text_of(smaller.run, title_of(smaller))
    plan = directory / PLAN_FILE
    origin = f"Shrunk from the run {directory.name}: {smaller.in_words()}."
    remarks = [f"{title_of(smaller)}.", origin, *filter(None, [twin])]
    write_file(plan, plan_text(smaller.spec, _name(smaller.spec), remarks).encode())
    story_file = directory / STORY_FILE
    if story is None:
        story_file.unlink(missing_ok=True)
    else:
        write_file(story_file, story.text.encode())
    return SmallerRun(
        finding=smaller.finding.in_words(),
        faults=smaller.faults,
        operations=smaller.operations,
        attempts=smaller.attempts,
        complete=smaller.complete,
        schedule=Schedule(steps=steps_of(smaller.spec), healed_ms=smaller.spec.workload.duration_ms),
        writes_ms=tuple(write.due_us / 1000 for write in operations_of(smaller.spec)),
        plan=str(plan),
        story=str(story_file) if story else "",
        column=story.column if story else "",
        twin=twin,
    )


def title_of(smaller: Shrunk) -> str:
    """The finding of a smaller run and its faults, on one line."""
    kinds = " and ".join(dict.fromkeys(step.fault.kind for step in steps_of(smaller.spec))) or "no fault"
    return f"{smaller.finding.in_words()} after {kinds}"


def _name(spec: RunSpec) -> str:
    return f"shrunk-{spec.family.replace('+', '-')}"
