"""From cells and stories to one HTML page: templates, number formats, and the size that the page must not exceed."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from checkers import SITUATIONS, Cell, Summary, compare, setting_value, settings_words
from harness.machine import user_cache
from harness.plan import Kafka
from harness.report.charts import Chart, chart_templates
from harness.report.grid import columns_of, exercised_faults, grid_of, percent
from harness.report.outcomes import LEGEND, LOOKS, look_of
from harness.report.setups import left_to_clients
from harness.report.stories import Story
from workloads import Settings

#: Eligible leader replicas are a rule of Kafka too (KIP-966).
_REFERENCE_ONLY: Final = tuple(name for name in Settings.scoped("reference") if name != "eligible.leader.replicas")


def render(**content: Any) -> str:
    """The page. ``content`` are the names that templates/report.html.j2 uses; everything in them is escaped."""
    return _environment().get_template("report.html.j2").render(bundle=chart_library(), **content)


@cache
def chart_library() -> Markup:
    """Vega, Vega-Lite and vega-embed as one script: nothing is loaded from anywhere when the page is opened.

    Making it takes a second and a half, so it is kept in the user's cache, a file for each version of its maker.
    """
    kept = user_cache() / "charts" / f"{metadata.version('vl-convert-python')}.js"
    try:
        script = kept.read_text(encoding="utf-8")
    except OSError:
        import vl_convert  # noqa: PLC0415 - only where it is not kept

        script = vl_convert.javascript_bundle()
        with contextlib.suppress(OSError):  # a place that cannot be written costs time, and nothing else
            _keep(kept, script)
    return Markup(script.replace("</script", "<\\/script"))  # noqa: S704 - a pinned library's own text


def _keep(file: Path, text: str) -> None:
    """Write ``file`` so that whoever reads it meanwhile finds all of it, or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as beside:
        beside.write(text)
    Path(beside.name).replace(file)


def content_of(summary: Summary, cells: Sequence[Cell], stories: Sequence[Story]) -> dict[str, Any]:
    """What templates need of the cells and stories, by the names that they use."""
    columns = columns_of(cells)
    return {
        "summary": summary,
        "cells": cells,
        "columns": columns,
        "grid": grid_of(cells, columns),
        "stories": stories,
        "stories_title": "How writes were lost"
        if all(one.is_loss for one in stories)
        else "What was found, one by one",
        "comparison": compare(cells),
        "promises": _promises(cells),
        "client_defaults": left_to_clients(cells),
        **_same_everywhere(cells),
        "linked": {cell_id(story.cell) for story in stories},
        "templates": chart_templates(cells),
    }


def _promises(cells: Sequence[Cell]) -> list[tuple[str, str, str]]:
    """Settings, the faults under which they promise the same, and the promise."""
    families: dict[tuple[str, str], dict[str, None]] = {}
    for cell in cells:
        families.setdefault((settings_words(cell.label), cell.promise), {})[cell.family] = None
    return [(words, ", ".join(under), promise) for (words, promise), under in families.items()]


def _same_everywhere(cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """The settings that have one value in all cells, and apart from them those that only the reference broker has.

    Of the latter none where all cells are of Apache Kafka: they say nothing of it.
    """
    first = cells[0].settings if cells else {}
    shared = {name: value for name, value in first.items() if all(cell.settings[name] == value for cell in cells)}
    rules = {name: shared.pop(name) for name in _REFERENCE_ONLY if name in shared}
    referred = any(cell.world != Kafka.name for cell in cells)
    return {"same_everywhere": shared, "reference_rules": rules if referred else {}}


def cell_id(cell: Cell) -> str:
    """An anchor: letters, digits and dashes only, because names come from files."""
    name = f"{cell.world}-{cell.cell}"
    return "story-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def as_script(content: Chart | dict[str, Any] | str) -> Markup:
    """JSON that may stand inside a script element: no tag can begin in it."""
    text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
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
        exercised_faults=exercised_faults,
        percent=percent,
        seconds=lambda time_us: "never" if time_us is None else f"{time_us / 1e6:.2f} s",
        setting=setting_value,
        words=settings_words,
        cell_id=cell_id,
        look=look_of,
        script=as_script,
    )
    environment.globals.update(looks=LOOKS, legend=LEGEND, situations=SITUATIONS)
    return environment
