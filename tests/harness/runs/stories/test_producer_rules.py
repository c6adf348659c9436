"""Stories of producer state fail where a rule of it is wrong (rule 21)."""

from __future__ import annotations

import pytest

from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import RecordBatch
from harness.broker.core.producers import Producers
from harness.broker.core.types import NO_ERROR, ErrorCode
from harness.runs.stories import known_stories, perform_cell


def _letters(story: str, column: str) -> str:
    return perform_cell(known_stories()[story], column).seen.letters


def test_a_leader_that_remembers_what_it_dropped_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _letters("S45", "all/2") == "."
    right = MemoryLog.truncate_to

    def forgetful(log: MemoryLog, offset: int) -> None:
        before = log.producers
        right(log, offset)
        log.producers = before

    monkeypatch.setattr(MemoryLog, "truncate_to", forgetful)
    assert _letters("S45", "all/2") == "L"


def test_a_duplicate_of_any_epoch_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _letters("S46", "all/2") == "."
    right = Producers.validate

    def wrong(producers: Producers, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        for earlier in producers.batches():
            if (earlier.producer_id, earlier.base_sequence) == (batch.producer_id, batch.base_sequence):
                return NO_ERROR, earlier
        return right(producers, batch)

    monkeypatch.setattr(Producers, "validate", wrong)
    assert _letters("S46", "all/2") == "L"


def test_an_epoch_that_is_over_writes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "y" not in perform_cell(known_stories()["S46"], "all/2").acknowledged
    right = Producers.validate

    def wrong(producers: Producers, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        error, earlier = right(producers, batch)
        return (NO_ERROR if error == ErrorCode.INVALID_PRODUCER_EPOCH else error), earlier

    monkeypatch.setattr(Producers, "validate", wrong)
    assert "y" in perform_cell(known_stories()["S46"], "all/2").acknowledged
