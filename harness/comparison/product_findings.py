"""The project's own accounts of defects (docs/findings), by number: what a history shows of each, and where they fit.

That one fits says that a finding may be this defect, and not that it is: the account says how to tell.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from checkers import Cell
from harness.machine.this_call import command
from harness.records.campaign_record import CampaignRecord
from workloads import SettingValue, spelled


class ProductFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One account: its number, its page in docs/findings and title; what a cell shows that may be of it.

    Without ``worlds`` or ``clients`` any fits.
    """

    number: str
    page: str
    title: str
    anomalies: frozenset[str]
    worlds: frozenset[str] = frozenset()
    clients: frozenset[str] = frozenset()
    settings: dict[str, SettingValue] = {}

    def fits(self, cell: Cell, anomaly: str, client: str) -> bool:
        """True if the anomaly that nothing permits in this cell, with this client library, may be of it."""
        return (
            anomaly in self.anomalies
            and (not self.worlds or cell.world in self.worlds)
            and (not self.clients or client in self.clients)
            and all(spelled(cell.settings.get(name)) == spelled(value) for name, value in self.settings.items())
        )


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    finding: list[ProductFinding]


@cache
def product_findings() -> Mapping[str, ProductFinding]:
    """All of them by number."""
    text = (resources.files("harness.comparison") / "product_findings.toml").read_text(encoding="utf-8")
    return {finding.number: finding for finding in msgspec.convert(tomllib.loads(text), _Data).finding}


def client_of(record: CampaignRecord | None, cell: Cell) -> str:
    """The client library of the cell's world; "" where none is noted."""
    world = record.worlds.get(cell.world) if record else None
    return world.client if world is not None and isinstance(world.client, str) else ""


def offered_sentences(directory: Path, cells: Iterable[Cell], record: CampaignRecord | None) -> Iterator[str]:
    """A line for each account that fits a finding that nothing permits and that is not accepted."""
    fitting: dict[str, list[str]] = {}
    for cell in cells:
        accepted = {entry.anomaly for entry in cell.accepted}
        for finding in product_findings().values():
            if any(finding.fits(cell, name, client_of(record, cell)) for name in cell.broken.keys() - accepted):
                fitting.setdefault(finding.number, []).append(cell.key)
    for number, keys in fitting.items():
        finding = product_findings()[number]
        words = command("accept", str(directory), number)
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{keys[0]}{more}: maybe finding {number}, {finding.title} (docs/findings/{finding.page})."
        yield f"  if it is, and shall redden nothing for a time: {words} --reason WHY --until DAY"
