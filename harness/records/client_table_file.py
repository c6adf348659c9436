"""Situations in which client libraries keep their word or not: ``clients.json`` of `ackproof clients`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN

CLIENT_TABLE_VERSION: Final = 1


class CellOutcome(StrEnum):
    """The outcome of a cell."""

    KEPT = "kept"
    PERMITTED = "permitted"
    BROKEN = "broken"
    NOT_SUPPORTED = "not supported"
    NOT_MET = "not met"


class TableCell(msgspec.Struct, frozen=True, kw_only=True):
    """A situation: what happens, what must hold and by whose word, and the finding of the project that it is."""

    name: str
    happens: str
    expects: str
    finding: str = ""


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """A client library in a situation.

    Attributes:
        client: library and version; cell: the name of the situation.
        outcome: kept; permitted: something went wrong that the settings allow. broken: something that nothing allows.
            not supported: the library lacks what the cell needs, by its own word. not met: the situation did not occur.
        why: the reason why it was permitted, not supported or not met; else "".
        breaches: what went wrong, a word and a sentence each; account: facts beside it.
        history: what the relay did and the client answered, in order.
    """

    client: str
    cell: str
    outcome: CellOutcome
    why: str = ""
    breaches: tuple[tuple[str, str], ...] = ()
    account: tuple[str, ...] = ()
    history: tuple[str, ...] = ()


class TableClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client library: its name and version, the name or command that started it, and why it could not be."""

    name: str
    started_by: str
    failed: str = ""


class ClientTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table: results by client and cell. ``by`` is the version of ackproof."""

    version: int = CLIENT_TABLE_VERSION
    by: str
    clients: tuple[TableClient, ...]
    cells: tuple[TableCell, ...]
    results: tuple[CellResult, ...]

    def of(self, client: str, cell: str) -> CellResult | None:
        """The result of a client in a cell, if there is one."""
        return next((each for each in self.results if (each.client, each.cell) == (client, cell)), None)

    @property
    def played(self) -> tuple[str, ...]:
        """The clients that have results."""
        have = {each.client for each in self.results}
        return tuple(each.name for each in self.clients if each.name in have)

    @property
    def exit_code(self) -> int:
        """1 if something is broken; 2 if a situation did not occur or a client could not be started; else 0."""
        outcomes = {each.outcome for each in self.results}
        if CellOutcome.BROKEN in outcomes:
            return EXIT_BROKEN
        return (
            EXIT_UNKNOWN if CellOutcome.NOT_MET in outcomes or any(each.failed for each in self.clients) else EXIT_HELD
        )
