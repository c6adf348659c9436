"""`ackproof explore`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.lab.explore import scope_named


def test_a_scope_that_holds_is_said_to_hold_in_all_its_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["explore", "calm-1", "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "held in all 36 states of scope calm-1 (36 distinct states, 75 transitions, depth 15" in shown
    for sentence in scope_named("calm-1").leaves_out():
        assert sentence in shown


def test_a_counterexample_is_printed_step_by_step_and_written_as_a_story(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "early.toml"
    words = ["explore", "calm-1", "--bug", "acknowledge-after-append", "--workers", "1", "--story", str(file)]
    assert exit_code_of(words) == 1
    shown = capsys.readouterr().out
    assert "1  a client writes a to 0" in shown
    assert "performed in column all/2 it loses a" in shown
    assert exit_code_of(["stories", str(file), "--settings", "all/2"]) == 0
    assert "lost: a" in capsys.readouterr().out


def test_a_search_that_a_limit_ends_proves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["explore", "moved", "--workers", "1", "--states", "50"]) == 2
    assert "not exhausted: --states 50" in capsys.readouterr().out


def test_a_search_in_which_nothing_was_acknowledged_proves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explore", "calm-1", "--constant", "records=0", "--workers", "2"]
    assert exit_code_of(words) == 2
    shown = capsys.readouterr().out
    assert "nothing was acknowledged" in shown
    assert "held" not in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["calm-0"], 'unknown scope "calm-0"; did you mean "calm-'),
        (["calm-1", "--constant", "crash=1"], 'did you mean "crashes"?'),
        (
            ["calm-1", "--constant", 'crashes="many"'],
            '--constant crashes: takes a whole number of at least 0, not "many"',
        ),
        (["calm-1", "--constant", "crashes=-1"], "--constant crashes: takes a whole number of at least 0, not -1"),
        (["calm-1", "--constant", "brokers=-1"], "--constant brokers: takes a whole number from 1 to 5, not -1"),
        (["calm-1", "--constant", "brokers=0"], "--constant brokers: takes a whole number from 1 to 5, not 0"),
        (["calm-1", "--constant", "brokers=2"], "in-sync=3 is more than brokers=2"),
        (["calm-1", "--constant", "in-sync=0"], "--constant in-sync: takes a whole number from 1 to 5, not 0"),
        (["calm-1", "--constant", "crashes"], "--constant crashes: write NAME=VALUE"),
        (["calm-1", "--set", "missed.epoch=never"], "missed.epoch"),
        (["calm-1", "--bug", "no-such-bug"], "planted.bug"),
        (["calm-1", "--story", "no/such/story.toml"], "the directory no/such does not exist"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest_word(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["explore", *words]) == 64
    assert why in capsys.readouterr().err


def test_scopes_are_listed_for_people_and_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["explore", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "calm-1  one record, and nothing fails" in shown
    assert "between them: moves=2, skips=1\n" in shown
    assert "eligible.leader.replicas=true" in shown
    assert exit_code_of(["explore", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "calm-1"
