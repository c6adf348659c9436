"""What commands share: two consoles, tables, JSON for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from harness.progress import Progress, progress_for

#: Columns of output that goes to a file: there, a folded table would be unreadable.
FILE_WIDTH: Final = 200

as_json = click.option("--json", "json_", is_flag=True, help="Print JSON for machines instead of text.")
directory_argument = click.Path(path_type=Path)


@dataclass
class State:
    """One call of the program: colour only where there is a terminal; results on standard output, the rest on error."""

    debug: bool = False
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))

    def progress(self) -> Progress:
        """Whom long work tells how far it is."""
        return progress_for(self.err)

    def say(self, text: str) -> None:
        """One line of result."""
        self.out.print(text, markup=False)

    def complain(self, text: str) -> None:
        """What went wrong."""
        self.err.print(f"ackproof: {text}", markup=False)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table; cells may carry rich's markup."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, header in enumerate(headers):
            table.add_column(header, overflow="fold", no_wrap=number == 0)
        for row in rows:
            table.add_row(*row)
        self.out.print(table)

    def json(self, value: Any) -> None:
        """One JSON document on one line."""
        sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else FILE_WIDTH
    return Console(stderr=stderr, highlight=False, soft_wrap=True, width=width)
