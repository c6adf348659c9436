"""In-sync replicas that became others are counted once each, whoever tells of them."""

from __future__ import annotations

import pytest

from harness.ground.observations import IsrChanged
from harness.worlds.refused_attempts import RefusalCounter
from workloads import LogPartition

PARTITION = LogPartition("t", 0)


def told(*changes: tuple[int, tuple[int, ...]], partition: str = "t-0") -> dict[str, int] | None:
    counter = RefusalCounter([PARTITION])
    counter.add(*(IsrChanged(partition=partition, partition_epoch=epoch, isr=isr) for epoch, isr in changes))
    return counter.attempts().isr_changes


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ([(0, (0, 1, 2)), (1, (0, 1)), (2, (0, 1, 2))], 2),
        ([(1, (0, 1)), (1, (1, 0)), (2, (0, 1, 2)), (2, (0, 1, 2))], 2),
        ([(2, (0, 1, 2)), (1, (0, 1))], 2),
        ([(0, (0, 1, 2)), (1, (2, 1, 0))], 0),
        ([(0, (0, 1, 2))], 0),
    ],
    ids=["out and in again", "told by leader and controller", "told late", "another order", "created"],
)
def test_a_change_is_another_set_of_replicas_in_a_later_partition_epoch(changes, count) -> None:
    assert told(*changes) == {"t-0": count}


def test_other_logs_and_words_without_an_epoch_do_not_count() -> None:
    assert told((1, (0,)), partition="__consumer_offsets-0") == {}
    counter = RefusalCounter([PARTITION])
    counter.add(IsrChanged(partition="t-0", isr=(0,)))
    assert counter.attempts().isr_changes == {}
