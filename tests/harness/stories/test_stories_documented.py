"""docs/guides/stories.md: its story works as it is shown, and scripts on real nodes came out as expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.stories import known_stories

ROOT = Path(__file__).parents[3]
#: A row of the table of scripts in three worlds: story, settings, what is expected, what processes and Kafka did.
CELL = re.compile(r"^\| (S\d+) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
ON_KAFKA = (ROOT / "results" / "reference" / "kafka-stories" / "README.md").read_text(encoding="utf-8")
SCRIPTS = ON_KAFKA.partition("## Scripts in three worlds")[2].partition("\n## ")[0]
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


def test_it_took_ten_lines():
    assert len(STORY.strip().splitlines()) <= 10


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


def outcome_of(seen: str) -> tuple[str, int, int]:
    """The outcome of a cell, how many records it lost, and how many it has twice."""
    lost, twice = re.search(r"(\d+)(?: of \d+)? lost", seen), re.search(r"(\d+) twice", seen)
    return seen.partition(";")[0].partition(",")[0], int(lost[1]) if lost else 0, int(twice[1]) if twice else 0


@pytest.mark.parametrize(("story", "settings", "expected", "processes", "kafka"), CELL.findall(SCRIPTS))
def test_every_cell_on_real_processes_is_as_expected_and_could_have_been_otherwise(
    story: str, settings: str, expected: str, processes: str, kafka: str
) -> None:
    for world, seen in (("processes", processes), ("Kafka", kafka)):
        if seen == "not there":
            continue
        own = re.search(rf"{world}: ([^;]*)", expected)
        words = own[1] if own else expected
        outcome, lost, twice = outcome_of(seen)
        if bound := re.fullmatch(r"at most (\d+) lost", words):
            script = (ROOT / "harness" / "stories" / "data" / f"{story}.toml").read_text(encoding="utf-8")
            on_their_way = len(re.findall(r"^send ", script, re.MULTILINE))
            assert int(bound[1]) == on_their_way
            assert (outcome, lost <= on_their_way) == ("permitted loss" if lost else "held", True)
        else:
            meant = {"loss": "permitted loss"}.get(words.partition(",")[0], words.partition(",")[0])
            assert outcome == meant, f"{story} with {settings} in {world}"
            assert bool(lost) == (meant in {"permitted loss", "broken promise"})
            assert twice == (int(match[1]) if (match := re.search(r"(\d+) twice", words)) else 0)
