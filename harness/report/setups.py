"""With what the runs were made: client and broker with their versions, and the configuration that was in force.

What a plan asks for and what a client library does are two things, so the report shows the second, and says where it is
not the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from harness.observations import JVM_PAUSE_MIN_MS, JvmPaused
from harness.plan import Kafka, RealTime
from harness.records.cluster_file import read_observations
from harness.records.run_record import RunRecord, read_record

Configuration = Mapping[str, Mapping[str, Any]]

#: Names of librdkafka that differ from Kafka's.
_ALSO: Final = {"message.timeout.ms": "delivery.timeout.ms"}
#: Other ones in every run, and of no interest.
_ADDRESSES: Final = frozenset({"listeners", "advertised.listeners", "controller.quorum.voters"})
#: Of kafka-python 3 (KIP-679): it is why every run sets idempotence itself.
IDEMPOTENCE: Final = (
    "enable.idempotence is set in every run and never left to kafka-python, which by itself would turn it on with "
    "acks=all and drop it, with no more than a warning in its log, with acks=0 and acks=1."
)


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
    chosen: dict[Path, RunRecord] = {}
    every = list(runs)
    for run in every:
        cell = run.parent
        if cell not in chosen and (record := read_record(run)).ended.configuration:
            chosen[cell] = record
    worlds: dict[str, list[RunRecord]] = {}
    for record in chosen.values():
        worlds.setdefault(record.world.name, []).append(record)
    setups = [_setup(records, versions) for records in worlds.values()]
    kafka = [run for run in every if run.parent in chosen and chosen[run.parent].world.name == "kafka"]
    noted = pauses_note(kafka)
    return [
        msgspec.structs.replace(setup, notes=[*setup.notes, noted]) if noted and setup.world == "kafka" else setup
        for setup in setups
    ]


def pauses_note(runs: Iterable[Path]) -> str:
    """How often and how long the Java of nodes stood still in these runs, where it did for long; else nothing."""
    told = [
        (seen.fact.pause_ms, seen.node)
        for run in runs
        for seen in read_observations(run)
        if isinstance(seen.fact, JvmPaused)
    ]
    if not told:
        return ""
    longest_ms, node = max(told)
    often = f"{len(told)} times for {JVM_PAUSE_MIN_MS} ms or longer, once for {longest_ms} ms (node {node})"
    return (
        f"The Java of nodes stood still {often}. Others take that for a fault; each is in its run's cluster.jsonl, "
        "and in the story that it belongs to."
    )


def _setup(records: list[RunRecord], versions: Mapping[str, str]) -> Setup:
    first = records[0]
    told = [record.ended.configuration or {} for record in records]
    notes = list(dict.fromkeys(note for record in records for note in dropped(record)))
    client = _client(first)
    return Setup(
        world=first.world.name,
        client=_named(client, versions) if client else "models in virtual time, after kafka-python",
        broker=_broker(first, told[0], versions),
        nodes=_nodes(first),
        configuration={role: {name: str(value) for name, value in told[0][role].items()} for role in told[0]},
        varied=_varied(told),
        notes=notes + ([IDEMPOTENCE] if client == "kafka-python" else []),
    )


def _client(record: RunRecord) -> str:
    """The client's library; none where clients are models of it."""
    return record.world.client if isinstance(record.world, RealTime) else ""


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


def _varied(told: Iterable[Configuration]) -> dict[str, dict[str, str]]:
    values: dict[str, dict[str, dict[str, None]]] = {}
    for configuration in told:
        for role, options in configuration.items():
            for name, value in options.items():
                if name not in _ADDRESSES:
                    values.setdefault(role, {}).setdefault(name, {})[str(value)] = None
    varied = {
        role: {name: ", ".join(found) for name, found in options.items() if len(found) > 1}
        for role, options in values.items()
    }
    return {role: options for role, options in varied.items() if options}


def dropped(record: RunRecord) -> list[str]:
    """Where the producer worked with another value than the plan asked for, in sentences."""
    effective = {_kafka_name(name): value for name, value in _producer(record).items()}
    client = _client(record) or "the client"
    return [
        f"{name}={_shown(asked)} was asked for, and {client} worked with {_shown(effective[name])}."
        for name, asked in record.settings.items()
        if name in effective and _shown(effective[name]) != _shown(asked)
    ]


def _producer(record: RunRecord) -> Mapping[str, Any]:
    return (record.ended.configuration or {}).get("producer", {})


def _kafka_name(name: str) -> str:
    name = name.replace("_", ".")
    return _ALSO.get(name, name)


def _shown(value: Any) -> str:
    return {"-1": "all"}.get(text := str(value).lower(), text)
