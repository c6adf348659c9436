"""A run whose plan names a scripted story: the story is performed, and accounted for as every other run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.ground.errors import HarnessError, PlanError
from harness.plan import RunSpec
from harness.records.files import STORY_FILE, write_json
from harness.runs.phases import RunReport
from harness.runs.stories import Story, known_stories, parse_story, perform_script, unmet
from harness.worlds.contract import World
from workloads import Recorder, unknown_name


def story_of(spec: RunSpec) -> Story:
    """The story that ``spec`` names.

    Raises:
        PlanError: no story has this number, its file is not a story, or the run lacks what it needs
            (:func:`harness.runs.stories.unmet`).
    """
    story = parse_story(spec.own_story.text, spec.own_story.file) if spec.own_story else _story_named(spec.story)
    if problem := unmet(story, spec):
        raise PlanError(f"the story {spec.story} {problem}")
    return story


def _story_named(number: str) -> Story:
    stories = known_stories()
    if number not in stories:
        padded = number[0] + number[1:].zfill(2)
        near = [padded] if padded in stories else stories
        raise PlanError(unknown_name("story", number, dict.fromkeys(near), f"{', '.join(stories)}; or name a file"))
    return stories[number]


def prepared(spec: RunSpec, story: Story) -> RunSpec:
    """``spec`` as its world is to be made ready for the story: for the families of its faults.

    Where the plan does not say otherwise, its log partition has replicas 0 1 2 in this order, as scripts mean it.
    """
    families = tuple(dict.fromkeys(fault.family for fault in story.faults()))
    return msgspec.structs.replace(
        spec,
        faults=msgspec.structs.replace(spec.faults, families=families),
        assignment=spec.assignment or (tuple(range(spec.chosen().replication_factor)),),
    )


def perform_story(spec: RunSpec, story: Story, world: World, recorder: Recorder, directory: Path) -> RunReport:
    """Perform ``story`` in ``world``, which is fresh and is closed at the end in any case; its trace is ``story.json``.

    Raises:
        HarnessError: the world could not do its work, or the story did not play as it is written, so its outcome says
            nothing; what was recorded so far stands.
    """
    report, trace = perform_script(story.in_column(spec.cell), spec, world, recorder)
    write_json(directory / STORY_FILE, trace)
    if problems := (*trace.problems, *trace.failed_tries(story.needs)):
        raise HarnessError(f"the story {story.number} did not play as written: {'; '.join(problems)}")
    return report
