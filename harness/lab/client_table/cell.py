"""A cell of the table: one small situation, what must hold in it, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.lab.client_table.breach import Breach
from harness.lab.client_table.stage import CellStage
from workloads import ClientCapability


class CellSeen(NamedTuple):
    """The end of a play: breaches with a sentence each, facts, and why the situation did not occur; "" where it did."""

    breaches: Sequence[tuple[Breach, str]] = ()
    facts: Sequence[str] = ()
    unmet: str = ""


class ClientCell(NamedTuple):
    """A situation of clients, and what must hold in it.

    Attributes:
        name: as on the command line.
        happens: what happens, in a sentence.
        expects: what must hold, and by whose word.
        play: brings the situation about, with the clients under test.
        about: the breach that the cell is for. A client with that fault is its control.
        permits: breaches that the settings of the cell permit, with the reason.
        needs: capabilities without which a client is left out.
        finding: the number of the project's finding that it is, or "".
    """

    name: str
    happens: str
    expects: str
    play: Callable[[CellStage], CellSeen]
    about: Breach
    permits: Mapping[Breach, str] = {}
    needs: Sequence[ClientCapability] = ()
    finding: str = ""
