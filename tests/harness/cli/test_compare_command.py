"""`ackproof compare`: two directories, one verdict."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli import terminal
from harness.cli.app import exit_code_of
from tests.harness.campaigns.comparison.conftest import STRONG, run_lines, write_campaign


@pytest.fixture
def nights(tmp_path: Path) -> tuple[str, str]:
    clean = write_campaign(tmp_path / "clean", run_lines(STRONG), run_lines(STRONG, cell="other/kill"))
    lossy = write_campaign(tmp_path / "lossy", run_lines(STRONG, losing=1), run_lines(STRONG, cell="other/kill"))
    return str(clean), str(lossy)


def test_a_night_that_lost_is_worse_and_the_other_way_round_it_is_not(
    nights: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean, lossy = nights
    assert exit_code_of(["compare", clean, lossy]) == 1
    *shown, verdict = capsys.readouterr().out.splitlines()
    counts = "2 cells in both (1 worse, 1 same), new findings that nothing permits in 1 cell"
    assert verdict == f"{lossy} is worse than {clean}: {counts}."
    assert sum("other/kill" in line for line in shown) == 0
    assert exit_code_of(["compare", lossy, clean]) == 0
    again = str(shutil.copytree(clean, tmp_path / "again"))
    assert exit_code_of(["compare", clean, again, "--all"]) == 0
    assert "other/kill" in capsys.readouterr().out


def test_on_a_narrow_terminal_each_cell_is_a_block_that_can_be_read(
    nights: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "FILE_WIDTH", 80)
    assert exit_code_of(["compare", *nights]) == 1
    block = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert block[0] == "worse  simulated/c/kill"
    assert all(line.startswith("    ") and len(line) <= 80 for line in block[1:])
    words = " ".join(" ".join(block[1:]).split())
    assert words.startswith("outcome: held → broken promise; runs that lost: 0/10 → 1/10; writes lost: ")


def test_a_terminal_breaks_sentences_between_words_and_a_pipe_does_not() -> None:
    sentence = "worse: simulated/c/kill: " + "writes lost that A held as promised, " * 4
    for is_terminal in (True, False):
        shown = Console(file=io.StringIO(), width=80, force_terminal=is_terminal, soft_wrap=True, highlight=False)
        terminal.Terminal(out=shown).fold(sentence.strip())
        assert isinstance(shown.file, io.StringIO)
        lines = shown.file.getvalue().splitlines()
        assert " ".join(" ".join(lines).split()) == sentence.strip()
        assert [len(line) <= 80 for line in lines] == ([True] * 3 if is_terminal else [False])


def test_a_campaign_is_not_compared_with_itself(nights: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["compare", nights[0], f"{nights[0]}/../clean"]) == 64
    assert "are the same directory" in capsys.readouterr().err


def test_machines_get_everything(nights: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["compare", *nights, "--json"]) == 1
    reported = json.loads(capsys.readouterr().out)
    assert (reported["exit_code"], [cell["change"] for cell in reported["cells"]]) == (1, ["worse", "same"])
    assert reported["cells"][0]["before"]["outcome"] == "held"
    (kind,) = reported["kinds"]
    assert (kind["cell"], kind["anomaly"], kind["fate"]) == ("simulated/c/kill", "lost-write", "new")
    assert [(finding["new"], finding["runs"]) for finding in kind["findings"]] == [(True, 1)]


def test_a_directory_that_is_no_campaign_is_refused(
    nights: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for name, why in (("nothing", "is not a directory"), ("empty", "holds no verdicts.jsonl")):
        assert exit_code_of(["compare", nights[0], str(tmp_path / name)]) == 64
        assert why in capsys.readouterr().err
