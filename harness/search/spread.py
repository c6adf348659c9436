"""Spreads blocks of a hunt's runs over the executors of a Spark cluster, in waves.

A wave is one Spark job with some blocks for each core. The next one is performed while the caller looks at the one
before. An executor that dies costs its blocks only: Spark gives them to another. Results come in the order of the
numbers, so what is found does not depend on the machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from checkers import cause_of, ship, spark_context
from harness.campaign import translated_errors
from harness.errors import HarnessError

#: Blocks of one wave for each core of the cluster: more keep it busy longer, fewer end sooner once something is found.
BLOCKS_A_CORE: Final = 4
#: The package that workers need beside those of the checkers, which the session sends.
PACKAGE: Final = "harness"
Result = TypeVar("Result")


def spread(master: str, perform: Callable[[range], list[Result]], first: int, block: int) -> Iterator[list[Result]]:
    """The results of ``perform`` for ``block`` numbers at a time, from ``first`` on, in order; never ends by itself.

    Raises:
        JavaError: Java is missing here.
        HarnessError: there is no such master, or a job failed.
    """
    with translated_errors():
        context = spark_context(master)
    ship(context, PACKAGE)
    blocks = context.defaultParallelism * BLOCKS_A_CORE
    with ThreadPoolExecutor(1) as ahead:

        def wave(number: int) -> list[list[Result]]:
            starts = range(number, number + blocks * block, block)
            parts = [range(start, start + block) for start in starts]
            try:
                return list(context.parallelize(parts, blocks).map(perform).collect())
            except Exception as error:  # Py4J raises whatever the JVM threw
                raise HarnessError(f"the Spark job of the hunt failed: {cause_of(error)}") from error

        coming = ahead.submit(wave, first)
        try:
            while True:
                first += blocks * block
                done, coming = coming.result(), ahead.submit(wave, first)
                yield from done
        finally:
            coming.cancel()
            with suppress(Exception):  # a context that is gone performs nothing
                context.cancelAllJobs()
