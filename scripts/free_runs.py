"""Adds free runs of Apache Kafka to the archive of `results/reference/conform/`, without what `conform` does not hold.

python -m scripts.free_runs [RUN...]

Then it writes beside the archive which of all runs each planted bug of the controller breaks. This takes minutes.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.broker.core.controller import Controller
from harness.broker.core.planted import WRONG
from harness.lab.conform import held_run, is_held
from harness.records.cluster_file import read_observations, write_observations
from harness.records.run_record import Ended, read_record, write_record

ARCHIVE: Final = Path(__file__).parents[1] / "results" / "reference" / "conform" / "free-runs.tar.xz"
#: By planted bug of the controller, the names of the runs that do not fit with it.
BROKEN: Final = ARCHIVE.with_name("broken-free-runs.toml")


@contextmanager
def kept_runs() -> Iterator[list[Path]]:
    """The directories of all runs in the archive, by family and seed, as long as this lasts."""
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(directory)  # noqa: S202 - our own; filters came with 3.11.4
        yield sorted(Path(directory).iterdir())


def keep(run: Path, target: Path) -> None:
    """Write the part of a run that is held, and how long it was observed, to a directory of its own in ``target``."""
    record, seen = read_record(run), list(read_observations(run))
    kept = target / f"{record.family}-{run.name}"
    kept.mkdir()
    write_observations(kept, [*filter(is_held, seen[:-1]), seen[-1]])
    write_record(kept, record.spec(), Ended(status=record.ended.status))


def add(runs: Sequence[Path]) -> None:
    """Write the archive again, with these runs more."""
    with kept_runs() as before, tempfile.TemporaryDirectory() as directory:
        target = Path(directory)
        for run in before:
            run.rename(target / run.name)
        for run in runs:
            keep(run, target)
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            for run in sorted(target.iterdir()):
                archive.add(run, run.name, filter=_anonymous)


def broken() -> dict[str, list[str]]:
    """Hold all runs in the archive with each planted bug of the controller: those that do not fit."""
    bugs = [bug for bug, part in WRONG if part is Controller]
    with kept_runs() as runs:
        return {bug: [run.name for run in runs if not all(held.fits for held in held_run(run, bug))] for bug in bugs}


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    add([Path(word) for word in sys.argv[1:]])
    lists = [f"{bug} = {json.dumps(names, indent=1)}\n" for bug, names in broken().items()]
    BROKEN.write_text("".join(lists), encoding="utf-8")
