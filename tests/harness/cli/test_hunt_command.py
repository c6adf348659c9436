"""`ackproof hunt`: exit codes and what it prints."""

from __future__ import annotations

import json

import pytest

from harness.cli.app import exit_code_of
from harness.lab.search import HuntResult


@pytest.fixture
def hunt(capsys):
    """Calls the command with words; the answer is its exit code and what it printed on both streams."""

    def call(*words):
        code = exit_code_of(["hunt", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.mark.system
def test_a_bug_that_is_found_ends_well(hunt):
    code, out, _ = hunt("acknowledge-after-append", "--seconds", "600", "--workers", "1")
    assert code == 0
    assert out.startswith("planted.bug=acknowledge-after-append: ")
    assert out.splitlines()[-1] == "1 of 1 found, seed 1; 0 findings about the broker as it is"


def test_what_is_printed_of_a_run_performs_it_again(hunt):
    """And shrinks it; the portfolio may be one that only clean hunts go round."""
    _, out, _ = hunt("commit-with-two", "--seed", "3", "--seconds", "600", "--workers", "1", "--shrink", "0")
    again = next(line.partition("repeat it: ")[2] for line in out.splitlines() if "repeat it: " in line)
    code, repeated, _ = hunt(*again.split()[2:], "--shrink", "2")
    assert code == 0
    assert [line for line in repeated.splitlines() if again in line]
    assert "the same with " in repeated
    code, out, _ = hunt("--as-is", "--portfolio", "in-sync/kill", "--run", "5")
    assert (code, out.splitlines()[0].rpartition(",")[0]) == (0, "as it is: nothing found in 1 schedule")


def test_settings_are_printed_as_they_are_written(hunt):
    words = ["--settings", "unclean.leader.election.enable=true", "--portfolio", "stories", "--run", "0"]
    code, out, _ = hunt(*words)
    assert (code, out.partition(":")[0]) == (2, "unclean.leader.election.enable=true")


def test_a_bug_that_is_not_found_is_unknown(hunt):
    code, out, _ = hunt("append-below-min-isr", "--seconds", "0", "--workers", "1", "--portfolio", "stories")
    assert code == 2
    assert "nothing found in 1 schedule" in out


def test_what_was_found_is_printed_before_the_harness_gives_up(hunt, monkeypatch):
    given_up = HuntResult(changed={}, seed=1, schedules=9, seconds=2.0, alarming=None, stopped="a worker was killed")
    monkeypatch.setattr("harness.cli.hunt.hunt_for", lambda *_, **__: given_up)
    code, out, err = hunt("--as-is")
    assert (code, "nothing found in 9 schedules" in out) == (70, True)
    assert "a worker was killed" in err


def test_the_broker_as_it_is_has_no_finding(hunt):
    code, out, _ = hunt("--clean", "3", "--portfolio", "moves", "--workers", "1", "--json")
    assert code == 0
    assert json.loads(out)["findings"] == 0
    assert json.loads(out)["schedules"] == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["acknowledge-after-apend"], 'did you mean "acknowledge-after-append"'),
        (["--as-is", "--portfolio", "storys"], 'did you mean "stories"'),
        (["zzz"], 'unknown bug "zzz"; there are acknowledge-after-append, '),
        (["--as-is", "--portfolio", "xyz"], 'unknown portfolio "xyz"; there are stories, moves, '),
        (["--as-is", "--run", "3"], "with --portfolio NAME"),
        (["--clean", "3", "--run", "3", "--portfolio", "moves"], "leave one of the two out"),
        (["--as-is", "--settings", "missed.epoch=kafka"], "only one of the three"),
        (["--clean", "3", "--settings", "acks=1"], "leave --clean out"),
        (["--clean", "3", "join-anywhere"], "leave --clean out"),
        (["--as-is", "--seconds", "nan"], "'--seconds': takes a number of seconds, 0 or more"),
        (["--as-is", "--seconds", "-1"], 'takes a number of seconds, 0 or more, not "-1"'),
        (["--as-is", "--shrink", "nan"], "'--shrink': takes a number of seconds, 0 or more"),
        (["--settings", "replication.factor=50", "--seconds", "0"], "a hunt has 3 brokers"),
        (
            ["--settings", "cleanup.policy=compact", "--seconds", "0", "--portfolio", "transactions"],
            "the portfolio transactions expects every record to stay",
        ),
        (
            ["--settings", "cleanup.policy=delete", "--seconds", "0", "--portfolio", "compacted"],
            "the portfolio compacted is about compaction",
        ),
        (["--settings", "acks"], "write NAME=VALUE"),
        (["--settings", "ack=1"], 'did you mean "acks"'),
    ],
)
def test_what_cannot_be_hunted_for_is_refused_with_the_nearest_word(hunt, words, says):
    code, _, err = hunt(*words)
    assert code == 64
    assert says in err
