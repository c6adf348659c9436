"""`ackproof hunt`: exit codes and what it prints."""

from __future__ import annotations

import json

import pytest

from harness.cli.app import exit_code_of


@pytest.fixture
def hunt(capsys):
    """Calls the command with words; the answer is its exit code and what it printed on both streams."""

    def call(*words):
        code = exit_code_of(["hunt", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_a_bug_that_is_found_ends_well(hunt):
    code, out, _ = hunt("acknowledge-after-append", "--seconds", "20", "--workers", "1")
    assert code == 0
    assert out.startswith("planted.bug=acknowledge-after-append: ")
    assert out.splitlines()[-1] == "1 of 1 found, seed 1; 0 findings about the broker as it is"


def test_a_bug_that_is_not_found_is_unknown(hunt):
    code, out, _ = hunt("append-below-min-isr", "--seconds", "0", "--workers", "1", "--portfolio", "stories")
    assert code == 2
    assert "nothing found in 1 schedules" in out


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
        (["--as-is", "--settings", "missed.epoch=kafka"], "one of the three"),
        (["--settings", "acks"], "write NAME=VALUE"),
        (["--settings", "ack=1"], 'did you mean "acks"'),
    ],
)
def test_what_cannot_be_hunted_for_is_refused_with_the_nearest_word(hunt, words, says):
    code, _, err = hunt(*words)
    assert code == 64
    assert says in err
