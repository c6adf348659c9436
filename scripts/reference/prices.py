"""The prices of changes of settings, in figures: each is made of the verdicts that are kept in ``results/reference``.

Two choices of one campaign are compared that differ in the change only, and whose runs took turns. A figure is said
where each run with the change is slower than each run without it: all else is what runs of one choice differ by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

import harness.assess
from checkers import Latency, VerdictLine, quantile_us
from harness.assess.prices import PRICES_FILE
from harness.records.assessment_file import Figures, MeasuredPrice
from harness.records.campaign_record import read_campaign_record
from harness.records.verdict_lines import read_lines
from scripts.reference.losses import KEPT
from workloads import NEVER, SettingValue, spelled

FILE: Final = Path(harness.assess.__file__).with_name(PRICES_FILE)
WORLD: Final = "kafka"
#: The words for a client, with the release that the record has.
_CLIENTS: Final = {"java": "Java {version}", "confluent-kafka": "librdkafka (confluent-kafka {version})"}
#: The shares of writes whose latencies are compared.
_SHARES: Final = {"p50_us": 0.5, "p99_us": 0.99}


class ComparedChoices(NamedTuple):
    """Two choices of a campaign: the settings of each that differ, and what both have."""

    change: str
    before: Mapping[str, SettingValue]
    after: Mapping[str, SettingValue]
    campaign: str
    both: Mapping[str, SettingValue] = {}


_IDEMPOTENCE, _IN_FLIGHT, _FLUSH = "enable.idempotence", "max.in.flight.requests.per.connection", "flush.messages"
_JAVA, _LIBRDKAFKA = "kafka-prices-java", "kafka-prices-librdkafka"
_USUAL: Final[Mapping[str, SettingValue]] = {_IN_FLIGHT: 5, _FLUSH: NEVER}
#: By changes (harness/assess/changes.py, harness/ground/known_defects.toml). Of others nothing was measured.
COMPARED: Final = (
    ComparedChoices("acks", {"acks": 1}, {"acks": "all"}, _JAVA, {**_USUAL, _IDEMPOTENCE: False}),
    ComparedChoices("idempotence", {_IDEMPOTENCE: False}, {_IDEMPOTENCE: True}, _JAVA, {**_USUAL, "acks": "all"}),
    ComparedChoices("one-in-flight", {_IN_FLIGHT: 5}, {_IN_FLIGHT: 1}, _JAVA, {_FLUSH: NEVER, _IDEMPOTENCE: True}),
    ComparedChoices("one-in-flight", {_IN_FLIGHT: 5}, {_IN_FLIGHT: 1}, _LIBRDKAFKA),
    ComparedChoices("flush", {_FLUSH: NEVER}, {_FLUSH: 1}, _JAVA, {_IN_FLIGHT: 5, _IDEMPOTENCE: True}),
)


def prices() -> bytes:
    """The data as it is written: by change, the comparisons in which a price was seen."""
    by_change: dict[str, list[MeasuredPrice]] = {}
    for compared in COMPARED:
        lines = list(read_lines(KEPT / compared.campaign).lines.values())
        by_change.setdefault(compared.change, []).extend(seen_price(compared, lines))
    return msgspec.json.format(msgspec.json.encode(by_change), indent=1) + b"\n"


def seen_price(compared: ComparedChoices, lines: Sequence[VerdictLine]) -> Iterator[MeasuredPrice]:
    """The figures of two choices; none if neither latency sets each run of the one apart from each of the other."""
    before = _latencies(lines, {**compared.both, **compared.before})
    after = _latencies(lines, {**compared.both, **compared.after})
    apart = {
        name: (_of_all(before, share), _of_all(after, share))
        for name, share in _SHARES.items()
        if before and after and max(_of_each(before, share)) < min(_of_each(after, share))
    }
    if not apart:
        return
    record = read_campaign_record(KEPT / compared.campaign)
    if record is None:
        raise FileNotFoundError(KEPT / compared.campaign)
    world = record.worlds[WORLD]
    version = world.client_version or record.versions[str(world.client)]

    def figures(settings: Mapping[str, SettingValue], number: int) -> Figures:
        told = {name: apart[name][number] if name in apart else None for name in _SHARES}
        spelled_out = {name: _spelled(value) for name, value in settings.items()}
        return Figures(release=str(world.version), settings=spelled_out, **told)

    yield MeasuredPrice(
        source=(compared.campaign,),
        client=_CLIENTS.get(str(world.client), "{client} {version}").format(client=world.client, version=version),
        day=record.began.partition("T")[0],
        cores=record.machine.cores,
        runs=min(len(before), len(after)),
        before=figures(compared.before, 0),
        after=figures(compared.after, 1),
    )


def _latencies(lines: Sequence[VerdictLine], settings: Mapping[str, SettingValue]) -> list[Latency]:
    """The latencies of each run with these settings."""
    return [
        line.latency
        for line in lines
        if line.run is not None and all(line.run.settings[name] == value for name, value in settings.items())
    ]


def _of_each(runs: Sequence[Latency], share: float) -> list[int]:
    return [quantile_us(run.calm, share) or 0 for run in runs]


def _of_all(runs: Sequence[Latency], share: float) -> int | None:
    every = Latency()
    for run in runs:
        every.add(run)
    return quantile_us(every.calm, share)


def _spelled(value: SettingValue) -> str:
    return "never" if value == NEVER else spelled(value)
