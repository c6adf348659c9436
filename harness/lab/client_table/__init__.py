"""Which client library keeps its word in which situation: cells, played on the reference broker behind a relay."""

from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import Cell, Seen
from harness.lab.client_table.cells import CELLS
from harness.lab.client_table.pages import as_markdown, as_page, headline
from harness.lab.client_table.playing import client_table, play, table_cluster

__all__ = [
    "CELLS",
    "Breach",
    "Cell",
    "Seen",
    "as_markdown",
    "as_page",
    "client_table",
    "headline",
    "play",
    "table_cluster",
]
