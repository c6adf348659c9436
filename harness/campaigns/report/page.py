"""From cells and accounts to one HTML page: templates, number formats, and the size that the page must not exceed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from checkers import Cell, Summary, compare, counted, percent, quantile_us, seconds, settings_words
from harness.campaigns.report.accounts import Account
from harness.campaigns.report.cells_charts import availability_chart, latency_chart, loss_rate_chart
from harness.campaigns.report.certificate import loss_words, written_words
from harness.campaigns.report.every_state import seen_in_every_state, sentences
from harness.campaigns.report.grid import (
    bound_of_writes,
    bound_words,
    columns_of,
    exercised_faults,
    exercised_words,
    grid_of,
    minimum_words,
    situations_met,
)
from harness.campaigns.report.outcomes import ALL_STYLES, BOUND_MEANING, STYLES, legend_of, style_of
from harness.campaigns.report.price import prices_of
from harness.campaigns.report.setups import left_to_clients
from harness.campaigns.report.svg import milliseconds
from harness.ground.templates import templates_of
from harness.plan import Kafka
from harness.records.searched_scopes import SearchedScope
from workloads import NEVER, Settings, SettingValue, spelled

#: Cells with a panel of their own, two or three kilobytes each.
PANELS_MAX: Final = 300
#: Cells in a chart over cells.
CELLS_DRAWN_MAX: Final = 1_000
#: Rows of the matrix, and of the tables by settings; matrix.json has all of them.
ROWS_MAX: Final = 300
#: The settings that a reviewer asks for first, where they are the same in every cell.
KEY_SETTINGS: Final = (
    "acks", "enable.idempotence", "replication.factor", "min.insync.replicas", "unclean.leader.election.enable",
    "eligible.leader.replicas", "flush.messages", "replica.lag.time.max.ms",
)  # fmt: skip
#: Choices of Kafka too (KIP-966, KIP-392).
_ALSO_OF_KAFKA: Final = ("eligible.leader.replicas", "follower.fetching")
_REFERENCE_ONLY: Final = tuple(name for name in Settings.scoped("reference") if name not in _ALSO_OF_KAFKA)


class PageScript(NamedTuple):
    """The script of the page, and the hash by which the page's own policy knows it: nothing else on it is executed."""

    text: Markup
    hash: str


def render(**content: object) -> str:
    """The page. ``content`` are the names that templates/report.html.j2 uses; everything in them is escaped."""
    own = (resources.files("harness.campaigns.report") / "templates" / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    script = PageScript(Markup(own), f"sha256-{digest}")  # noqa: S704 - our own text
    return _environment().get_template("report.html.j2").render(script=script, **content)


def page_style() -> Markup:
    """The style of the page, for other pages that shall look like it."""
    return Markup(_environment().get_template("style.css.j2").render())  # noqa: S704 - our own text


def card_table() -> Callable[..., Markup]:
    """The macro of tables that are cards on narrow screens, for other pages that shall have them."""
    module: Any = _environment().get_template("cards.html.j2").module
    macro: Callable[..., Markup] = module.cards
    return macro


def content_of(
    summary: Summary, cells: Sequence[Cell], accounts: Sequence[Account], searches: Sequence[SearchedScope]
) -> dict[str, object]:
    """Give templates what they need of cells, accounts and exhaustive searches, by the names that they use."""
    columns = columns_of(cells)
    grid = grid_of(cells, columns)
    panels = _panels(cells, accounts)
    prices = prices_of(cells)[:ROWS_MAX]
    return {
        "summary": summary,
        "cells": cells,
        "legend": legend_of(cells),
        "minimum": minimum_words(cells),
        "situations": situations_met(cells),
        "columns": columns,
        "grid": grid[:ROWS_MAX],
        "rows_left_out": max(0, len(grid) - ROWS_MAX),
        "panels": panels,
        "panels_left_out": len(cells) - len(panels),
        "every_state": {cell_id(cell): sentences(seen_in_every_state(cell, searches)) for cell, _ in panels},
        "prices": prices,
        "charts": {
            "losses": loss_rate_chart(cells[:CELLS_DRAWN_MAX]),
            "gaps": availability_chart(cells[:CELLS_DRAWN_MAX]),
            "latency": latency_chart(prices),
        }
        if cells
        else {},
        "comparison": compare(cells),
        "promises": _promises(cells)[:ROWS_MAX],
        "client_defaults": left_to_clients(cells),
        **_same_everywhere(cells),
        "linked": {cell_id(cell) for cell, _ in panels},
    }


def _panels(cells: Sequence[Cell], accounts: Sequence[Account]) -> list[tuple[Cell, Account | None]]:
    """The cells that have a panel: those with an account first, in the order of these, then others, up to a limit."""
    shown: dict[str, tuple[Cell, Account | None]] = {
        cell_id(account.cell): (account.cell, account) for account in accounts
    }
    every = shown | {name: (cell, None) for cell in cells if (name := cell_id(cell)) not in shown}
    return list(every.values())[:PANELS_MAX]


def _promises(cells: Sequence[Cell]) -> list[tuple[str, str, str]]:
    """Settings, the faults under which they promise the same, and the promise."""
    families: dict[tuple[str, str], dict[str, None]] = {}
    for cell in cells:
        families.setdefault((settings_words(cell.label), cell.promise), {})[cell.family] = None
    return [(words, ", ".join(under), promise) for (words, promise), under in families.items()]


def _same_everywhere(cells: Sequence[Cell]) -> dict[str, dict[str, SettingValue]]:
    """The settings that have one value in all cells, and apart from them those that only the reference broker has.

    Of the latter none where all cells are of Apache Kafka: they say nothing of it.
    """
    first = cells[0].settings if cells else {}
    shared = {name: value for name, value in first.items() if all(cell.settings[name] == value for cell in cells)}
    rules = {name: shared.pop(name) for name in _REFERENCE_ONLY if name in shared}
    referred = any(cell.world != Kafka.name for cell in cells)
    return {
        "same_everywhere": shared,
        "reference_rules": rules if referred else {},
        "key_settings": {name: shared[name] for name in KEY_SETTINGS if name in shared},
    }


def cell_id(cell: Cell) -> str:
    """An anchor: letters, digits and dashes only, because names come from files."""
    name = f"{cell.world}-{cell.cell}"
    return "cell-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def _of(count: int, total: int) -> str:
    """A count with its share of the total."""
    return f"{count:,} ({percent(count / total)})" if count and total else f"{count:,}"


def _environment() -> Environment:
    environment = templates_of("harness.campaigns.report")
    environment.filters.update(
        bound=bound_words,
        bound_of_writes=bound_of_writes,
        counted=counted,
        count=lambda number: f"{number:,}",
        exercised_faults=exercised_faults,
        exercised_words=exercised_words,
        loss_words=loss_words,
        written_words=written_words,
        percent=percent,
        ground=lambda style: f"light-dark({', '.join(style.background)})",
        known=lambda number: "not known" if number is None else f"{number:,}",
        ms=lambda time_us: "?" if time_us is None else milliseconds(time_us / 1000),
        of=_of,
        quantile=quantile_us,
        text=lambda style: f"light-dark({', '.join(style.ink)})",
        seconds=seconds,
        setting=lambda value: "never" if value == NEVER else spelled(value),
        words=settings_words,
        cell_id=cell_id,
        style=style_of,
    )
    environment.globals.update(styles=STYLES, all_styles=ALL_STYLES, bound_meaning=BOUND_MEANING)
    return environment
