"""Prints for all commands: two consoles, tables, JSON for machines."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from typing_extensions import override

from harness.cli.shown_progress import printable, progress_for
from harness.ground.errors import PlanError
from harness.ground.progress import Progress
from harness.plan import ENDLESS, PlanKey, refuse_endless_numbers
from workloads import unknown_name

#: Columns of output that goes to a file: there, a folded table would be unreadable.
FILE_WIDTH: Final = 200

#: Columns of words that are read, not searched, where they go to a pager or a file.
READ_WIDTH: Final = 80

#: Columns of a verdict, which is read as a sentence wherever it goes.
VERDICT_WIDTH: Final = 100

#: Columns before the lines below the first of a block.
BLOCK_INDENT: Final = 4

#: Between two assignments; another comma is part of a value: cleanup.policy=compact,delete.
_BETWEEN: Final = re.compile(r",(?=[^,]*=)")

_NOT_ASCII: Final = re.compile("[^\x00-\x7f]+")

#: The directory of campaigns whose directory is not named.
RESULTS: Final = Path("results")

path_type = click.Path(path_type=Path)


class WordType(click.Choice[str]):
    """One of some words; a wrong one is answered with the nearest. ``kind`` says what they are words for."""

    def __init__(self, kind: str, words: Iterable[str]) -> None:
        super().__init__([str(word) for word in words])
        self._kind = kind

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (word := str(value)) not in self.choices:
            self.fail(unknown_name(self._kind, word, dict.fromkeys(self.choices)), param, ctx)
        return super().convert(word, param, ctx)


@dataclass
class Terminal:
    """One call of the program: colour only where there is a terminal; results on standard output, the rest on error."""

    debug: bool = False
    as_json: bool = False
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))

    def progress(self) -> Progress:
        """Give long work something to report to."""
        return progress_for(self.err)

    def say(self, text: str) -> None:
        """Print one line of result."""
        self.out.print(printable(text), markup=False, emoji=False)

    def verdict(self, sentence: str) -> None:
        """Print a verdict, broken between words into lines of at most :data:`VERDICT_WIDTH` columns."""
        for line in textwrap.wrap(sentence, VERDICT_WIDTH, break_long_words=False, break_on_hyphens=False):
            self.say(line)

    def note(self, text: str) -> None:
        """Print one line that is no result, on standard error."""
        self.err.print(printable(text), markup=False, emoji=False)

    def complain(self, text: str) -> None:
        """Print what went wrong; where nothing can be printed, the exit code says it alone."""
        with contextlib.suppress(OSError):
            self.note(f"ackproof: {text}")

    def answer(self, value: Any, lines: Iterable[str]) -> None:
        """Print ``value`` as JSON where that is asked for, else the ``lines``."""
        if self.as_json:
            self.json(value)
        else:
            for line in lines:
                self.say(line)

    def fold(self, text: str) -> None:
        """Print one sentence; a terminal shows what does not fit below it, broken between words and indented."""
        head, *rest = textwrap.wrap(printable(text), self.out.width - BLOCK_INDENT) or [""]
        if not (self.out.is_terminal and rest):
            self.say(text)
            return
        self.say(head)
        for line in rest:
            self.say(f"{' ' * BLOCK_INDENT}{line}")

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]], *, file_width: int | None = None) -> None:
        """Print a table; cells may carry rich's markup. What is no terminal may have another ``file_width``."""
        self.out.print(_table(headers, rows), width=None if self.out.is_terminal else file_width)

    def table_or_blocks(self, headers: Sequence[str], rows: Sequence[Sequence[str]], named: int) -> None:
        """Print a table where its width is there, else a block for each row: ``named`` cells, the rest below them."""
        table = _table(headers, rows)
        unbounded = self.out.options.update(max_width=sys.maxsize)
        if self.out.measure(table, options=unbounded).maximum <= self.out.width:
            self.out.print(table)
            return
        for row in rows:
            self.out.print(printable("  ".join(row[:named])))
            rest = "; ".join(f"{name}: {cell}" for name, cell in list(zip(headers, row, strict=True))[named:])
            self.out.print(Padding(printable(rest), (0, 0, 0, BLOCK_INDENT)), soft_wrap=False)

    def json(self, value: Any) -> None:
        """Print one JSON document on one line; what the encoding of standard output lacks, as JSON's own escapes."""
        text = msgspec.json.encode(value).decode()
        if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
            text = _NOT_ASCII.sub(lambda signs: json.dumps(signs.group())[1:-1], text)
        sys.stdout.write(text + "\n")


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, header in enumerate(headers):
        table.add_column(header, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def takes_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command's ``function`` that is given the :class:`Terminal` first, with ``--json`` for its ``as_json``."""

    def remember(context: click.Context, _: click.Parameter, value: Any) -> None:
        context.ensure_object(Terminal).as_json = value

    help_ = "Print JSON for machines instead of text."
    option = click.option("--json", is_flag=True, expose_value=False, callback=remember, help=help_)
    return option(click.pass_obj(function))


def assigned(settings: Sequence[str], option: str = "--settings") -> dict[str, object]:
    """Values from an ``option``: ``NAME=VALUE`` as in a plan; one text may have several, with commas between.

    Raises:
        PlanError: there is no value, or a number has more than 64 bits.
    """
    values: dict[str, object] = {}
    for assignment in (part for text in settings for part in _BETWEEN.split(text)):
        name, separator, value = assignment.partition("=")
        if not separator:
            raise PlanError(f'{option} {assignment}: write NAME=VALUE, for example "acks=1"')
        values[name.strip()] = _value(value.strip(), PlanKey(option) / name.strip())
    return values


def _value(text: str, key: PlanKey) -> object:
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except ValueError as error:  # Python's limit for the digits of an integer
        raise key.wrong(ENDLESS) from error
    refuse_endless_numbers(value, key)
    return value


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else FILE_WIDTH
    return Console(stderr=stderr, highlight=False, soft_wrap=True, width=width)
