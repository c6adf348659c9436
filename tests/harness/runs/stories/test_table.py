"""Every story in every column comes out as its file expects it, and no step on the way breaks an invariant."""

from __future__ import annotations

from functools import partial

import pytest

from harness.runs.stories import column_named, known_stories, perform_cell
from harness.worlds.reference_settings import broker_config
from harness.worlds.simulated.invariants import Invariants

STORIES = known_stories()


def watch(settings, world):
    """Look at the whole cluster with each step."""
    invariants = Invariants(world.cluster, broker_config(settings))
    if settings.missed_epoch == "kafka":
        invariants.keeps_committed = False  # That is the story.
    world.cluster.watch(invariants.step)


#: A story is performed in so many parts of its columns; the first, of other columns for the next story, is short.
PARTS = 3


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.system) for part in range(1, PARTS))])
@pytest.mark.parametrize("number", STORIES)
def test_a_story_ends_as_expected_in_every_column(number, part):
    """An expected loss is worth as much as an expected rescue: a cluster that never loses anything proves nothing."""
    story, wrong = STORIES[number], {}
    begin = (part + [*STORIES].index(number)) % min(PARTS, len(story.columns))
    columns = [*story.columns][begin::PARTS]
    for name in columns if part < len(story.columns) else ():
        settings = column_named(name).chosen(story.settings)
        cell = perform_cell(story, name, partial(watch, settings) if settings.planted_bug == "none" else None)
        if cell.disagreements:
            wrong[name] = cell.disagreements
    assert wrong == {}
