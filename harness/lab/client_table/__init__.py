"""Situations in which client libraries keep their word or not: cells, played on the reference broker behind a relay."""

from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import CellSeen, ClientCell
from harness.lab.client_table.cells import CELLS
from harness.lab.client_table.pages import as_markdown, as_page, headline
from harness.lab.client_table.playing import client_table, play, table_cluster

__all__ = [
    "CELLS",
    "Breach",
    "CellSeen",
    "ClientCell",
    "as_markdown",
    "as_page",
    "client_table",
    "headline",
    "play",
    "table_cluster",
]
