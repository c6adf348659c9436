"""Schedules that a hunt found and docs/hunt.md publishes show what is written there of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import Outcome, check_one, judge
from harness.plan import read_plan
from harness.records.files import HISTORY
from harness.run import perform

PLANS = Path(__file__).parents[3] / "plans"
ERAS = (PLANS / "eras.toml").read_text(encoding="utf-8")
HUNTED = Path(__file__).parents[3] / "results" / "reference" / "hunt"


def duplicates(tmp_path: Path, plan: str, families: list[str], **settings: str) -> int:
    """How many records the run of a published plan, with other ``settings``, has twice against a promise."""
    (spec,) = read_plan(HUNTED / plan, {name.replace("_", "."): value for name, value in settings.items()}).runs()
    ended = perform(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    judgement = judge(spec.chosen(), check_one(tmp_path / "run" / HISTORY), 1, families)
    found = judgement.broken.get("duplicate", 0)
    assert (judgement.outcome is Outcome.BROKEN_PROMISE) == bool(found)
    return found


@pytest.mark.parametrize(("window", "twice"), [("connection", 1), ("partition", 0)])
def test_batches_under_way_over_two_connections_are_written_twice_and_over_one_are_not(
    tmp_path: Path, window: str, twice: int
) -> None:
    families = ["partition", "move"]
    assert duplicates(tmp_path, "doubled-by-the-producer.toml", families, idempotence_window=window) == twice


@pytest.mark.parametrize(("known", "twice"), [("last-batch", 2), ("all-batches", 0)])
def test_a_leader_that_was_started_again_has_records_twice_where_it_knows_the_last_batch_only(
    tmp_path: Path, known: str, twice: int
) -> None:
    families = ["kill", "partition"]
    assert duplicates(tmp_path, "doubled-after-a-restart.toml", families, producers_after_restart=known) == twice


@pytest.mark.parametrize(("known", "twice"), [("last-batch", 12), ("all-batches", 0)])
def test_a_run_of_the_eras_has_records_twice_because_restarts_forget_batches_and_loses_none(
    tmp_path: Path, known: str, twice: int
) -> None:
    assert "Expected: nothing acknowledged is lost from 2.1 on, and the campaign ends with a broken promise" in ERAS
    overrides = {"era": "3.7", "producers.after.restart": known}
    spec = read_plan(PLANS / "eras.toml", overrides).single(None, None, 9474140431519)
    assert perform(spec, tmp_path / "run").status == "completed"
    judgement = judge(spec.chosen(), check_one(tmp_path / "run" / HISTORY), 1, ["kill", "partition"])
    assert (judgement.broken.get("duplicate", 0), judgement.broken.get("lost-write", 0)) == (twice, 0)
