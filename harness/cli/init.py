"""The command `ackproof init`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from harness.cli.terminal import READ_WIDTH, Terminal
from harness.ground.errors import EXIT_HELD, NamedWronglyError
from harness.plan import KINDS, LANGUAGES, heading, plans_here, starter
from harness.records.files import files_of, write_file


@click.command(epilog="\b\nKinds:\n" + "\n".join(f"  {kind:<12}{what}" for kind, what in KINDS.items()))
@click.argument("kind", required=False)
@click.option("--list", "listed", is_flag=True, help="List the kinds, and all other plans that KIND can name.")
@click.option(
    "--language", default="", metavar=f"[{'|'.join(LANGUAGES)}]", help="The language of a client program (KIND client)."
)
@click.pass_obj
def init(terminal: Terminal, kind: str | None, *, language: str, listed: bool) -> int:
    """Write a plan, files for CI, or a client program.

    The files go into the current directory; no file is overwritten. The last line is the command to go on with.
    """
    if listed:
        about = {name: heading(path) for name, path in plans_here().items()} | KINDS
        rows = [(name, escape(what)) for name, what in about.items()]
        terminal.table(["kind", "what it is"], rows, file_width=READ_WIDTH)
        return EXIT_HELD
    if kind is None:
        raise click.UsageError(f"name a KIND: {', '.join(KINDS)}; all: ackproof init --list")
    if language and kind != "client":
        raise click.UsageError("--language is for the kind client; leave it out")
    if kind == "client" and not language:
        raise click.UsageError(f"name a language: ackproof init client --language {next(iter(LANGUAGES))}")
    files = {Path(to): source for to, source in starter(kind, language).items()}
    if existing := [to for to in files if to.exists()]:
        raise NamedWronglyError(
            f"{existing[0]} exists, and no file is overwritten; move it away, or use another directory"
        )
    for to, source in files.items():
        with files_of(to.parent):
            to.parent.mkdir(parents=True, exist_ok=True)
            content, mode = source.read_bytes(), source.stat().st_mode
        write_file(to, content)
        if to.suffix == ".sh":
            to.chmod(to.stat().st_mode | (mode & 0o111) | 0o100)
        terminal.note(f"wrote {to}")
    plan = next(to for to in files if to.suffix == ".toml")
    check = LANGUAGES[language].check if language else f"ackproof plan {plan} --explain"
    terminal.say(check)
    return EXIT_HELD
