"""Speed and memory of the checking of synthetic histories: ``python -m bench.checking_speed SIZE...``.

Each size is checked in a fresh process: end to end (imports, start of Spark, everything), then once more for the time
of the check alone, as time that passes and as time on processors. A busy machine hardly changes the second; two idle
cores take at least half of it. Peak memory is that of the JVM and of all Python processes together, as the sum of their
resident sets (pages that they share count for each, so it is an upper bound).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import click
import msgspec
import psutil

from bench.committed_transactions import CommittedBlock
from bench.group_work import GroupBlock
from bench.pipeline_work import PipelineBlock
from bench.synthetic import BlockBuilder, SyntheticHistory, write_synthetic
from bench.transactions import TRANSACTIONS, TransactionBlock
from checkers import check
from workloads.history import export_jsonl

#: By kind of history the measured sizes, in completed operations: "cycles" are transactions that also read,
#: "transactions" those of transactional producers, "groups" polls, PROCESS and commits of members, "pipelines" the
#: transactions of members.
SIZES: Final = {
    "operations": (10**5, 10**6, 10**7, 10**8),
    "json-lines": (10**6, 10**7),
    "cycles": (10**6,),
    "transactions": (10**6,),
    "groups": (10**7,),
    "pipelines": (10**6,),
}
#: Cycles in a history of transactions that read; each size is measured without and with them.
CYCLES: Final = 20
#: Planted in every history that is long enough, so that a checker that sees nothing is noticed.
PLANTED: Final = 4
#: The largest history takes minutes; an hour means that something hangs.
LIMIT_S: Final = 3600.0
_SAMPLE_S: Final = 0.1
_HEADER: Final = (
    "what                      operations   end to end   check alone   processors   operations/s   "
    "peak memory   JVM / Python   as planted"
)


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One size: seconds, mebibytes, completed operations. ``exact``: the check found the plants and nothing else.

    ``check_s`` is the second check, ``processor_s`` the time of all its processes on processors.
    """

    what: str
    operations: int
    rows: int
    file_mib: float
    end_to_end_s: float
    check_s: float
    processor_s: float
    peak_mib: float
    jvm_mib: float
    python_mib: float
    exact: bool

    def line(self) -> str:
        """One line of the table."""
        return (
            f"{self.what:<22}   {self.operations:>11,}   {self.end_to_end_s:>8.1f} s   {self.check_s:>9.1f} s   "
            f"{self.processor_s:>8.1f} s   {self.operations / self.check_s:>12,.0f}   {self.peak_mib:>7.0f} MiB   "
            f"{self.jvm_mib:.0f} / {self.python_mib:.0f} MiB   {'yes' if self.exact else 'NO'}"
        )


class WorkOfClients(NamedTuple):
    """A kind of history about one workload: its blocks, and how many operations it has for each plant."""

    builder: type[BlockBuilder]
    operations_a_plant: int


WORK: Final = {
    "groups": WorkOfClients(GroupBlock, 50_000),
    "transactions": WorkOfClients(CommittedBlock, 10_000),
    "pipelines": WorkOfClients(PipelineBlock, 10_000),
}


class MeasuredHistory(NamedTuple):
    """A history to measure: its name, and a function that writes it below a directory and returns its path."""

    what: str
    write: Callable[[Path], tuple[SyntheticHistory, Path]]


def subjects(kind: str, size: int) -> list[MeasuredHistory]:
    """The histories of one kind and size to measure."""
    if kind == "operations":
        return [MeasuredHistory("operations", partial(_operations, size))]
    if kind == "json-lines":
        return [MeasuredHistory("JSON lines", partial(_json_lines, size))]
    if kind in WORK:
        builder, operations_a_plant = WORK[kind]
        planted = min(len(builder.plants), size // operations_a_plant)
        return [MeasuredHistory(kind, partial(_in, builder, size, planted))]
    return [
        MeasuredHistory(f"transactions, {n} cycles", partial(_in, TransactionBlock, size, n))
        for n in (0, min(CYCLES, size // TRANSACTIONS))
    ]


def _operations(size: int, directory: Path) -> tuple[SyntheticHistory, Path]:
    return _in(BlockBuilder, size, min(PLANTED, size // 30_000), directory)


def _in(builder: type[BlockBuilder], size: int, planted: int, directory: Path) -> tuple[SyntheticHistory, Path]:
    return write_synthetic(directory, size, planted=planted, builder=builder), directory


def _json_lines(size: int, directory: Path) -> tuple[SyntheticHistory, Path]:
    written, stored = _operations(size, directory / "stored")
    with (directory / "history.jsonl").open("wb") as sink:
        export_jsonl(stored, sink)
    return written, directory / "history.jsonl"


def measure(subject: MeasuredHistory, directory: Path) -> Measurement:
    """Write a history into ``directory`` and check it.

    Raises:
        subprocess.SubprocessError: the check failed or took longer than :data:`LIMIT_S`.
    """
    written, history = subject.write(directory)
    command = [sys.executable, "-m", "bench.checking_speed", "--child", str(history)]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        with _Memory(process.pid) as memory:
            first = json.loads(_line(process, began))
            end_to_end = time.monotonic() - began
            second = json.loads(_line(process, began))
        process.wait(30.0)
    return Measurement(
        what=subject.what,
        operations=written.operations,
        rows=written.rows,
        file_mib=sum(file.stat().st_size for file in (history.iterdir() if history.is_dir() else [history])) / 2**20,
        end_to_end_s=end_to_end,
        check_s=second["seconds"],
        processor_s=second["processor_s"],
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
        raise subprocess.SubprocessError("the check ended without an answer; see its output above")
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


def bench(kinds: Sequence[str], sizes: Sequence[int], directory: Path) -> Iterator[Measurement]:
    """Measure each history in a directory of its own, which is removed again; without ``sizes`` those of each kind."""
    for subject in [subject for kind in kinds for size in sizes or SIZES[kind] for subject in subjects(kind, size)]:
        with tempfile.TemporaryDirectory(dir=directory, prefix="bench-") as scratch:
            yield measure(subject, Path(scratch))


def _check_twice(history: Path) -> None:
    """Check a history twice, with overwrites as dependencies, and print a line of JSON for each check."""
    for _ in range(2):
        began, used_s = time.monotonic(), _processor_s()
        (verdict,) = check([history], ww_deps=True)
        answer = {
            "seconds": time.monotonic() - began,
            "processor_s": _processor_s() - used_s,
            "counts": dict(sorted(verdict.counts.items())),
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _processor_s() -> float:
    """Time on processors of this process and of all that it started; that of ended ones is in their parent's."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (me, *me.children(recursive=True)))


@click.command()
@click.argument("sizes", nargs=-1, type=float)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(SIZES)), help="What to measure, by default all.")
@click.option("--child", "history", type=click.Path(path_type=Path), hidden=True)
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    default=Path(tempfile.gettempdir()),
    show_default=True,
    help="Directory of the histories, which are deleted again.",
)
def main(sizes: Sequence[float], kinds: Sequence[str], history: Path | None, directory: Path) -> None:
    """Measure how fast histories are checked.

    The histories have SIZES completed operations, by default up to 1e8, as JSON lines up to 1e7.
    """
    if history is not None:
        _check_twice(history)
        return
    click.echo(_HEADER)
    exact = True
    for measurement in bench(kinds or list(SIZES), [int(size) for size in sizes], directory):
        click.echo(measurement.line())
        exact &= measurement.exact
    if not exact:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
