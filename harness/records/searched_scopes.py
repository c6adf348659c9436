"""``scopes.jsonl`` of a campaign: results of exhaustive searches, for its report.

Each line is what ``ackproof explore SCOPE --json`` printed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from harness.records.files import read_file, understanding

SCOPES_FILE: Final = "scopes.jsonl"
_ADVICE: Final = "delete the lines that `ackproof explore SCOPE --json` did not print"


class SearchedConstants(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a scope that are asked about: how many ``records``; scopes of transactions have none."""

    records: int = 0


class NamedScope(msgspec.Struct, frozen=True, kw_only=True):
    """A scope as its search names it: ``families`` of faults that it is about, and ``rules``, none for all of them."""

    name: str
    title: str
    constants: SearchedConstants
    families: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


class SearchedScope(msgspec.Struct, frozen=True, kw_only=True):
    """One search of all states of a scope.

    Attributes:
        settings: all of them, under Kafka's names.
        version: of ackproof, whose core was searched.
        states: distinct ones; ``exhausted``: there are no more.
        acknowledged: the most records that were acknowledged in one of them.
        permitted: records were lost where that is permitted.
        broken: the rule that a state breaks, and a sentence.
    """

    scope: NamedScope
    settings: dict[str, Any]
    version: str
    states: int
    exhausted: bool
    acknowledged: int
    permitted: bool
    broken: tuple[str, str] | None

    @property
    def holds(self) -> bool:
        """Every state was looked at, all rules were put to the test, and nothing was lost in any."""
        tested = self.exhausted and self.acknowledged > 0 and not self.scope.rules
        return tested and self.broken is None and not self.permitted


def read_searched_scopes(directory: Path) -> list[SearchedScope]:
    """Read the searches that belong to the campaign in ``directory``; no file means no searches.

    Raises:
        ResultsError: the file cannot be read; the text says which line is wrong.
    """
    file = directory / SCOPES_FILE
    searches = []
    for number, line in enumerate((read_file(file, _ADVICE) or b"").splitlines(), 1):
        with understanding(f"line {number} of {file}", _ADVICE):
            searches.append(msgspec.json.decode(line, type=SearchedScope))
    return searches
