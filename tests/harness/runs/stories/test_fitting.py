"""Stories under settings of one's own: exactly these, with as many brokers as there are replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.runs.stories import known_stories, own_column, perform_cell
from harness.runs.stories.table.fitting import fitted

STORIES = known_stories()


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("number", STORIES)
def test_no_step_names_a_broker_that_is_not_there(number: str, replicas: int) -> None:
    for step in fitted(STORIES[number], replicas).steps:
        assert step.tried
        for name in ("nodes", "to"):
            value = getattr(step, name, ())
            brokers = value if isinstance(value, tuple) else (value,)
            assert all(broker < replicas for broker in brokers if isinstance(broker, int))


def test_with_three_replicas_only_the_demands_are_gone() -> None:
    story = STORIES["S06"]
    assert [step.text for step in fitted(story, 3).steps] == [step.text for step in story.steps]


@pytest.mark.parametrize(("replicas", "lost"), [(1, ("x",)), (2, ()), (3, ())])
def test_a_single_copy_is_lost_with_its_power(replicas: int, lost: tuple[str, ...]) -> None:
    settings = {"acks": "all", "replication.factor": replicas, "min.insync.replicas": 1}
    assert perform_cell(STORIES["S32"], own_column(settings)).lost == lost


@pytest.mark.parametrize("number", ["T01", "G01"])
def test_the_only_broker_there_is_coordinates(number: str) -> None:
    settings = {"acks": "all", "replication.factor": 1, "min.insync.replicas": 1}
    cell = perform_cell(STORIES[number], own_column(settings))
    assert cell.acknowledged == ("a", "base")
    assert cell.disagreements == ()


def test_own_settings_are_performed_as_they_are() -> None:
    """The story's file sets missed.epoch=kafka, with which b is lost."""
    settings = {"acks": "all", "min.insync.replicas": 2, "replica.lag.time.max.ms": 30_000}
    assert perform_cell(STORIES["S40"], own_column(settings)).lost == ()
    assert perform_cell(STORIES["S40"], own_column(settings | {"era": "4.1"})).lost == ("b",)


def test_the_command_takes_settings_in_place_of_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["stories", "S01", "S02", "--settings", "era=4.1,acks=1,min.insync.replicas=2"]) == 0
    shown = capsys.readouterr().out
    assert "S01    L" in shown
    assert "S02    ." in shown
    assert "2 cells, 2 as expected, 0 not" in shown


def test_a_page_about_own_settings_has_a_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["stories", "S01", "--settings", "acks=1,replica.lag.time.max.ms=2000", "--explain"]) == 0
    assert "the diagram: S01-own.html" in capsys.readouterr().out
    assert (tmp_path / "S01-own.html").is_file()


@pytest.mark.parametrize("settings", ["acks=9", "askc=1", "acks=1,min.insync.replicas=4"])
def test_settings_that_cannot_be_are_refused(settings: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["stories", "S01", "--settings", settings]) == 64
    assert capsys.readouterr().err


def test_a_group_of_either_protocol_fits():
    story = STORIES["G01"]
    for settings in ({"acks": 1}, {"acks": 1, "group.protocol": "classic"}):
        assert perform_cell(story, own_column(settings)).disagreements == ()
