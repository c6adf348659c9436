"""Markdown of the generated pages, and the documentation that code carries: docstrings of classes and attributes."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

WIDTH = 120
#: Words of Sphinx around a name: ``:class:`nemesis.cluster.Target```.
ROLE = re.compile(r":\w+:`(?:[\w.]*\.)?(\w+)`")
CODE = re.compile(r"``(.+?)``", re.DOTALL)


def page(title: str, source: str, *blocks: str) -> str:
    """A whole page: its title, the code that it is made from, then its blocks."""
    made = f"Generated from {source} by `make reference`; a test compares it with the code."
    return "\n\n".join([f"# {title}", wrapped(made), *blocks]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("| ---", "|---").replace("--- |", "---|") for line in lines)


def bullets(lines: Iterable[str]) -> str:
    """A list of points."""
    return "\n".join(_filled(f"- {line}", subsequent_indent="  ") for line in lines)


def wrapped(text: str) -> str:
    """Paragraphs of at most 120 columns; lists and blocks that are indented keep their lines."""
    kept = ("* ", "- ", "| ", "    ", "```")
    return "\n\n".join(block if block.startswith(kept) else _filled(block) for block in text.split("\n\n"))


def _filled(text: str, subsequent_indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=subsequent_indent
    )


def in_markdown(docstring: str) -> str:
    """A docstring in Markdown: names in single backquotes, without the roles of Sphinx."""
    return CODE.sub(r"`\1`", ROLE.sub(r"`\1`", inspect.cleandoc(docstring)))


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring, on one line and without its full stop."""
    paragraph = " ".join(in_markdown(docstring).partition("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?= |$)", paragraph)[0]


@cache
def attributes(kind: type) -> dict[str, str]:
    """The documentation of the attributes of a class and of its bases, by name: a docstring below, or a line above."""
    documented: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        documented |= _listed(base.__doc__ or "")
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError):
            continue
        documented |= _of_body(tree.body[0].body)  # type: ignore[attr-defined]
    return documented


def without_attributes(docstring: str) -> str:
    """The docstring of a class, in Markdown, without its list of attributes."""
    return in_markdown(docstring).partition("\n\nAttributes:\n")[0]


def _listed(docstring: str) -> dict[str, str]:
    """The attributes of a section "Attributes:"; several names before a colon share its text."""
    text = inspect.cleandoc(docstring).partition("\nAttributes:\n")[2].partition("\n\n")[0]
    entries = re.split(r"\n    (?! )", "\n" + text)
    pairs = [entry.partition(":") for entry in entries if entry.strip()]
    return {
        name.strip(): " ".join(in_markdown(meaning).split()) for names, _, meaning in pairs for name in names.split(",")
    }


def _of_body(body: list[ast.stmt]) -> dict[str, str]:
    documented = {}
    for statement, after in pairwise(body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            documented[statement.target.id] = " ".join(in_markdown(after.value.value).split())
    return documented
