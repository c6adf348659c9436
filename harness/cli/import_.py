"""`ackproof import`: a history in JSON lines, of other tools too, stored to be judged (docs/history-format.md)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import click

from harness.campaign import translated_errors
from harness.cli.terminal import State, as_json, directory_argument
from harness.errors import EXIT_HELD, NamedWronglyError, ResultsError
from harness.records.files import HISTORY, exact_campaign, files_of, new_campaign
from workloads.history import import_jsonl

IMPORTED: Final = Path("results")


@click.command("import")
@click.argument("file", type=directory_argument)
@click.option("--out", type=directory_argument, help="The directory to make, instead of results/NAME-OF-FILE.")
@as_json
@click.pass_obj
def import_(state: State, file: Path, out: Path | None, *, json_: bool) -> int:
    """Store the history in FILE (JSON lines, also from other tools) so that `ackproof check` can judge it."""
    if not file.is_file():
        raise NamedWronglyError(f"{file} is no file; name a history in JSON lines")
    directory = new_campaign(IMPORTED, file.stem) if out is None else exact_campaign(out)
    try:
        with translated_errors(), files_of(directory):
            import_jsonl(file, directory / HISTORY)
    except ResultsError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    if json_:
        state.json({"directory": str(directory)})
    else:
        state.say(f"stored, to be judged with: ackproof check {directory}")
    return EXIT_HELD
