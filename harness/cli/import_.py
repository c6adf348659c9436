"""`ackproof import`: a history in a file, also of another tool, stored (docs/guides/history-format.md)."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from harness.cli.terminal import RESULTS, Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD, NamedWronglyError, ResultsError
from harness.records.files import HISTORY, exact_campaign, files_of, new_campaign
from workloads.history import HistoryError, import_history


@click.command("import")
@click.argument("file", type=path_type)
@click.option("--out", type=path_type, help="The directory to make, instead of results/NAME-OF-FILE.")
@takes_json
def import_(terminal: Terminal, file: Path, out: Path | None) -> int:
    """Store a history that is in a file, also of another tool.

    FILE has JSON lines, Jepsen's EDN, or lines of Kafka's VerifiableProducer and VerifiableConsumer
    (docs/guides/history-format.md). Afterwards `ackproof check` judges the history.
    """
    if not file.is_file():
        raise NamedWronglyError(f"{file} is not a file; name a history")
    directory = new_campaign(RESULTS, file.stem) if out is None else exact_campaign(out)
    try:
        with files_of(directory):
            import_history(file, directory / HISTORY)
    except (ResultsError, HistoryError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise error if isinstance(error, ResultsError) else NamedWronglyError(str(error)) from error
    terminal.answer({"directory": str(directory)}, [f"stored; now judge it: ackproof check {directory}"])
    return EXIT_HELD
