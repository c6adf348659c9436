"""`ackproof stories --explain`: a page about one cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.runs.stories import known_stories


def test_explaining_one_cell_shows_its_steps_and_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["stories", "S09", "--settings", "all/2/E", "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "power 0" in shown
    assert "the diagram: S09-all-2-E.html" in shown
    assert "<svg" in (tmp_path / "S09-all-2-E.html").read_text()


@pytest.mark.parametrize("setting", ['"acks" = 1', '"enable.idempotence" = true'])
def test_a_story_that_sets_what_columns_choose_is_refused(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f'number = "M1"\ntitle = "t"\nsteps = "kill 0"\n[settings]\n{setting}\n')
    assert exit_code_of(["stories", str(file)]) == 64
    assert "is chosen by the columns" in capsys.readouterr().err


def test_two_stories_with_one_number_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    file.write_text('number = "S09"\ntitle = "t"\nsteps = "kill 0"\n')
    assert exit_code_of(["stories", "S09", str(file)]) == 64
    assert "two stories have the number S09" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["S09", "S01", "--settings", "all/2"], ["S09"]])
def test_explaining_more_than_one_cell_is_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["stories", *words, "--explain"]) == 64
    assert "one story in one column" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_in_several_columns_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    file.write_text('number = "M1"\ntitle = "t"\nsteps = "start 0"\n')
    assert exit_code_of(["stories", str(file), "--settings", "a*", "--workers", "1"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("broker 0 runs already") == 1
    assert "M1 in all 12 columns: " in shown
    assert "--settings COLUMN" in shown


def test_columns_with_a_comma_between_them_are_refused_with_the_right_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["stories", "S09", "--settings", "a1,all/2"]) == 64
    assert "repeat the option: --settings a1 --settings all/2" in capsys.readouterr().err


def test_the_list_has_every_number_with_its_title_and_performs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["stories", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(known_stories())
    assert "S01  The leader dies before any follower has fetched" in [line.rstrip() for line in lines]


def test_a_column_without_a_story_means_the_stories_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["stories", "--settings", "g/1", "--list"]) == 0
    numbers = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert numbers == [story.number for story in known_stories().values() if "g/1" in story.columns]
    assert numbers


def test_a_file_that_cannot_be_read_is_named_without_the_number_of_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    assert exit_code_of(["stories", str(tmp_path / "none.toml")]) == 64
    assert "none.toml cannot be read (No such file or directory); name a story file" in capsys.readouterr().err
    assert exit_code_of(["stories", str(tmp_path / "binary.toml")]) == 64
    assert "binary.toml cannot be read (byte 0 is not UTF-8); name a story file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--workers", "2"], 64, "leave one of the two out"),
        (
            ["--settings", "all/2", "--explain"],
            64,
            "--explain performs its one cell on this machine; leave --master out",
        ),
        ([], 64, '"hosts:7077" is not a Spark master'),
    ],
)
def test_what_no_cluster_can_do_is_refused(
    words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["stories", "S01", "--master", "hosts:7077", *words]) == code
    assert says in capsys.readouterr().err
