"""The command `ackproof schema`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.terminal import Terminal, WordType, path_type
from harness.ground.errors import EXIT_HELD
from harness.records.files import files_of, write_file
from harness.records.schemas import SCHEMAS, schema_text


@click.command()
@click.argument("name", type=WordType("schema", [name.partition(".")[0] for name in SCHEMAS]), required=False)
@click.option("--out", type=path_type, help="Write all of them into this directory instead.")
@click.pass_obj
def schema(terminal: Terminal, name: str | None, out: Path | None) -> int:
    """Print the JSON Schema of a file of results.

    `matrix` is that of matrix.json, `verdicts` that of a line of verdicts.jsonl, `release` that of release.json,
    `clients` that of clients.json, `assessment` that of what `assess --json` prints, as this version writes them.
    """
    if out is None and name is None:
        raise click.UsageError(
            f"name one of {', '.join(name.partition('.')[0] for name in SCHEMAS)}, or --out DIRECTORY"
        )
    if out is None:
        for file in SCHEMAS:
            if file.partition(".")[0] == name:
                sys.stdout.write(schema_text(file).decode())
        return EXIT_HELD
    with files_of(out):
        out.mkdir(parents=True, exist_ok=True)
    for file in SCHEMAS:
        write_file(out / file, schema_text(file))
    terminal.say(str(out))
    return EXIT_HELD
