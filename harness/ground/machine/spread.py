"""Spreads work over the executors of a Spark cluster: blocks of it, in waves.

A wave is one Spark job with some blocks for each core. The next one is performed while the caller looks at the one
before. An executor that dies costs its blocks only: they are performed again by others. Results come in the order of
the blocks, so they do not depend on the machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from threading import Event
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from checkers import cause_of, ship, spark_context
from harness.ground.errors import HarnessError
from harness.ground.machine.translated_errors import translated_errors

#: Processes of this machine by their number, or the executors of a Spark cluster by its master's address.
Workers: TypeAlias = int | str
#: Blocks of one wave for each core of the cluster: more keep it busy longer, fewer end sooner once something is found.
BLOCKS_A_CORE: Final = 4
#: The package that workers need beside those of the checkers, which the session sends.
PACKAGE: Final = "harness"
#: Seconds without any executor after which a cluster is given up, and between two looks whether there is one.
EXECUTORS_LIMIT_S: Final = 300.0
LOOK_EVERY_S: Final = 5.0
Item = TypeVar("Item")
Result = TypeVar("Result")


def spread(
    master: str,
    perform: Callable[[Sequence[Item]], list[Result]],
    blocks: Iterable[Sequence[Item]],
    lost: Callable[[Sequence[Item], str], list[Result]] | None = None,
) -> Generator[list[Result], None, None]:
    """The results of ``perform`` for each of ``blocks``, in order; where they never end, nor does this.

    An item over which workers died again and again, and a block whose work raised, have the results that ``lost`` makes
    of them and of the reason; without ``lost`` the first such block ends all.

    Raises:
        JavaError: Java is missing here.
        HarnessError: there is no such master, it has no executor for this, or a block was lost and there is no
            ``lost``.
    """
    with translated_errors():
        context = spark_context(master)
    ship(context, PACKAGE)
    jobs = _Jobs(context, perform, lost)
    left = iter(blocks)

    def wave() -> list[list[Result]]:
        # Executors come one after the other: a cluster may have more cores than a moment ago.
        return jobs.perform_all(list(islice(left, context.defaultParallelism * BLOCKS_A_CORE)))

    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(wave)
        try:
            while done := _answer(coming, context):
                coming = ahead.submit(wave)
                yield from done
        finally:
            coming.cancel()
            jobs.end()


class _Raised(NamedTuple):
    """The error that ended a block's work: as an answer, for Spark would have the block raise it again and again."""

    error: str


def _caught(perform: Callable[[Sequence[Item]], list[Result]], block: Sequence[Item]) -> list[Result] | _Raised:
    try:
        return perform(block)
    except Exception as error:  # Whatever it is, the next executor would raise it too.
        return _Raised(f"{type(error).__name__}: {error}")


class _Jobs(Generic[Item, Result]):
    """Performs blocks in Spark jobs, until it is ended."""

    def __init__(
        self,
        context: Any,
        perform: Callable[[Sequence[Item]], list[Result]],
        lost: Callable[[Sequence[Item], str], list[Result]] | None,
    ) -> None:
        self._context, self._perform, self._lost = context, partial(_caught, perform), lost
        self._ended = Event()

    def perform_all(self, blocks: Sequence[Sequence[Item]]) -> list[list[Result]]:
        """The results of each block, by one job; where that fails, by one for each half: of the blocks, then of the
        items of one, if what fails may be lost.
        """
        if not blocks or self._ended.is_set():
            return []
        try:
            answers = list(self._context.parallelize(blocks, len(blocks)).map(self._perform).collect())
        except Exception as error:  # Py4J raises whatever the JVM threw
            if len(blocks) > 1:
                half = len(blocks) // 2
                return self.perform_all(blocks[:half]) + self.perform_all(blocks[half:])
            (block,) = blocks
            if self._lost is not None and len(block) > 1:
                half = len(block) // 2
                halves = self.perform_all([block[:half]]) + self.perform_all([block[half:]])
                return [[*chain.from_iterable(halves)]]
            answers = [_Raised(cause_of(error))]
        return [
            self._told(block, answer.error) if isinstance(answer, _Raised) else answer
            for block, answer in zip(blocks, answers, strict=True)
        ]

    def _told(self, block: Sequence[Item], error: str) -> list[Result]:
        why = f"a Spark job failed: {error}"
        if self._lost is None:
            raise HarnessError(why)
        return self._lost(block, why)

    def end(self) -> None:
        """End the job that is being performed; none follows."""
        self._ended.set()
        with suppress(Exception):  # a context that is gone performs nothing
            self._context.cancelAllJobs()


def _answer(coming: Future[list[list[Result]]], context: Any) -> list[list[Result]]:
    """The wave that is being performed, however long it takes while there is an executor."""
    performed_at = time.monotonic()
    while True:
        try:
            return coming.result(LOOK_EVERY_S)
        except TimeoutError:
            if _executors(context):
                performed_at = time.monotonic()
            elif time.monotonic() - performed_at > EXECUTORS_LIMIT_S:
                raise HarnessError(
                    f"{context.master} gave no executor within {EXECUTORS_LIMIT_S:.0f} s; start workers, or end what "
                    "has their cores"
                ) from None


def _executors(context: Any) -> int:
    """The executors that a cluster has given; local threads are one."""
    with_driver: int = context._jsc.sc().getExecutorMemoryStatus().size()  # noqa: SLF001 - PySpark does not show it
    return with_driver if context.master.startswith("local") else with_driver - 1
