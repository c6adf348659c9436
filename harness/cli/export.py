"""`ackproof export`: a history as JSON lines (docs/guides/history-format.md)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from checkers import RUN, RUN_FILE, replica_lines
from harness.cli.streams import writing_output
from harness.cli.terminal import Terminal, path_type
from harness.ground.errors import EXIT_HELD, NamedWronglyError
from harness.ground.machine.translated_errors import translated_errors
from harness.records.files import HISTORY, files_of
from harness.records.run_record import read_record
from harness.records.verdict_lines import facts_of
from workloads.history import HistoryError, export_jsonl


@click.command()
@click.argument("run_dir", type=path_type)
@click.option("--out", type=path_type, help="The file to write, instead of standard output.")
@click.pass_obj
def export(terminal: Terminal, run_dir: Path, out: Path | None) -> int:
    """Write the history of RUN_DIR as JSON lines.

    With it go the settings and faults of the run, and what its replicas' disks held: `check` judges it as the run was.
    """
    history = run_dir / HISTORY if (run_dir / HISTORY).is_dir() else run_dir
    if not any(history.glob("*.parquet")):
        raise NamedWronglyError(f"{run_dir} holds no history; name the directory of a run, or of an imported history")
    with translated_errors():
        if out is None:
            with writing_output():
                _write(history, sys.stdout.buffer)
            return EXIT_HELD
        if out.exists():
            raise NamedWronglyError(f"{out} exists, and results are never overwritten; name another file")
        with files_of(out.parent):
            count = _export(history, out)
    terminal.say(f"{count} operations: {out}")
    return EXIT_HELD


def _export(history: Path, out: Path) -> int:
    """A history that cannot be read to its end leaves no file that looks whole."""
    try:
        with out.open("xb") as sink:
            return _write(history, sink)
    except (HistoryError, OSError):
        out.unlink(missing_ok=True)
        raise


def _write(history: Path, sink: IO[bytes]) -> int:
    return export_jsonl(history, sink, _facts(history), replica_lines(history))


def _facts(history: Path) -> dict[str, Any]:
    """The option that says which run the history is of; none for an imported history, whose own options say it."""
    run_dir = history.parent if history.name == HISTORY else history
    if not (run_dir / RUN_FILE).is_file():
        return {}
    record = read_record(run_dir)
    return {RUN: msgspec.to_builtins(facts_of(record))}
