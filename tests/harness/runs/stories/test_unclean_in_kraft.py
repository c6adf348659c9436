"""KRaft before 3.9 holds no unclean election (KAFKA-12670): a topic that allows one ends as a topic that does not."""

from __future__ import annotations

from typing import Final

import pytest

from harness.runs.stories import Story, known_stories, perform_cell
from harness.runs.stories.table.columns import EVERY, Column
from harness.runs.stories.table.story import Expected
from workloads import Settings

#: Columns in pairs: without unclean elections, and the same with them.
PAIRS: Final = {"all/1": "all/1/U", "all/2": "all/2/U", "g": "g/U", "g/1": "g/1/U"}
STORIES: Final = known_stories()
#: The stories whose written outcomes differ with unclean elections.
TOLD_APART: Final = [
    (number, without)
    for number, story in STORIES.items()
    for without, allowed in PAIRS.items()
    if {without, allowed} <= story.columns.keys() and story.expected(without) != story.expected(allowed)
]


def performed_in(column: str, story: Story, **rules: object) -> Expected:
    named = {name.replace("_", "."): value for name, value in rules.items()}
    settings = {**EVERY[column].settings, "unclean.leader.election.enable": True, **named}
    return perform_cell(story, Column(column, "with the setting in vain", settings)).seen


def test_stories_tell_unclean_elections_apart_in_every_pair_of_columns() -> None:
    assert {without for _, without in TOLD_APART} == PAIRS.keys()
    assert len({number for number, _ in TOLD_APART}) >= 10


@pytest.mark.parametrize(("number", "column"), TOLD_APART)
def test_a_story_ends_in_old_kraft_as_where_no_unclean_election_is_allowed(number: str, column: str) -> None:
    story = STORIES[number]
    assert performed_in(column, story, unclean_elections=False) == story.expected(column)


@pytest.mark.parametrize(
    ("era", "lost"), [("2.8", {"x"}), ("3.5", set()), ("3.7", set()), ("3.9", {"x"}), ("4.1", {"x"})]
)
def test_the_last_replica_in_sync_takes_a_record_with_it_in_eras_with_unclean_elections(
    era: str, lost: set[str]
) -> None:
    """S06, seen on Kafka: 3.7.2 in KRaft loses nothing; 3.7.2 with ZooKeeper, and 3.9.1, lose x."""
    settings = {"era": era, "acks": "all", "min.insync.replicas": 1, "unclean.leader.election.enable": True}
    cell = perform_cell(STORIES["S06"], Column("all/1", f"era {era}", settings, own=True))
    assert set(cell.lost) == lost
    assert ("y" in cell.acknowledged) is Settings.from_mapping(settings).elects_uncleanly
