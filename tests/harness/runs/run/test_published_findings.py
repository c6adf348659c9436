"""Schedules that a hunt found and results/reference/hunt publishes show what is written of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import Outcome, check_one, judge
from harness.plan import read_plan
from harness.records.files import HISTORY
from harness.runs.run import perform_run

PLANS = Path(__file__).parents[4] / "plans"
ERAS = (PLANS / "eras.toml").read_text(encoding="utf-8")
HUNTED = Path(__file__).parents[4] / "results" / "reference" / "hunt"


def duplicates(tmp_path: Path, plan: str, families: list[str], **settings: str) -> int:
    """The number of records that the run of a published plan, with other ``settings``, has twice against a promise."""
    (spec,) = read_plan(HUNTED / plan, {name.replace("_", "."): value for name, value in settings.items()}).runs()
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    judgement = judge(spec.chosen(), check_one(tmp_path / "run" / HISTORY), 1, families)
    count = judgement.broken.get("duplicate", 0)
    assert (judgement.outcome is Outcome.BROKEN_PROMISE) == bool(count)
    return count


@pytest.mark.parametrize(("window", "twice"), [("connection", 1), ("partition", 0)])
def test_batches_under_way_over_two_connections_are_written_twice_and_over_one_are_not(
    tmp_path: Path, window: str, twice: int
) -> None:
    families = ["partition", "move"]
    assert duplicates(tmp_path, "doubled-by-the-producer.toml", families, idempotence_window=window) == twice


@pytest.mark.parametrize(("rule", "twice"), [("last-batch", 2), ("all-batches", 0)])
def test_a_leader_that_was_started_again_has_records_twice_where_it_knows_the_last_batch_only(
    tmp_path: Path, rule: str, twice: int
) -> None:
    families = ["kill", "partition"]
    assert duplicates(tmp_path, "doubled-after-a-restart.toml", families, producers_after_restart=rule) == twice


#: In 4.1 records are written twice too, by other schedules than this one.
@pytest.mark.parametrize("era", ["2.1", "2.8", "3.5", "3.7"])
@pytest.mark.parametrize(("rule", "twice"), [("last-batch", 2), ("all-batches", 0)])
def test_what_the_plan_of_the_eras_expects_is_what_the_rule_of_restarts_does_in_them(
    tmp_path: Path, era: str, rule: str, twice: int
) -> None:
    assert "nothing acknowledged is lost from 2.1 on, and the campaign ends with a broken promise" in ERAS
    (own,) = {choice.settings["producers.after.restart"] for choice in read_plan(PLANS / "eras.toml").choices}
    assert own == "last-batch"
    families = ["kill", "partition"]
    count = duplicates(tmp_path, "doubled-after-a-restart.toml", families, era=era, producers_after_restart=rule)
    assert count == twice
