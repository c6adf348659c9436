"""Every story in every column comes out as its file expects it, and no step on the way breaks an invariant."""

from __future__ import annotations

from functools import partial

import pytest

from harness.runs.stories import (
    OF_GROUPS,
    OF_PIPELINES,
    OF_TRANSACTIONS,
    Column,
    column_named,
    known_stories,
    perform_cell,
)
from harness.worlds.reference_settings import broker_config
from harness.worlds.simulated.invariants import Invariants

STORIES = known_stories()


def watch(settings, world):
    """Look at the whole cluster with each step."""
    invariants = Invariants(world.cluster, broker_config(settings))
    if settings.missed_epoch == "kafka":
        invariants.keeps_committed = False  # That is the story.
    world.cluster.watch(invariants.step)


#: In a short test a story is performed in each sixth column that it takes, each story beginning at another one.
EVERY = 6
FIRST = {
    number: [*story.columns][index % min(EVERY, len(story.columns)) :: EVERY]
    for index, (number, story) in enumerate(STORIES.items())
}
REST = {number: [name for name in story.columns if name not in FIRST[number]] for number, story in STORIES.items()}


@pytest.mark.parametrize(
    ("number", "columns"),
    [
        *(pytest.param(number, columns, id=f"{number}-first") for number, columns in FIRST.items()),
        *(
            pytest.param(number, columns, id=f"{number}-rest", marks=pytest.mark.system)
            for number, columns in REST.items()
            if columns
        ),
    ],
)
def test_a_story_ends_as_expected_in_every_column(number, columns):
    """An expected loss is worth as much as an expected rescue: a cluster that never loses anything proves nothing."""
    story, wrong = STORIES[number], {}
    for name in columns:
        settings = column_named(name).chosen(story.settings)
        cell = perform_cell(story, name, partial(watch, settings) if settings.planted_bug == "none" else None)
        if cell.disagreements:
            wrong[name] = cell.disagreements
    assert wrong == {}


@pytest.mark.parametrize(
    ("columns", "right", "alike"),
    [
        (OF_TRANSACTIONS, "v2", {"v1", "v2/RU"}),
        (OF_GROUPS, "g", {"g/1", "c"}),
        (OF_PIPELINES, "o2", {"o1", "c2"}),
    ],
    ids=["transactions", "groups", "pipelines"],
)
def test_every_column_of_a_planted_bug_is_told_apart_by_a_story(
    columns: dict[str, Column], right: str, alike: set[str]
) -> None:
    """A control that no story turns red is none; neither is a choice of settings in which nothing is different."""
    stories = [story for story in STORIES.values() if story.columns is columns]
    assert len(stories) >= 3
    for name in columns.keys() - {right} - alike:
        assert any(story.expected(name).letters != story.expected(right).letters for story in stories), name


def test_min_isr_1_makes_a_difference_to_groups_where_elections_are_unclean() -> None:
    assert any(s.expected("g/1/U") != s.expected("g/U") for s in STORIES.values() if s.columns is OF_GROUPS)
