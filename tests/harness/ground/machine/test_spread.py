"""Work on a Spark cluster: results in order whatever the machines, and a worker that dies costs its block only."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from harness.ground.errors import HarnessError
from harness.ground.machine import spread as spreading
from harness.ground.machine.spread import BLOCKS_A_CORE, spread

NUMBERS = [range(start, start + 3) for start in range(0, 60, 3)]


class Death(BaseException):
    """The death of a worker over a block, which is nothing that its work could catch."""


class Job(NamedTuple):
    """A Spark job that is performed in the thread that asks for its results."""

    blocks: Sequence[Any]
    perform: Callable[[Any], Any] = list

    def map(self, perform: Callable[[Any], Any]) -> Job:
        return Job(self.blocks, perform)

    def collect(self) -> list[Any]:
        try:
            return [self.perform(block) for block in self.blocks]
        except Death as death:
            raise RuntimeError(str(death)) from death


class Cluster:
    """Stands in for a Spark cluster, with one core that becomes three after its first job; ``jobs`` are their sizes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.jobs: list[int] = []
        self.cancelled = threading.Event()
        self.executors = 1
        self.context = SimpleNamespace(
            master="spark://host:7077",
            defaultParallelism=1,
            parallelize=self._job,
            cancelAllJobs=self.cancelled.set,
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: self)),
        )
        patch.setattr(spreading, "spark_context", lambda _: self.context)
        patch.setattr(spreading, "ship", lambda *_: None)

    def size(self) -> int:
        return self.executors + 1

    def _job(self, blocks: Sequence[Any], parts: int) -> Job:
        assert parts == len(blocks)
        self.jobs.append(parts)
        self.context.defaultParallelism = 3
        return Job(blocks)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def squares(numbers: Sequence[int]) -> list[int]:
    return [number * number for number in numbers]


def test_results_come_in_order_by_as_many_blocks_as_there_are_cores_by_then(cluster: Cluster) -> None:
    assert list(spread("any", squares, NUMBERS)) == [squares(block) for block in NUMBERS]
    assert cluster.jobs == [BLOCKS_A_CORE, 3 * BLOCKS_A_CORE, len(NUMBERS) - 4 * BLOCKS_A_CORE]


def test_work_without_end_is_begun_a_wave_ahead_and_ended_with_its_caller(cluster: Cluster) -> None:
    begun = count()
    blocks = (range(next(begun), 99) for _ in count())
    performed = spread("any", len_of, blocks)
    assert list(islice(performed, 2)) == [[99], [98]]
    performed.close()
    assert cluster.cancelled.is_set()
    assert next(begun) <= 4 * BLOCKS_A_CORE, "the first wave and the next"


def len_of(block: Sequence[int]) -> list[int]:
    return [len(block)]


def dies_at_7(numbers: Sequence[int]) -> list[int]:
    if 7 in numbers:
        raise Death("seven")
    return squares(numbers)


def fails_at_7(numbers: Sequence[int]) -> list[int]:
    if 7 in numbers:
        raise ValueError("seven")
    return squares(numbers)


def test_an_item_that_no_worker_survives_is_told_and_the_others_are_performed(cluster: Cluster) -> None:
    results = list(spread("any", dies_at_7, NUMBERS, lambda block, why: [f"{block}: {why}"]))
    expected: list[list[object]] = [[*squares(block)] for block in NUMBERS]
    expected[2] = [36, "range(7, 8): a Spark job failed: seven", 64]
    assert results == expected
    assert cluster.jobs[:5] == [4, 2, 2, 1, 1], "blocks"
    assert cluster.jobs[5:9] == [1, 1, 1, 1], "the items of one"


def test_a_block_that_is_lost_ends_work_that_cannot_do_without_it(cluster: Cluster) -> None:
    with pytest.raises(HarnessError, match="a Spark job failed: seven"):
        list(spread("any", dies_at_7, NUMBERS))
    assert cluster.cancelled.is_set()


def test_a_block_whose_work_raises_is_told_and_none_is_performed_again(cluster: Cluster) -> None:
    results = list(spread("any", fails_at_7, NUMBERS, lambda block, why: [f"{block}: {why}"]))
    assert results[2] == ["range(6, 9): a Spark job failed: ValueError: seven"]
    assert cluster.jobs == [BLOCKS_A_CORE, 3 * BLOCKS_A_CORE, len(NUMBERS) - 4 * BLOCKS_A_CORE]
    assert [result for result in results if result != results[2]] == [
        squares(block) for block in NUMBERS if 7 not in block
    ]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(spreading, "EXECUTORS_LIMIT_S", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_cluster_that_gives_no_executor_is_given_up(cluster: Cluster) -> None:
    cluster.executors = 0

    def nobody_performs(_: Sequence[int]) -> list[int]:
        cluster.cancelled.wait(60)
        raise ValueError("cancelled")

    with pytest.raises(HarnessError, match="spark://host:7077 gave no executor within 0 s; start workers, or end what"):
        list(spread("any", nobody_performs, NUMBERS))


@pytest.mark.usefixtures("impatient")
def test_work_that_takes_long_is_waited_for_while_somebody_performs_it(cluster: Cluster) -> None:
    looked = threading.Event()

    def executors() -> int:
        looked.set()
        return 2

    cluster.size = executors  # type: ignore[method-assign]

    def slow(numbers: Sequence[int]) -> list[int]:
        assert looked.wait(60)
        return squares(numbers)

    assert list(spread("any", slow, NUMBERS[:2])) == [squares(block) for block in NUMBERS[:2]]


def dying_at_7(died: Path, times: int) -> Callable[[Sequence[int]], list[int]]:
    """Squares by workers of which some die over the block with 7: Spark's workers are given it by its content."""

    def perform(numbers: Sequence[int]) -> list[int]:
        if 7 in numbers and len(list(died.iterdir())) < times:
            (died / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [number * number for number in numbers]

    return perform


def over(blocks: Iterator[list[Any]]) -> list[Any]:
    return [result for block in blocks for result in block]


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_the_runs_of_a_worker_that_dies_are_performed_again_or_told(tmp_path: Path) -> None:
    told = [-number if number == 7 else number * number for number in range(60)]
    for times, results in ((1, over(map(squares, NUMBERS))), (99, told)):
        died = tmp_path / str(times)
        died.mkdir()
        outcomes = over(
            spread("local[2]", dying_at_7(died, times), NUMBERS, lambda block, _: [-number for number in block])
        )
        assert len(list(died.iterdir())) >= min(times, 2)
        assert outcomes == results
