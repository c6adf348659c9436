"""A run whose plan names a scripted story: the story is performed, and accounted for as every other run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from harness.errors import HarnessError, PlanError
from harness.plan import RunSpec
from harness.records.fault_events import record_broken_invariant, record_fault
from harness.records.files import STORY_FILE, write_json
from harness.run.phases import RunReport
from harness.run.unplanned import CrashRecorder
from harness.stories import (
    ACKNOWLEDGED,
    REFUSED,
    Patience,
    Performance,
    RecordEnd,
    Story,
    known_stories,
    parse_story,
    perform,
    unmet,
)
from harness.worlds.contract import NodeCrash, World
from nemesis.schedule import Schedule
from workloads import Recorder, unknown_name
from workloads.driver import SendCounts, partition_names

#: On real machines an answer that can come at all comes within this.
ANSWER_MS: Final = 2_000


def story_of(spec: RunSpec) -> Story:
    """The story that ``spec`` names.

    Raises:
        PlanError: there is none of this number, its file is no story, or the run lacks what it needs
            (:func:`harness.stories.unmet`).
    """
    story = parse_story(spec.own_story.text, spec.own_story.file) if spec.own_story else _known(spec.story)
    if problem := unmet(story, spec):
        raise PlanError(f"the story {spec.story} {problem}")
    return story


def _known(number: str) -> Story:
    known = known_stories()
    if number not in known:
        padded = number[0] + number[1:].zfill(2)
        near = [padded] if padded in known else known
        raise PlanError(unknown_name("story", number, dict.fromkeys(near), f"{', '.join(known)}; or name a file"))
    return known[number]


def prepared(spec: RunSpec, story: Story) -> RunSpec:
    """``spec`` as its world is to be made ready for the story: for the families of its faults."""
    families = tuple(dict.fromkeys(fault.family for fault in story.faults()))
    return msgspec.structs.replace(spec, faults=msgspec.structs.replace(spec.faults, families=families))


def execute_story(spec: RunSpec, story: Story, world: World, recorder: Recorder, directory: Path) -> RunReport:
    """Perform ``story`` in ``world``, which is fresh and is closed at the end in any case; its trace is ``story.json``.

    Raises:
        HarnessError: the world could not do its work, or the story did not play as it is written, so that what came of
            it says nothing; what was recorded so far stands.
    """
    patience = None if spec.world.virtual_time else Patience.of(spec.chosen(), ANSWER_MS)
    performance = perform(story, spec.chosen(), world, recorder, spec.workload, patience=patience)
    crashes, ended_us = tuple(world.crashes()), world.clock.now_us()
    CrashRecorder(partial(record_fault, recorder, world.clock)).look(crashes, ended_us)
    record_broken_invariant(recorder, world.clock, world.broken_invariant)
    write_json(directory / STORY_FILE, performance.trace)
    if problems := (*performance.trace.problems, *performance.trace.in_vain(story.needs)):
        raise HarnessError(f"the story {story.number} did not play as it is written: {'; '.join(problems)}")
    return _report(spec, performance, crashes, ended_us)


def _report(spec: RunSpec, performance: Performance, crashes: tuple[NodeCrash, ...], ended_us: int) -> RunReport:
    (partition,) = partition_names(spec.workload)
    return RunReport(
        schedule=Schedule(steps=(), healed_ms=performance.healed_us // 1_000),
        sends=_counts(performance.trace.records),
        records_read=0,
        faults=performance.faults,
        healed_us=performance.healed_us,
        recovered_us=performance.recovered_us,
        unhealthy={partition: performance.lacking} if performance.lacking else {},
        drained=performance.drained,
        ended_us=ended_us,
        deaths=crashes,
        ends=performance.ends,
    )


def _counts(records: Mapping[str, RecordEnd]) -> SendCounts:
    outcomes = [record.outcome for record in records.values()]
    acknowledged, refused = outcomes.count(ACKNOWLEDGED), outcomes.count(REFUSED)
    return SendCounts(
        attempted=len(outcomes),
        acknowledged=acknowledged,
        rejected=refused,
        unknown=len(outcomes) - acknowledged - refused,
    )
