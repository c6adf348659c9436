"""A committed history, held against a log that was copied after it was cleaned: removed records say nothing."""

from __future__ import annotations

import pytest

from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import RecordBatch
from harness.worlds.simulated.committed import Committed

END = 6


def log_of(*kept: tuple[int, int]) -> MemoryLog:
    """A replica's log of batches of one record, (offset, leader epoch); what lies between was cleaned away."""
    log = MemoryLog()
    for offset, epoch in kept:
        log.end_offset = offset
        log.append(RecordBatch(1, 10, (f"r{offset}",), offset, epoch))
    return log


WHOLE = log_of((0, 0), (1, 0), (2, 0), (3, 2), (4, 2), (5, 2))
#: The records 3 and 4, with which epoch 2 began, were gone before it was copied.
COPIED = log_of((0, 0), (1, 0), (2, 0), (5, 2))


@pytest.mark.parametrize("end", range(1, END + 1))
def test_a_copy_of_a_cleaned_log_lacks_nothing(end: int) -> None:
    committed = Committed()
    committed.commit(WHOLE, end)
    assert committed.lacking_in(1, COPIED) is None


def test_the_earliest_start_of_an_epoch_is_kept() -> None:
    committed = Committed()
    committed.commit(WHOLE, 4)
    committed.commit(COPIED, END)
    assert [committed.epoch_at(offset) for offset in range(END)] == [0, 0, 0, 2, 2, 2]


def test_a_record_of_another_epoch_is_another_record() -> None:
    committed = Committed()
    committed.commit(WHOLE, 5)
    broken = committed.lacking_in(1, log_of((0, 0), (4, 1), (5, 2)))
    assert broken is not None
    assert broken[0] == "logs-match"
