"""Nights with an accepted finding are green, until it expires or spreads."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import Outcome
from harness.campaigns.comparison import compare_results, read_results
from harness.campaigns.report.junit import as_junit, cases_of
from harness.campaigns.report.markdown import as_markdown
from harness.campaigns.soak.ending import Ending, end
from harness.campaigns.soak.nights import read_nights
from harness.records.verdict_lines import read_matrix, write_matrix
from tests.harness.campaigns.soak.conftest import IDENTITIES, KnowingChecks, Workshop, asked, line_of

FAMILY = "kill"
CELLS = tuple(f"{world}/acks=1,isr=1,unclean=false/{FAMILY}" for world in ("simulated", "processes"))


@pytest.fixture
def night(tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch):
    """Make the night of a day of January 2027 whose runs of odd seed break a promise in ``cells``."""
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)

    def make(day: int, accepted: str, *, everywhere: bool = False) -> tuple[Ending, Path]:
        tonight = Workshop(tmp_path / "nights" / f"{day:02}", workshop.plan, workshop.clock)
        tonight.directory.mkdir(parents=True)
        (tonight.directory / "accepted.toml").write_text(accepted)

        def outcome(world: str, cell: str, seed: int) -> Outcome:
            broken = everywhere or f"{world}/{cell}" in CELLS
            return Outcome.BROKEN_PROMISE if broken else Outcome.HELD

        tonight.checks = KnowingChecks(lambda world, cell, seed: line_of(world, cell, seed, outcome(world, cell, seed)))
        wanted = asked(for_s=40.0, seed=day, began=f"2027-01-{day:02}T22:00:00+00:00")
        earlier = read_nights([str(tmp_path / "nights")], tonight.directory) if day > 1 else []
        recorded = tonight.session(wanted)
        ending = end(recorded, wanted, tonight.plan, "", earlier=earlier, progress=tonight.progress)
        return ending, tonight.directory

    return make


def entry(identity: str, cells: tuple[str, ...] = CELLS) -> str:
    listed = ", ".join(f'"{cell}"' for cell in cells)
    return (
        f'[[accepted]]\nidentity = "{identity}"\ncells = [{listed}]\nreason = "KAFKA-1"\nowner = "ann"\n'
        "until = 2027-01-03\nsince = 2027-01-01T00:00:00Z\n"
    )


BOTH = "\n".join(map(entry, IDENTITIES))


def test_two_nights_are_green_and_the_third_in_which_it_has_expired_is_red(night) -> None:
    (first, _), (second, directory) = night(1, BOTH), night(3, BOTH)
    assert (first.exit_code, second.exit_code) == (0, 0), second.sentences
    assert "No promise was broken, apart from accepted findings in 2" in second.sentences[-1]
    assert any(words.startswith(f"accepted in {CELLS[1]}: lost-write ") for words in second.sentences)
    assert "Accepted: 4 findings; not counted in the exit code: 2 cells with no other finding." in second.sentences
    cells = read_matrix(directory).cells
    assert {cell.key for cell in cells if cell.excused} == set(CELLS)
    assert b'failures="0"' in as_junit(cases_of(cells))
    assert b"accepted until 2027-01-03 (ann: KAFKA-1)" in as_junit(cases_of(cells))
    assert "◆" in as_markdown(read_matrix(directory).verdict, cells)
    assert write_matrix(directory).verdict.exit_code == 0  # as `ackproof report` makes it

    third, directory = night(4, BOTH)
    assert third.exit_code == 1
    assert any(words.startswith("accepted no longer in ") for words in third.sentences)
    assert b'failures="2"' in as_junit(cases_of(read_matrix(directory).cells))


def test_a_night_whose_known_finding_is_in_another_cell_is_red(night) -> None:
    assert night(1, BOTH)[0].exit_code == 0
    spread, _ = night(2, BOTH, everywhere=True)
    assert spread.exit_code == 1
    assert any(words.startswith("accepted elsewhere, and now in ") for words in spread.sentences)
    assert any(words.startswith("accepted in ") for words in spread.sentences)


def test_a_night_that_shows_one_finding_more_than_is_accepted_is_red_and_says_what_accepts_it(night) -> None:
    assert night(1, entry(IDENTITIES[0]))[0].exit_code == 1
    ending, directory = night(2, entry(IDENTITIES[0]))
    line = f"ackproof accept {directory} {IDENTITIES[1]}"
    assert f"  {line}" in ending.sentences
    page = (directory / "nights.html").read_text()
    assert f"<code>{line}</code>" in page
    green, directory = night(3, BOTH)
    assert green.exit_code == 0
    assert not [words for words in green.sentences if "ackproof accept" in words]
    assert "ackproof accept" not in (directory / "nights.html").read_text()


def test_a_finding_that_was_gone_and_is_back_reddens_the_night_its_report_and_what_compares_it(
    night, monkeypatch
) -> None:
    assert night(1, BOTH)[0].exit_code == 0
    monkeypatch.setattr("tests.harness.campaigns.soak.test_accepted_nights.CELLS", ())
    clean, before = night(2, BOTH)
    assert clean.exit_code == 0
    monkeypatch.undo()
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)
    third, directory = night(3, BOTH)
    assert third.exit_code == 1
    assert any(words.startswith("was accepted and gone, and is back in ") for words in third.sentences)
    assert compare_results(read_results(before), read_results(directory)).exit_code == 1
    assert write_matrix(directory).verdict.exit_code == 1
