"""Speed and memory of the checking, measured on synthetic histories: ``python -m harness.bench.checking SIZE...``.

Each size is checked in a fresh process: end to end (imports, start of Spark, everything), then once more for the time
of the check alone. Peak memory is that of the JVM and of all Python processes together, as the sum of their resident
sets (pages that they share count for each, so it is an upper bound).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec
import psutil

from checkers import check
from harness.bench.synthetic import write_synthetic

SIZES: Final = (10**5, 10**6, 10**7, 10**8)
#: Planted in every history that is long enough, so that a checker that sees nothing is noticed.
PLANTED: Final = 4
#: The largest history takes minutes; an hour means that something hangs.
LIMIT_S: Final = 3600.0
_SAMPLE_S: Final = 0.1
_HEADER: Final = "operations   end to end   check alone   operations/s   peak memory   JVM / Python   as planted"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One size: seconds, mebibytes, completed operations. ``exact``: what was planted was found, and nothing else."""

    operations: int
    rows: int
    file_mib: float
    end_to_end_s: float
    check_s: float
    peak_mib: float
    jvm_mib: float
    python_mib: float
    exact: bool

    def line(self) -> str:
        """One line of the table."""
        return (
            f"{self.operations:>10,}   {self.end_to_end_s:>8.1f} s   {self.check_s:>9.1f} s   "
            f"{self.operations / self.check_s:>12,.0f}   {self.peak_mib:>7.0f} MiB   "
            f"{self.jvm_mib:.0f} / {self.python_mib:.0f} MiB   {'yes' if self.exact else 'NO'}"
        )


def measure(operations: int, directory: Path) -> Measurement:
    """Write a history of about so many operations into ``directory`` and check it.

    Raises:
        subprocess.SubprocessError: the check failed or took longer than :data:`LIMIT_S`.
    """
    written = write_synthetic(directory, operations, planted=min(PLANTED, operations // 30_000))
    command = [sys.executable, "-m", "harness.bench.checking", "--one", str(directory)]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        with _Memory(process.pid) as memory:
            first = json.loads(_line(process, began))
            end_to_end = time.monotonic() - began
            second = json.loads(_line(process, began))
        process.wait(30.0)
    return Measurement(
        operations=written.operations,
        rows=written.rows,
        file_mib=sum(file.stat().st_size for file in directory.iterdir()) / 2**20,
        end_to_end_s=end_to_end,
        check_s=second["seconds"],
        peak_mib=memory.peak_mib,
        jvm_mib=memory.jvm_mib,
        python_mib=memory.python_mib,
        exact=first["counts"] == second["counts"] == written.expected,
    )


def _line(process: subprocess.Popen[str], began: float) -> str:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    timer = threading.Timer(max(1.0, LIMIT_S - (time.monotonic() - began)), process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line:
        raise subprocess.SubprocessError("the check ended without an answer; what it said stands above")
    return line


class _Memory:
    """Watches the resident memory of a process and of everything that it started."""

    def __init__(self, pid: int) -> None:
        self.peak_mib = self.jvm_mib = self.python_mib = 0.0
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10.0)

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            jvm = python = 0
            try:
                for process in (self._process, *self._process.children(recursive=True)):
                    rss = process.memory_info().rss
                    jvm, python = (jvm + rss, python) if process.name() == "java" else (jvm, python + rss)
            except psutil.NoSuchProcess:
                continue
            if (jvm + python) / 2**20 > self.peak_mib:
                self.peak_mib, self.jvm_mib, self.python_mib = (jvm + python) / 2**20, jvm / 2**20, python / 2**20


def bench(sizes: Sequence[int], directory: Path) -> Iterator[Measurement]:
    """Measure each size in a directory of its own, which is removed again."""
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=directory, prefix=f"bench-{size}-") as scratch:
            yield measure(size, Path(scratch))


def print_table(sizes: Sequence[int], directory: Path, say: Callable[[str], None]) -> bool:
    """Print the table as it grows; whether every planted anomaly was found and nothing else."""
    say(_HEADER)
    exact = True
    for measurement in bench(sizes, directory):
        say(measurement.line())
        exact &= measurement.exact
    return exact


def _one(directory: Path) -> None:
    """Check a history twice and print a line of JSON for each: what the measured process does."""
    for _ in range(2):
        began = time.monotonic()
        (verdict,) = check([directory], ww_deps=True)
        answer = {"seconds": time.monotonic() - began, "counts": dict(sorted(verdict.counts.items()))}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


@click.command()
@click.argument("sizes", nargs=-1, type=float)
@click.option("--one", type=click.Path(path_type=Path), hidden=True)
@click.option("--directory", type=click.Path(path_type=Path), default=Path(tempfile.gettempdir()), show_default=True)
def main(sizes: Sequence[float], one: Path | None, directory: Path) -> None:
    """Measure histories of SIZES completed operations (by default 1e5 1e6 1e7 1e8)."""
    if one is not None:
        _one(one)
    elif not print_table([int(size) for size in sizes] or SIZES, directory, click.echo):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
