"""Exhaustive searches beside the cells of a campaign: held in its runs, and in all states of a scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from checkers import Cell, Outcome, counted
from harness.plan import Processes, Simulated
from harness.records.searched_scopes import SearchedScope
from workloads import IDEMPOTENCE, Settings, SettingValue

#: Worlds whose brokers are the searched core.
_WORLDS: Final = (Simulated.name, Processes.name)
#: Settings that decide in a scope. Times do not: nothing happens there because of a duration; nor do retries: no client
#: makes any. An era is a name for some of the others.
_DECIDING: Final = tuple(
    name
    for name in ("acks", IDEMPOTENCE, *Settings.scoped("topic"), *Settings.scoped("reference"))
    if not name.endswith(".ms") and name != "era"
)


def seen_in_every_state(cell: Cell, searches: Iterable[SearchedScope]) -> list[SearchedScope]:
    """The searches that held in every state of a scope with a held cell's settings, family of faults, and broker."""
    if cell.outcome != Outcome.HELD or cell.world not in _WORLDS:
        return []
    return [
        search
        for search in searches
        if search.holds and cell.family in search.scope.families and _alike(cell.settings, search)
    ]


def _alike(settings: Mapping[str, SettingValue], search: SearchedScope) -> bool:
    return all(name in settings and settings[name] == search.settings.get(name) for name in _DECIDING)


def sentences(searches: Sequence[SearchedScope]) -> list[str]:
    """Say what each search adds to a cell that held in its runs."""
    return [
        f"in all {search.states:,} states of scope {search.scope.name}: {search.scope.title}; "
        f"{counted(search.scope.constants.records, 'record')}, searched with ackproof {search.version}"
        for search in searches
    ]
