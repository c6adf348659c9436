"""docs/guides/stories.md: its story works as it is shown, and every story says what is expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.runs.stories import known_stories

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "guides" / "stories.md").read_text(encoding="utf-8")
(STORY,) = re.findall(r"```toml\n(number = .*?)```", TEXT, re.DOTALL)
EXPECTATION = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1]
SHOWN = dict(re.findall(r"```\n\$ (ackproof stories.*?)\n(.*?)```", TEXT, re.DOTALL))


def run(capsys, *arguments):
    code = exit_code_of(["stories", *arguments])
    return code, "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())


def test_the_story_that_is_shown_comes_out_as_shown(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(STORY)
    assert run(capsys, "my.toml") == (0, SHOWN["ackproof stories my.toml"].rstrip())


def test_with_what_it_expects_it_is_held_to_it(capsys, tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(f"{STORY}\n{EXPECTATION}")
    code, printed = run(capsys, str(file), "--settings", "a1")
    assert (code, printed.splitlines()[-1]) == (0, "as expected")
    file.write_text(f"{STORY}\n{EXPECTATION.replace('a1', 'all/2')}")
    assert run(capsys, str(file), "--settings", "a1")[0] == 1


@pytest.mark.parametrize("number", known_stories())
def test_every_story_says_what_is_expected(number):
    assert known_stories()[number].expects


def test_one_story_in_one_column_is_shown_step_by_step(capsys):
    code, printed = run(capsys, "S09", "--settings", "all/2/E")
    assert code == 0
    assert "power 0" in printed
    assert "controller: 1 leads, leader epoch 1, ISR 1\n" in printed
    assert "0 is dead: log end offset 2, log: base/0 w/0" in printed
    assert printed.endswith("acknowledged: base, v, w, y; lost: nothing; seen: nothing else\nas expected")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["S9"], 'unknown story "S9"; did you mean'), (["S01", "--settings", "all"], 'unknown column "all"')],
)
def test_a_wrong_name_is_refused_with_the_nearest(capsys, arguments, message):
    assert exit_code_of(["stories", *arguments]) == 64
    assert message in capsys.readouterr().err
