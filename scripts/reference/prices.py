"""The prices of changes of settings, in figures: each is made of the verdicts that are kept in ``results/reference``.

Two cells are compared that differ in the change only, and whose runs took turns in one campaign, or in two that ran one
right after the other on an equally busy machine: it was never idle, so figures of other hours are no price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import Final, NamedTuple

import msgspec

import harness.assess
from checkers import Cell, Latency, quantile_us
from harness.assess.prices import PRICES_FILE
from harness.records.assessment_file import Figures, MeasuredPrice
from harness.records.campaign_record import read_campaign_record
from scripts.reference.losses import KEPT, kept_matrix
from workloads import NEVER, SettingValue, spelled

FILE: Final = Path(harness.assess.__file__).with_name(PRICES_FILE)
WORLD: Final = "kafka"
#: The words for a client, with the release that the record has.
_CLIENTS: Final = {"java": "Java {version}", "confluent-kafka": "librdkafka (confluent-kafka {version})"}


class ComparedChoices(NamedTuple):
    """Two choices of a campaign: the settings of each that differ, and what both have. ``older`` has the first one."""

    change: str
    before: Mapping[str, SettingValue]
    after: Mapping[str, SettingValue]
    campaign: str
    both: Mapping[str, SettingValue] = {}
    older: str = ""

    @property
    def campaigns(self) -> tuple[str, ...]:
        """The campaigns of the first choice, and of the second."""
        return (self.older or self.campaign, self.campaign)


_ALL: Final[Mapping[str, SettingValue]] = {"acks": "all"}
_IDEMPOTENCE, _IN_FLIGHT = "enable.idempotence", "max.in.flight.requests.per.connection"
_FLUSH: Final = "flush.messages"
#: Runs without a fault, in which the settings took turns: for changes that have no figures of other runs.
_PRICES, _PRICES_LIBRDKAFKA = "kafka-prices-java", "kafka-prices-librdkafka"
#: The load of the machine meanwhile, as it was seen; others are of the day named in results/reference/README.md.
_LOADS: Final = {_PRICES: "20 to 40", _PRICES_LIBRDKAFKA: "20 to 40"}
_LOAD: Final = "5 to 57"
#: By changes (harness/assess/changes.py, harness/ground/known_defects.toml). Of the others no two such cells are kept.
COMPARED: Final = (
    ComparedChoices("acks", {"acks": 1}, _ALL, "upgrade-4.3.1"),
    ComparedChoices("acks", {"acks": 1}, _ALL, "kafka-default", {"enable.idempotence": False}),
    ComparedChoices(
        "unclean-election",
        {"unclean.leader.election.enable": True},
        {"unclean.leader.election.enable": False},
        "kafka-default",
        _ALL,
    ),
    ComparedChoices("too-few-in-sync", {"min.insync.replicas": 1}, {"min.insync.replicas": 2}, "kafka-default", _ALL),
    ComparedChoices("idempotence", {_IDEMPOTENCE: False}, {_IDEMPOTENCE: True}, "kafka-default", _ALL),
    ComparedChoices("one-in-flight", {_IN_FLIGHT: 5}, {_IN_FLIGHT: 1}, _PRICES, {_FLUSH: NEVER, _IDEMPOTENCE: True}),
    ComparedChoices("one-in-flight", {_IN_FLIGHT: 5}, {_IN_FLIGHT: 1}, _PRICES_LIBRDKAFKA),
    ComparedChoices("flush", {_FLUSH: NEVER}, {_FLUSH: 1}, _PRICES, {_IN_FLIGHT: 5, _IDEMPOTENCE: True}),
    ComparedChoices("newer-release", {}, {}, "upgrade-4.3.1", _ALL, "upgrade-3.9.2"),
)


def prices() -> bytes:
    """The data as it is written."""
    by_change: dict[str, list[MeasuredPrice]] = {}
    for compared in COMPARED:
        by_change.setdefault(compared.change, []).append(_price(compared))
    return msgspec.json.format(msgspec.json.encode(by_change), indent=1) + b"\n"


def _price(compared: ComparedChoices) -> MeasuredPrice:
    pairs = list(_pairs(compared))
    befores, afters = zip(*pairs, strict=True)
    record = read_campaign_record(KEPT / compared.campaign)
    if record is None:
        raise FileNotFoundError(KEPT / compared.campaign)
    world = record.worlds[WORLD]
    version = world.client_version or record.versions[str(world.client)]
    differing = _differing(*pairs[0])
    return MeasuredPrice(
        source=tuple(dict.fromkeys(compared.campaigns)),
        client=_CLIENTS.get(str(world.client), "{client} {version}").format(client=world.client, version=version),
        day=record.began.partition("T")[0],
        cores=record.machine.cores,
        load=_LOADS.get(compared.campaign, _LOAD),
        families=tuple(dict.fromkeys(cell.family for cell in afters if cell.faults)),
        runs=sum(cell.runs for cell in afters),
        pairs=len(pairs),
        longer=sum(after.longest_gap_us > before.longest_gap_us for before, after in pairs),
        before=_figures(befores, compared.campaigns[0], differing),
        after=_figures(afters, compared.campaigns[1], differing),
    )


def _pairs(compared: ComparedChoices) -> Iterator[tuple[Cell, Cell]]:
    """The cells before and after, that are equal in all else."""
    before, after = (
        {_key(cell, compared): cell for cell in kept_matrix(campaign).cells if _has(cell, {**compared.both, **choice})}
        for campaign, choice in zip(compared.campaigns, (compared.before, compared.after), strict=True)
    )
    yield from ((before[key], after[key]) for key in before if key in after)


def _has(cell: Cell, settings: Mapping[str, SettingValue]) -> bool:
    return cell.world == WORLD and all(cell.settings[name] == value for name, value in settings.items())


def _key(cell: Cell, compared: ComparedChoices) -> tuple[object, ...]:
    kept = {name: value for name, value in cell.label.items() if name not in compared.after}
    return (cell.family, *kept.items())


def _differing(before: Cell, after: Cell) -> list[str]:
    """The settings that the change changes, with those that follow from it."""
    return [name for name in after.settings if before.settings.get(name) != after.settings[name]]


def _figures(cells: Sequence[Cell], campaign: str, differing: Sequence[str]) -> Figures:
    record = read_campaign_record(KEPT / campaign)
    calm = Latency()
    for cell in cells:
        calm.add(cell.latency)
    return Figures(
        release=str(record.worlds[WORLD].version) if record else "",
        settings={name: _spelled(cells[0].settings[name]) for name in differing},
        p50_us=quantile_us(calm.calm, 0.5),
        p99_us=quantile_us(calm.calm, 0.99),
        longest_gap_us=median_low(cell.longest_gap_us for cell in cells),
    )


def _spelled(value: SettingValue) -> str:
    return "never" if value == NEVER else spelled(value)
