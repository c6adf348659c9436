"""The cells of the table, most telling first. A new one is an entry of a module here."""

from typing import Final

from harness.lab.client_table.cell import ClientCell
from harness.lab.client_table.cells import batches, groups, reading, transactions

CELLS: Final[dict[str, ClientCell]] = {
    cell.name: cell for module in (batches, groups, reading, transactions) for cell in module.CELLS
}
