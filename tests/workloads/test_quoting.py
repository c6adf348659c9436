"""Messages show a user's values as the user would write them, and files get values that TOML reads back."""

from __future__ import annotations

import subprocess
import tomllib
from datetime import date, datetime, time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.quoting import QUOTED_MAX, in_toml, reason_of, shown, unknown_name

plain = st.one_of(
    st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.dates(), st.datetimes()
)
values = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(values)
def test_toml_reads_back_what_is_written(value: Any) -> None:
    assert tomllib.loads(f"value = {in_toml(value)}")["value"] == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true"),
        ("all", '"all"'),
        ([1, "all"], '[1, "all"]'),
        ((1, False), "[1, false]"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (time(7, 32), "07:32:00"),
        (None, "null"),
        (float("inf"), "inf"),
        ({"a": 1}, "a table"),
        ([{"a": 1}], '[{"a" = 1}]'),
        ("x" * 100, '"' + "x" * (QUOTED_MAX - 1) + "..."),
    ],
)
def test_values_are_shown_without_words_of_python(value: object, words: str) -> None:
    assert shown(value) == words


@pytest.mark.parametrize(
    ("name", "there_are", "sentence"),
    [
        ("kil", "", 'unknown fault "kil"; did you mean "kill"?'),
        ("KILL", "", 'unknown fault "KILL"; did you mean "kill"?'),
        ("kil", "kill and wipe", 'unknown fault "kil"; did you mean "kill"? (there are kill and wipe)'),
        ("zzz", "", 'unknown fault "zzz"; there are kill, wipe'),
        ("", "", 'unknown fault ""; there are kill, wipe'),
        ("", "kill and wipe", 'unknown fault ""; there are kill and wipe'),
    ],
)
def test_a_name_that_is_near_none_suggests_none(name: str, there_are: str, sentence: str) -> None:
    assert unknown_name("fault", name, {"kill": 1, "wipe": 2}, there_are) == sentence


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "there/x"), "No such file or directory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "byte 0 is not UTF-8"),
        (subprocess.TimeoutExpired(["java", "-version"], 5.0), "it did not end within 5 s"),
        (OSError("one\n  two"), "one two"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_a_reason_has_no_numbers_of_errors_and_nothing_of_python(error: Exception, words: str) -> None:
    assert reason_of(error) == words
