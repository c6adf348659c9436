"""Continuous integration goes red where it should: the expectations of scripts/, and the campaign that must fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers import Outcome
from harness.lab.search.judged_run import run_in_memory
from harness.plan import read_plan
from tests.scripts_loaded import script

ROOT = Path(__file__).parents[1]


def expect(directory: Path, expectation: str, *cells: dict[str, Any]) -> int:
    (directory / "matrix.json").write_text(json.dumps({"cells": cells}))
    (directory / "summary.json").write_text(json.dumps({"directory": str(directory)}))
    code: int = script("expect").main(str(directory / "summary.json"), expectation)
    return code


def cell(outcome: str, acks: int | str = "all", *, lost: int = 0, permitted: bool = False) -> dict[str, Any]:
    what = {"cell": f"acks={acks}/kill", "world": "kafka", "note": "", "settings": {"acks": acks}}
    broken = {"lost-write": lost} if lost and not permitted else {}
    return {**what, "outcome": outcome, "lost": lost, "loss_permitted": permitted, "broken": broken}


LOSSY = cell("permitted loss", 1, lost=3, permitted=True)


def test_settings_are_told_apart_by_a_loss_and_a_promise_that_held(tmp_path: Path) -> None:
    assert expect(tmp_path, "told-apart", LOSSY, cell("held"), cell("permitted loss", lost=9, permitted=True)) == 0


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param([cell("held")], id="nothing weak"),
        pytest.param([cell("held"), cell("held", 1, permitted=True)], id="the weak one lost nothing"),
        pytest.param([LOSSY], id="nothing strong"),
        pytest.param([LOSSY, cell("held", permitted=True)], id="nothing was promised"),
        pytest.param([LOSSY, cell("not exercised")], id="the strong one was not put to the test"),
        pytest.param([LOSSY, cell("held"), cell("stalled")], id="one of the strong ones stalled"),
        pytest.param([LOSSY, cell("broken promise", lost=1)], id="the strong one lost"),
    ],
)
def test_settings_that_are_not_told_apart_are_a_failure(tmp_path: Path, cells: list[dict[str, Any]]) -> None:
    assert expect(tmp_path, "told-apart", *cells) == 1


@pytest.mark.parametrize("outcomes", [(), ("held",), ("broken promise", "unknown")])
def test_a_canary_that_lives_is_a_failure(tmp_path: Path, outcomes: tuple[str, ...]) -> None:
    assert expect(tmp_path, "broken", *map(cell, outcomes)) == 1
    assert expect(tmp_path, "broken", cell("broken promise", lost=1)) == 0


def test_a_canary_that_broke_another_promise_is_a_failure(tmp_path: Path) -> None:
    assert expect(tmp_path, "broken", cell("broken promise") | {"broken": {"duplicate": 1}}) == 1
    assert expect(tmp_path, "broken", cell("broken promise") | {"broken": {"unseen": 1}}) == 0


def test_the_canary_dies() -> None:
    for spec in read_plan(ROOT / "plans" / "canary.toml").runs():
        if spec.world.virtual_time:
            judgement = run_in_memory(spec, invariants=False).judgement
            assert judgement.outcome is Outcome.BROKEN_PROMISE
            assert judgement.broken["lost-write"] > 0


def test_continuous_integration_needs_kafka_and_runs_the_canary() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert {"export ACKPROOF_NEEDS_KAFKA=1", "make canary", "make kafka"} <= set(lines)
