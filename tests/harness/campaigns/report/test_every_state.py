"""The exhaustive searches beside a cell of a report: those of its settings, faults and broker, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import Cell, Outcome, Verdict
from checkers.verdicts.cells import build_cells
from checkers.verdicts.judgement import VerdictLine
from checkers.verdicts.verdict import RunFacts
from harness.campaigns.report.every_state import seen_in_every_state, sentences
from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_HARNESS
from harness.lab.explore import known_scopes, scope_named
from harness.records.searched_scopes import SCOPES_FILE, SearchedScope
from nemesis.scenarios import FAMILIES
from tests.checkers.verdicts.synthetic_verdicts import verdict
from tests.harness.campaigns.report.conftest import EVIL
from workloads.settings import Settings

SAFE = Settings(min_insync_replicas=2)
KILLED = scope_named("killed")


def cell(settings: Settings = SAFE, world: str = "simulated", **counts: int) -> Cell:
    facts = RunFacts(cell="c", family="kill", world=world, seed=1, settings=settings.to_mapping())
    (built,) = build_cells([VerdictLine.of(verdict(faults=3, **counts), facts)])
    return built


def held_under(family: str) -> Cell:
    return msgspec.structs.replace(cell(), family=family)


def searched(**changes: Any) -> SearchedScope:
    held: dict[str, Any] = {
        "scope": msgspec.to_builtins(KILLED),
        "settings": KILLED.in_effect,
        "version": "1.2",
        "states": 1342,
        "exhausted": True,
        "acknowledged": 1,
        "permitted": False,
        "broken": None,
    }
    return msgspec.convert({**held, **changes}, SearchedScope)


@pytest.mark.parametrize(
    "same",
    [
        cell(),
        cell(world="processes"),
        # Times and retries decide nothing in a scope.
        cell(Settings(min_insync_replicas=2, replica_lag_time_max_ms=900, retries=3, flush_ms=1_000)),
    ],
)
def test_a_search_of_the_same_settings_and_faults_is_said(same: Cell) -> None:
    (sentence,) = sentences(seen_in_every_state(same, [searched()]))
    what, by = sentence.split("; ")
    assert what == "in all 1,342 states of scope killed: a broker is killed and comes back with all that it had"
    assert by == "1 record, searched with ackproof 1.2"


@pytest.mark.parametrize(
    "other",
    [
        held_under("power"),
        held_under("kill+power"),
        cell(world="kafka"),
        cell(Settings(min_insync_replicas=1)),
        cell(Settings(min_insync_replicas=2, acks=1)),
        cell(Settings(min_insync_replicas=2, replication_factor=5)),
        cell(Settings(min_insync_replicas=2, enable_idempotence=True)),
        cell(Settings(min_insync_replicas=2, unclean_leader_election_enable=True)),
        cell(Settings(min_insync_replicas=2, missed_epoch="kafka")),
    ],
)
def test_nothing_is_said_of_other_settings_faults_and_brokers(other: Cell) -> None:
    assert other.outcome == Outcome.HELD
    assert seen_in_every_state(other, [searched()]) == []


def test_nothing_is_said_where_a_promise_was_broken() -> None:
    assert seen_in_every_state(cell(lost_write=1), [searched()]) == []


def test_nothing_is_said_of_a_search_that_did_not_hold() -> None:
    assert seen_in_every_state(cell(), [searched(exhausted=False), searched(permitted=True)]) == []


def test_a_scope_with_other_bounds_is_about_no_family_but_more_records_are_more_of_the_same() -> None:
    assert KILLED.varied({"crashes": 0}, {}).families == ()
    assert KILLED.varied({"records": 0}, {}).families == ()
    assert KILLED.varied({"records": 2}, {}).families == KILLED.families == ("kill",)


def test_scopes_name_families_that_there_are() -> None:
    named = {family for scope in known_scopes().values() for family in scope.families}
    assert named
    assert named <= set(FAMILIES)


def test_a_report_says_what_explore_has_printed(
    campaign: tuple[Path, Callable[..., Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, make = campaign
    make(SAFE)
    assert exit_code_of(["explore", "calm-1", "--workers", "1", "--json"]) == 0
    printed = msgspec.json.decode(capsys.readouterr().out)
    printed["scope"] |= {"families": ["kill"], "title": EVIL}
    (directory / SCOPES_FILE).write_bytes(msgspec.json.encode(printed))
    exit_code_of(["report", str(directory)])
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert "in all 36 states of scope calm-1: &lt;img src=x" in page
    assert EVIL not in page


def test_a_report_over_a_file_that_is_none_of_explore_says_so(
    campaign: tuple[Path, Callable[..., Verdict]], capsys: pytest.CaptureFixture[str]
) -> None:
    directory, make = campaign
    make(SAFE)
    (directory / SCOPES_FILE).write_text("held in all states\n")
    assert exit_code_of(["report", str(directory)]) == EXIT_HARNESS
    said = capsys.readouterr().err
    assert f"line 1 of {directory / SCOPES_FILE} cannot be read" in said
    assert "delete the lines that `ackproof explore SCOPE --json` did not print" in said
