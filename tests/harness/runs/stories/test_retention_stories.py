"""Stories of retention fail where the core drops too much, too little, or keeps what its leader has dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.core.replica import Replica
from harness.broker.core.retention import Retention
from harness.runs.stories.table.cells import perform_cell
from harness.runs.stories.table.columns import COLUMNS
from harness.runs.stories.table.story import known_stories

RIGHT: Callable[..., Any] = Retention._is_over


def disagreements(number: str) -> tuple[str, ...]:
    return perform_cell(known_stories()[number], COLUMNS["all/2"]).disagreements


def test_a_follower_that_keeps_its_old_log_is_not_in_sync_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "restart_at", lambda *_: None)
    assert any("wait until all are in sync" in wrong for wrong in disagreements("S90"))


def test_records_that_never_go_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retention, "_is_over", lambda *_: False)
    assert any("wait until 0 lacks y" in wrong for wrong in disagreements("S91"))


def test_records_that_go_too_early_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retention, "_is_over", lambda *asked: RIGHT(*asked[:-1], asked[-1] + 3_590_000_000))
    assert "lost, and not expected to be: base, x, y" in disagreements("S92")
