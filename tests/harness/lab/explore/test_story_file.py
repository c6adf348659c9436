"""Counterexamples are stories that lose, in the world in which every other story is performed, what they break."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.lab.explore import Scope, exhaust, lost_in, scope_named, story_text
from harness.runs.stories import perform_cell, read_story

LOSSES = ("candidates-are-complete",)
MISSED = scope_named("moved").varied({"responses-wait": False}, {"missed.epoch": "kafka"})


@pytest.mark.parametrize(
    ("scope", "steps"),
    [
        (scope_named("calm-1").varied({}, {"planted.bug": "acknowledge-after-append"}), 1),
        (scope_named("calm-1").varied({}, {"planted.bug": "commit-with-two"}), 4),
        pytest.param(scope_named("moved").varied({}, {"missed.epoch": "kafka"}), 18, marks=pytest.mark.system),
    ],
    ids=["acknowledge-after-append", "commit-with-two", "missed-epoch"],
)
def test_a_shortest_counterexample_loses_its_record_as_a_story_too(scope: Scope, steps: int) -> None:
    result = exhaust(replace(scope, rules=LOSSES))
    assert len(result.trace) == steps
    text = story_text(scope, result)
    assert text is not None
    assert lost_in(text, scope) == ("a",)


def test_the_missed_epoch_needs_a_decision_that_a_leader_does_not_hear_of() -> None:
    assert exhaust(MISSED.varied({"skips": 0}, {})).exhausted


def test_a_lost_message_has_no_words_in_a_story() -> None:
    scope = scope_named("calm-1").varied(
        {"losses": 1, "timeouts": 1, "moves": 1}, {"planted.bug": "truncate-to-high-watermark"}
    )
    result = exhaust(scope)
    lost = [step for step in result.trace if step.action.kind == "lose"]
    assert (story_text(scope, result) is None) == bool(lost)


STORIES = sorted((Path(__file__).parents[4] / "results" / "reference" / "explore" / "stories").glob("*.toml"))


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_the_counterexamples_that_are_kept_still_lose_a_record(file: Path) -> None:
    story = read_story(file)
    column = story.note.rpartition(" ")[2]
    cell = perform_cell(story, column)
    assert set(cell.lost) & {"a", "b"}
    assert cell.disagreements == ()
