"""Numbers among options have the bounds of plans, and their words."""

from __future__ import annotations

import pytest

from harness.cli.app import exit_code_of


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cluster", "up", "--brokers", "101"], "101 is too large; the most is 100: controllers have the numbers"),
        (["cluster", "up", "--partitions", "0"], "0 is too small; the least is 1"),
        (["campaign", "p.toml", "--seed", "9223372036854775808"], "the most is 9223372036854775807: seeds are stored"),
        (["run", "p.toml", "--seed", "-1"], "-1 is too small; the least is 0"),
        (["hunt", "--workers", "257"], "257 is too large; the most is 256: each is a process"),
        (["stories", "--workers", "many"], "Invalid value for '--workers': takes a whole number, not \"many\""),
        (["soak", "p.toml", "--tries", "x"], "Invalid value for '--tries': takes a whole number, not \"x\""),
        (["explain", ".", "--futures", "0"], "0 is too small; the least is 1"),
        (["explain", ".", "--futures", "1001"], "1001 is too large; the most is 1000"),
        (["explore", "tla-1", "--seconds", "soon"], 'takes a number of seconds, 0 or more, not "soon"'),
        (["explore", "--workers", "0"], "0 is too small; the least is 1"),
    ],
)
def test_a_number_out_of_bounds_is_refused_in_the_words_of_plans(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(words) == 64
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("digits", ["9" * 5_000, "0x" + "f" * 5_000])
def test_a_setting_of_endless_digits_is_refused_in_a_sentence(digits: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["run", "plans/demo.toml", "--settings", f"retries={digits}"]) == 64
    assert capsys.readouterr().err == (
        "ackproof: --settings: retries: an integer here has more than 64 bits, and TOML's have no more; write a "
        "smaller one\n"
    )
