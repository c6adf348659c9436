"""JUnit's XML: a case for each cell, what fails and what is skipped, and no text that could break it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import Cell, Outcome, build_matrix
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import Case, as_junit, cases_of, write
from harness.campaigns.report.junit import unfinished_words
from harness.records.campaign_record import WorldRuns
from harness.records.verdict_lines import write_matrix
from tests.harness.campaigns.comparison.conftest import STRONG, WEAK, run_lines
from tests.harness.campaigns.report.conftest import MakeRun, campaign_record

NONSENSE = "a<b>&\"'\x00\x1b[31m\ud800]]>\ufffe|`[x](javascript:1)\n<script>alert(1)</script>"


def cell(outcome: Outcome = Outcome.HELD) -> Cell:
    (built,) = build_matrix(run_lines(STRONG)).cells
    return msgspec.structs.replace(built, outcome=outcome)


def parsed(cases: list[Case], unfinished: str = "") -> Xml.Element:
    return Xml.fromstring(as_junit(cases, unfinished))  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("outcome", "element"),
    [
        (Outcome.BROKEN_PROMISE, "failure"),
        (Outcome.STALLED, "failure"),
        (Outcome.UNKNOWN, "error"),
        (Outcome.NOT_EXERCISED, "skipped"),
        (Outcome.PERMITTED_LOSS, "system-out"),
        (Outcome.HELD, "system-out"),
    ],
)
def test_an_outcome_is_what_a_job_makes_of_it(outcome: Outcome, element: str) -> None:
    root = parsed(cases_of([cell(outcome)]))
    (case,) = root.iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("simulated.kill", "c/kill")
    assert [inside.tag for inside in case] == [element]
    counted = {name: root.get(name) for name in ("failures", "errors", "skipped") if root.get(name) != "0"}
    plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    assert counted == ({plural[element]: "1"} if element in plural else {})


def test_every_world_is_a_suite_with_its_own_counts() -> None:
    cells = build_matrix([*run_lines(STRONG, losing=1), *run_lines(WEAK, world="kafka")]).cells
    root = parsed(cases_of(cells))
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("kafka", "1", "0"),
        ("simulated", "1", "1"),
    ]
    assert (root.get("tests"), root.get("failures")) == ("2", "1")


def test_a_campaign_that_is_not_finished_is_an_error_though_its_cells_are_green() -> None:
    cells = [cell()]
    worlds = {"simulated": WorldRuns(planned=12)}
    lacks = unfinished_words(campaign_record(worlds=worlds, failures={"runs/x": "broker 1 died"}), cells)
    assert lacks == "2 of 12 runs are not there; runs/x failed: broker 1 died"
    assert parsed(cases_of(cells), lacks).get("errors") == "1"
    assert unfinished_words(campaign_record(worlds={"simulated": WorldRuns(planned=10)}), cells) == ""
    assert unfinished_words(None, cells) == ""
    assert unfinished_words(campaign_record(cells=1), cells) == ""
    assert unfinished_words(campaign_record(cells=96), cells) == "95 of 96 cells have no run"


@given(st.text())
def test_whatever_a_name_or_an_error_says_the_file_can_be_read(text: str) -> None:
    given = text + NONSENSE
    root = parsed([Case(given, given, given, Outcome.BROKEN_PROMISE, given, given)], given)
    assert [element.tag for element in root.iter()] == [
        "testsuites",
        *("testsuite", "testcase", "failure"),
        *("testsuite", "testcase", "error"),
    ]


def test_a_campaigns_failure_has_its_story_and_the_command_that_runs_it_again(campaign: tuple[Path, MakeRun]) -> None:
    directory, make = campaign
    make(STRONG, lost=1, history=True, cluster=True)
    write_matrix(directory)
    choose_witnesses(directory)
    write(directory)
    (failure,) = Xml.parse(directory / "junit.xml").iter("failure")  # noqa: S314 - our own
    text, command = failure.text or "", f"ackproof replay {directory}/runs/simulated/acks=-1,isr=2/kill/7"
    assert "A write that was acknowledged is gone" in text
    assert f"\nRun it again: {command}\n" in text
    summary = (directory / "matrix.md").read_text()
    assert f"\n    {command}\n" in summary
    assert "<details><summary>✖ " in summary
