"""Offers the project's own findings (docs/findings) by number where a cell shows what may be of one.

That one fits says that a finding may be this defect, and not that it is: its page says how to tell. Where something in
a run tells, such as a transaction without a marker of its own, a finding without it does not fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from checkers import Cell
from harness.ground.known_defects import Defect, Library, Need, ProductFinding, product_findings
from harness.ground.machine.this_call import command
from harness.records.campaign_record import CampaignRecord
from workloads import SettingValue, spelled

#: Brokers, and a client of a plan by its library, as they are named among what a cell ran.
_NAMES: Final[Mapping[Literal["kafka"] | Library, str]] = {
    "kafka": "kafka",
    "java": "java",
    "librdkafka": "confluent-kafka",
    "kafka-python": "kafka-python",
}
#: The setting by which a cell says that what a defect needs is in use; of the rest it says nothing.
_SETTINGS: Final[Mapping[Need, tuple[str, SettingValue]]] = {
    "acks-all": ("acks", "all"),
    "compaction": ("cleanup.policy", "compact"),
    "idempotence": ("enable.idempotence", True),
    "no-idempotence": ("enable.idempotence", False),
    "one-in-flight": ("max.in.flight.requests.per.connection", 1),
}


class Ran(NamedTuple):
    """Software that a cell ran, and its release: brokers ("kafka"), or a client library of a plan.

    The release is empty where it is not known.
    """

    name: str
    release: str = ""


def fits(finding: ProductFinding, cell: Cell, shown: tuple[str, str], ran: Collection[Ran]) -> bool:
    """True if what this cell, which ``ran`` these, shows and nothing permits may be of the finding.

    ``shown`` is the anomaly with its identity (:meth:`checkers.Cell.shown`).
    """
    return any(_fits(defect, cell, shown, ran) for defect in finding.defect)


def is_marked(defect: Defect, cell: Cell, shown: tuple[str, str]) -> bool:
    """True if what the cell shows bears the mark of the defect, or nothing tells."""
    anomaly, identity = shown
    return anomaly not in defect.marks or cell.marks.get(identity) == defect.marks[anomaly]


def _fits(defect: Defect, cell: Cell, shown: tuple[str, str], ran: Collection[Ran]) -> bool:
    asked = [_SETTINGS[need] for need in defect.needs if need in _SETTINGS]
    return (
        any(each.name == _NAMES[defect.of] and not _is_mended(defect, each.release) for each in ran)
        and shown[0] in defect.anomalies
        and is_marked(defect, cell, shown)
        and all(spelled(cell.settings.get(name)) == spelled(value) for name, value in asked)
    )


def _is_mended(defect: Defect, release: str) -> bool:
    """True if a release is known to be without a defect that earlier ones have.

    A release before all that are known to have it may have it, too: the first is the oldest that was looked at.
    """
    from harness.worlds.kafka.releases import VERSION, numbered  # noqa: PLC0415 - brings client libraries

    if not VERSION.fullmatch(release):
        return False
    version = numbered(release)
    begun = [since for first, since in defect.affected if numbered(first) <= version]
    return bool(begun) and all(since and numbered(since) <= version for since in begun)


def ran_by(record: CampaignRecord | None, cell: Cell) -> list[Ran]:
    """The brokers of the cell's world if they are Kafka's, and its client libraries as far as they are noted.

    That of librdkafka is not: the number of confluent-kafka is another one.
    """
    world = record.worlds.get(cell.world) if record else None
    version = "" if world is None or isinstance(world.version, msgspec.UnsetType) else world.version
    brokers = [Ran("kafka", version)] if cell.world == "kafka" else []
    if record is None or world is None or isinstance(world.client, msgspec.UnsetType):
        return brokers
    own = record.versions.get("kafka-python", "") if world.client == "kafka-python" else ""
    given = own if isinstance(world.client_version, msgspec.UnsetType) else world.client_version
    others = () if isinstance(world.other_clients, msgspec.UnsetType) else world.other_clients
    return [*brokers, Ran(world.client, given), *(Ran(*other.split(":")) for other in others)]


def offered_sentences(directory: Path, cells: Iterable[Cell], record: CampaignRecord | None) -> Iterator[str]:
    """A line for each account that fits a finding that nothing permits and that is not accepted."""
    fitting: dict[str, list[str]] = {}
    for cell in cells:
        ran = ran_by(record, cell)
        accepted = {entry.anomaly for entry in cell.accepted}
        red = [shown for shown in cell.shown() if shown[0] in cell.broken.keys() - accepted]
        for finding in product_findings().values():
            if any(fits(finding, cell, shown, ran) for shown in red):
                fitting.setdefault(finding.number, []).append(cell.key)
    for number, keys in fitting.items():
        finding = product_findings()[number]
        words = command("accept", str(directory), number)
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{keys[0]}{more}: maybe finding {number}, {finding.title} (docs/findings/{finding.page})."
        yield f"  if it is, you can accept it until a day: {words}"
