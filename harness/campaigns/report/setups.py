"""The setup of the runs: client and broker with their versions, and the configuration that was in force.

What a plan asks for and what a client library does are two things, so the report shows the second, and says where it is
not the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from checkers import Cell
from harness.ground.errors import ResultsError
from harness.ground.observations import JVM_PAUSE_MIN_MS, JvmPaused, of_kind
from harness.plan import Kafka, RealTime
from harness.records.cluster_file import read_observations
from harness.records.run_record import RunRecord, read_record

Configuration = Mapping[str, Mapping[str, object]]

#: Names of librdkafka that differ from Kafka's.
_ALSO: Final = {"message.timeout.ms": "delivery.timeout.ms"}
#: Other ones in every run, and of no interest.
_ADDRESSES: Final = frozenset({"listeners", "advertised.listeners", "controller.quorum.voters"})


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """One world of a campaign.

    ``configuration`` is what was in force in one run, by role and name; ``varied`` are the names whose value was
    another one in other runs, with all values; ``notes`` are sentences that a reader should not miss.
    """

    world: str
    client: str
    broker: str
    nodes: str
    configuration: dict[str, dict[str, str]]
    varied: dict[str, dict[str, str]]
    notes: list[str]


def setups_of(runs: Iterable[Path], versions: Mapping[str, str]) -> list[Setup]:
    """The setups of a campaign's run directories, one a world; ``versions`` are those of its libraries.

    Looks at one run for each choice of settings and each family: their configuration is the same.
    """
    records: dict[str, list[RunRecord]] = {}
    directories: dict[str, list[Path]] = {}
    for _, cell in groupby(runs, key=lambda run: run.parent):
        of_cell = list(cell)
        record = next(
            (record for record in map(_record, of_cell) if record is not None and record.ended.configuration), None
        )
        if record is not None:
            records.setdefault(record.world.name, []).append(record)
            directories.setdefault(record.world.name, []).extend(of_cell)
    return [
        _setup(of_world, versions, pauses_note(directories[world]) if not of_world[0].world.reference else [])
        for world, of_world in records.items()
    ]


def _record(run: Path) -> RunRecord | None:
    """None of a run whose ``run.json`` is damaged: others of its cell say the same."""
    try:
        return read_record(run)
    except ResultsError:
        return None


def left_to_clients(cells: Iterable[Cell]) -> list[str]:
    """A sentence for each setting that the plan left to the client libraries, with what was in force."""
    values_by_name: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for name in cell.client_defaults:
            where = f"{_shown(cell.settings[name])} with acks={cell.settings['acks']}"
            values_by_name.setdefault(name, {}).setdefault(where, {})[cell.world] = None
    return [
        f"The plan leaves {name} to the client. The client's own default was in force: "
        + ", ".join(f"{value} ({', '.join(worlds)})" for value, worlds in values.items())
        + "."
        for name, values in values_by_name.items()
    ]


def pauses_note(runs: Iterable[Path]) -> list[str]:
    """Say how often and how long the Java of nodes stood still in these runs, where it did for long; else nothing."""
    seen = [(pause.fact.pause_ms, pause.node) for run in runs for pause in of_kind(read_observations(run), JvmPaused)]
    if not seen:
        return []
    longest_ms, node = max(seen)
    often = f"{len(seen)} times for {JVM_PAUSE_MIN_MS} ms or longer, once for {longest_ms} ms (node {node})"
    where = "each is in its run's cluster.jsonl, and in the account that it belongs to"
    return [f"The Java of nodes stood still {often}. Others take that for a fault; {where}."]


def _setup(records: Sequence[RunRecord], versions: Mapping[str, str], pauses: list[str]) -> Setup:
    first = records[0]
    configurations = [record.ended.configuration or {} for record in records]
    client = _client(first)
    notes = dict.fromkeys(note for record in records for note in dropped(record))
    return Setup(
        world=first.world.name,
        client=_client_named(client, configurations[0], versions),
        broker=_broker(first, configurations[0], versions),
        nodes=_nodes(first),
        configuration={
            role: {name: str(value) for name, value in options.items()} for role, options in configurations[0].items()
        },
        varied=_varied(configurations),
        notes=[*notes, *pauses],
    )


def _client(record: RunRecord) -> str:
    """The client's library; none where clients are models of it."""
    return record.world.client_name if isinstance(record.world, RealTime) else ""


def _client_named(client: str, configuration: Configuration, versions: Mapping[str, str]) -> str:
    """The library and its version, or all in turn. "java" in ``versions`` is the machine's Java, not Kafka's client."""
    if several := configuration.get("producer", {}).get("libraries in turn"):
        return f"{several}, in turn by the number of a client's process"
    if client == "java":
        return str(configuration.get("producer", {}).get("library") or "Kafka's Java client (version not recorded)")
    return _named(client, versions) if client else "models in virtual time, after kafka-python"


def _named(library: str, versions: Mapping[str, str]) -> str:
    return f"{library} {versions.get(library, '(version not recorded)')}"


def _broker(record: RunRecord, configuration: Configuration, versions: Mapping[str, str]) -> str:
    if record.world.reference:
        return f"the reference broker of {_named('ackproof', versions)}"
    asked = record.world.version if isinstance(record.world, Kafka) else ""
    version = configuration.get("broker", {}).get("version") or asked or "of unknown version"
    return f"Apache Kafka {version}"


def _nodes(record: RunRecord) -> str:
    world = record.world
    controllers, mode = (world.controllers, world.mode) if isinstance(world, Kafka) else (1, "kraft")
    many = f"{controllers} controllers" if controllers != 1 else "1 controller"
    where = f", host {world.host_name}" if world.host_name else ""
    return f"{record.brokers} brokers, {many}{'' if world.reference else f', {mode}'}{where}"


def _varied(configurations: Iterable[Configuration]) -> dict[str, dict[str, str]]:
    """All values of what is not the same in all configurations, by role and name."""
    values: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for configuration in configurations:
        for role, options in configuration.items():
            for name, value in options.items():
                values[role][name][str(value)] = None
    varied = {
        role: {
            name: ", ".join(values) for name, values in options.items() if len(values) > 1 and name not in _ADDRESSES
        }
        for role, options in values.items()
    }
    return {role: options for role, options in varied.items() if options}


def dropped(record: RunRecord) -> list[str]:
    """Say where the producer worked with another value than the plan asked for, in sentences."""
    producer = (record.ended.configuration or {}).get("producer", {})
    dotted = {name.replace("_", "."): _shown(value) for name, value in producer.items()}
    effective = {_ALSO.get(name, name): value for name, value in dotted.items()}
    client = _client(record) or "the client"
    return [
        f"{name}={_shown(asked)} was asked for, and {client} worked with {effective[name]}."
        for name, asked in record.settings.items()
        if effective.get(name, _shown(asked)) != _shown(asked)
    ]


def _shown(value: object) -> str:
    return {"-1": "all"}.get(text := str(value).lower(), text)
