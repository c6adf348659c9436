"""The story of a reader ahead of its leader's high watermark fails where that is an error (rule 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.core.messages import FetchedPartition
from harness.broker.core.request_handler import RequestHandler
from harness.broker.core.types import ErrorCode
from harness.runs.stories import known_stories, perform_cell

#: The answer of a broker for one log partition.
Look = Callable[..., FetchedPartition]


def _refusing(right: Look) -> Look:
    """A leader that calls every offset of a consumer out of range that it does not know to be committed."""

    def look(handler: RequestHandler, wanted: Any, message: Any, replica: Any) -> FetchedPartition:
        answer = right(handler, wanted, message, replica)
        if message.replica_id < 0 and not answer.error and wanted.fetch_offset > answer.high_watermark:
            return FetchedPartition(wanted.partition, ErrorCode.OFFSET_OUT_OF_RANGE, answer.high_watermark)
        return answer

    return look


def test_a_member_ahead_of_its_leaders_high_watermark_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    assert perform_cell(known_stories()["G17"], "g").seen.letters == "."
    monkeypatch.setattr(RequestHandler, "_look", _refusing(RequestHandler._look))
    assert perform_cell(known_stories()["G17"], "g").seen.letters == "P+"
