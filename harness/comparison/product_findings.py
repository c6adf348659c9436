"""Offers the project's own findings (docs/findings) by number where a cell shows what may be of one.

That one fits says that a finding may be this defect, and not that it is: its page says how to tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from checkers import Cell
from harness.known_defects import Defect, Library, Need, ProductFinding, product_findings
from harness.machine.this_call import command
from harness.records.campaign_record import CampaignRecord
from workloads import SettingValue, spelled

#: A client of a plan, by its library.
_CLIENTS: Final[Mapping[Library, str]] = {
    "java": "java",
    "librdkafka": "confluent-kafka",
    "kafka-python": "kafka-python",
}
#: The setting by which a cell says that what a defect needs is in use; of the rest it says nothing.
_SETTINGS: Final[Mapping[Need, tuple[str, SettingValue]]] = {
    "acks-all": ("acks", "all"),
    "compaction": ("cleanup.policy", "compact"),
    "idempotence": ("enable.idempotence", True),
}


def fits(finding: ProductFinding, cell: Cell, anomaly: str, clients: Collection[str]) -> bool:
    """True if the anomaly that nothing permits in this cell, with these client libraries, may be of the finding."""
    return any(_fits(defect, cell, anomaly, clients) for defect in finding.defect)


def _fits(defect: Defect, cell: Cell, anomaly: str, clients: Collection[str]) -> bool:
    here = cell.world == "kafka" if defect.of == "kafka" else _CLIENTS[defect.of] in clients
    asked = [_SETTINGS[need] for need in defect.needs if need in _SETTINGS]
    return (
        here
        and anomaly in defect.anomalies
        and all(spelled(cell.settings.get(name)) == spelled(value) for name, value in asked)
    )


def clients_of(record: CampaignRecord | None, cell: Cell) -> list[str]:
    """The client libraries of the cell's world; none where none is noted."""
    world = record.worlds.get(cell.world) if record else None
    if world is None or not isinstance(world.client, str):
        return []
    others = () if isinstance(world.other_clients, msgspec.UnsetType) else world.other_clients
    return [world.client, *(other.partition(":")[0] for other in others)]


def offered_sentences(directory: Path, cells: Iterable[Cell], record: CampaignRecord | None) -> Iterator[str]:
    """A line for each account that fits a finding that nothing permits and that is not accepted."""
    fitting: dict[str, list[str]] = {}
    for cell in cells:
        accepted = {entry.anomaly for entry in cell.accepted}
        for finding in product_findings().values():
            if any(fits(finding, cell, name, clients_of(record, cell)) for name in cell.broken.keys() - accepted):
                fitting.setdefault(finding.number, []).append(cell.key)
    for number, keys in fitting.items():
        finding = product_findings()[number]
        words = command("accept", str(directory), number)
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{keys[0]}{more}: maybe finding {number}, {finding.title} (docs/findings/{finding.page})."
        yield f"  if it is, and shall redden nothing for a time: {words} --reason WHY --until DAY"
