"""From cells and stories to one HTML page: templates, number formats, and the size that the page must not exceed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from checkers.verdicts.cells import Cell
from checkers.verdicts.comparison import compare
from checkers.verdicts.matrix import Summary, setting_value, settings_words
from harness.report.loss_chart import WITH_OFFSETS, story_templates
from harness.report.stories import Story

#: What each outcome looks like beside its colour, so that no reader depends on colour.
SIGNS: Final = {
    "broken promise": "✖",
    "permitted loss": "▼",
    "unknown": "?",
    "not exercised": "–",
    "held": "✓",
}
Grid = list[tuple[dict[str, Any], list[Cell | None]]]


def render(**content: Any) -> str:
    """The page. ``content`` are the names that templates/report.html.j2 uses; everything in them is escaped."""
    return _environment().get_template("report.html.j2").render(bundle=chart_library(), **content)


@cache
def chart_library() -> Markup:
    """Vega, Vega-Lite and vega-embed as one script: nothing is loaded from anywhere when the page is opened."""
    script = vl_convert.javascript_bundle()
    return Markup(script.replace("</script", "<\\/script"))  # noqa: S704 - a pinned library's own text


def columns_of(cells: Sequence[Cell]) -> list[tuple[str, list[str]]]:
    """Worlds with their families, in the order of the campaign."""
    families: dict[str, list[str]] = {}
    for cell in cells:
        known = families.setdefault(cell.world, [])
        if cell.family not in known:
            known.append(cell.family)
    return list(families.items())


def grid_of(cells: Sequence[Cell], columns: Sequence[tuple[str, Sequence[str]]]) -> Grid:
    """One row for each choice of settings: its label, and its cell for every world and family, None where not run."""
    labels = {settings_words(cell.label): cell.label for cell in cells}
    at = {(settings_words(cell.label), cell.world, cell.family): cell for cell in cells}
    return [
        (label, [at.get((words, world, family)) for world, families in columns for family in families])
        for words, label in labels.items()
    ]


def common_settings(cells: Sequence[Cell]) -> dict[str, Any]:
    """The effective settings that were the same everywhere."""
    if not cells:
        return {}
    return {name: value for name, value in cells[0].settings.items() if name not in cells[0].label}


def promises_of(cells: Sequence[Cell]) -> list[tuple[str, str, str]]:
    """Settings, the faults under which they promise the same, and the promise."""
    families: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        known = families.setdefault((settings_words(cell.label), cell.promise), [])
        if cell.family not in known:
            known.append(cell.family)
    return [(words, ", ".join(known), promise) for (words, promise), known in families.items()]


def cell_id(cell: Cell) -> str:
    """An anchor: letters, digits and dashes only, because names come from files."""
    name = f"{cell.world}-{cell.cell}"
    return "story-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def percent(rate: float) -> str:
    """A rate with two significant digits, three from ten percent on; never rounded down to nothing."""
    if rate in {0.0, 1.0}:
        return f"{rate * 100:.0f} %"
    digits = 2 if rate < 0.1 else 3
    return f"{float(f'{rate * 100:.{digits}g}'):g} %" if rate >= 1e-6 else "< 0.0001 %"


def as_script(specification: dict[str, Any] | str) -> Markup:
    """JSON that may stand inside a script element: no tag can begin in it."""
    text = specification if isinstance(specification, str) else json.dumps(specification, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704 - no character is left that HTML reads


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=lambda number: f"{number:,}",
        percent=percent,
        seconds=lambda time_us: "never" if time_us is None else f"{time_us / 1e6:.2f} s",
        setting=setting_value,
        words=settings_words,
        cell_id=cell_id,
        script=as_script,
    )
    environment.globals.update(signs=SIGNS, with_offsets=WITH_OFFSETS)
    return environment


def content_of(summary: Summary, cells: Sequence[Cell], stories: Sequence[Story]) -> dict[str, Any]:
    """What templates need of the cells."""
    columns = columns_of(cells)
    return {
        "summary": summary,
        "cells": cells,
        "columns": columns,
        "grid": grid_of(cells, columns),
        "label_names": list(cells[0].label) if cells else [],
        "stories": stories,
        "common": common_settings(cells),
        "comparison": compare(cells),
        "promises": promises_of(cells),
        "told": {cell_id(story.cell) for story in stories},
        "templates": story_templates() if stories else {},
    }
