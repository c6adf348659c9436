"""Configurations that are drawn, written in every form that operators have, with what must be read of them.

A value is put where it counts; where something counts less, another value may stand in its way. A draw may spoil a
value as people do: then it must not be understood, and no other value may be taken.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.harness.assess.cluster_files.reading import entry

Values = Mapping[str, str]
BROKERS = (1, 2, 3)
#: The values that are drawn, under the brokers' names; the topic's name and the unit, where topics inherit them.
DRAWN: Mapping[str, tuple[str, ...]] = {
    "min.insync.replicas": ("1", "2", "3"),
    "unclean.leader.election.enable": ("true", "false"),
    "log.flush.interval.messages": ("1", "10000"),
    "log.cleanup.policy": ("delete", "compact", "compact,delete"),
    "log.retention.ms": ("3600000", "-1", "604800000"),
    "log.retention.hours": ("24", "720"),
    "log.cleaner.delete.retention.ms": ("86400000", "1000"),
    "replica.lag.time.max.ms": ("10000", "30000", "60000"),
    "default.replication.factor": ("1", "3"),
    "offsets.topic.replication.factor": ("1", "3"),
    "transaction.state.log.min.isr": ("1", "2"),
    "offsets.retention.minutes": ("60", "10080"),
    "auto.create.topics.enable": ("true", "false"),
}
INHERITED: Mapping[str, tuple[str, int]] = {
    "min.insync.replicas": ("min.insync.replicas", 1),
    "unclean.leader.election.enable": ("unclean.leader.election.enable", 1),
    "log.flush.interval.messages": ("flush.messages", 1),
    "log.cleanup.policy": ("cleanup.policy", 1),
    "log.retention.hours": ("retention.ms", 3_600_000),
    "log.retention.ms": ("retention.ms", 1),
    "log.cleaner.delete.retention.ms": ("delete.retention.ms", 1),
}
#: Settings that Kafka lets operators change while brokers run, by broker or for all.
DYNAMIC = tuple(
    name for name in DRAWN if name in INHERITED and name not in {"log.retention.hours", "log.cleanup.policy"}
)


class Drawn(NamedTuple):
    """A configuration: the values that count, the files, and the names of settings whose values were spoilt."""

    of_brokers: Values
    of_topic: Values
    files: Mapping[str, str]
    spoilt: frozenset[str]


class _Draw:
    """One draw; every choice is made by its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.spoilt: set[str] = set()

    def some(self, names: Mapping[str, object] | tuple[str, ...], share: float) -> list[str]:
        return [name for name in names if self.random.random() < share]

    def value(self, name: str) -> str:
        return self.random.choice(DRAWN[name])

    def other(self, name: str, value: str) -> str:
        return self.random.choice([each for each in DRAWN[name] if each != value] or [value])

    def spoil(self, name: str, value: str) -> str:
        """The value, or a text that is none, as people write it."""
        if self.random.random() >= 0.03:
            return value
        self.spoilt.add(name)
        return self.random.choice([f'"{value}"', f"{value} # said", f"${{env:X_{value}}}", f"'{value}'", f"{value}x"])

    def cased(self, value: str) -> str:
        """The same to Kafka."""
        return self.random.choice([value, value.upper(), value.title()]) if value in {"true", "false"} else value


def drawn(seed: int) -> Drawn:
    """The configuration of a seed."""
    draw = _Draw(seed)
    of_file = {name: draw.value(name) for name in draw.some(DRAWN, 0.5)}
    of_all = {name: draw.value(name) for name in draw.some(DYNAMIC, 0.2)}
    of_each = {name: draw.value(name) for name in draw.some(DYNAMIC, 0.2)}
    own = {name: draw.value(name) for name in draw.some(INHERITED, 0.25) if name != "log.retention.hours"}
    topic = {INHERITED[name][0]: value for name, value in own.items()}
    of_brokers = of_file | of_all | of_each
    files: dict[str, str] = {}
    dynamic = draw.random.choice([_new_configs, _old_configs])(draw, of_all, of_each)
    if dynamic:
        files["configs.txt"] = _with_noise(draw, dynamic)
    files |= draw.random.choice([_properties, _strimzi, _strimzi_json, _compose, _log])(draw, of_file)
    files |= draw.random.choice([_listed, _configured, _by_zookeeper])(draw, topic)
    order = list(files)
    draw.random.shuffle(order)
    # A spoilt value that another one stands before decides nothing.
    hidden = {name for name in draw.spoilt if name in of_all or name in of_each}
    hidden |= {"log.retention.hours"} if "log.retention.ms" in of_brokers else set()
    return Drawn(of_brokers, topic, {name: files[name] for name in order}, frozenset(draw.spoilt - hidden))


# --- topics ----------------------------------------------------------------------------------------------------------


def _listing(draw: _Draw, configs: str) -> str:
    rows = "".join(
        f"\tTopic: orders\tPartition: {number}\tLeader: 1\tReplicas: 1,2,3\tIsr: 3,2,1\n" for number in range(2)
    )
    text = f"Topic: orders\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: {configs}\n{rows}"
    if draw.random.random() < 0.2:
        text = text.replace("\t", "    ")
    return _with_noise(draw, text)


def _listed(draw: _Draw, topic: Values) -> dict[str, str]:
    pairs = [f"{name}={value}" for name, value in topic.items()] + ["segment.bytes=1073741824"]
    draw.random.shuffle(pairs)
    return {"topics.txt": _listing(draw, ",".join(pairs))}


def _configured(draw: _Draw, topic: Values) -> dict[str, str]:
    lines = "".join(entry(name, value, "DYNAMIC_TOPIC") for name, value in topic.items())
    configs = _with_noise(draw, f"Dynamic configs for topic orders are:\n{lines}") if topic else ""
    return {"topics.txt": _listing(draw, "") + configs}


def _by_zookeeper(draw: _Draw, topic: Values) -> dict[str, str]:
    pairs = ",".join(f"{name}={value}" for name, value in topic.items())
    return {"topics.txt": _listing(draw, ""), "by-zookeeper.txt": f"Configs for topic 'orders' are {pairs}\n"}


def _with_noise(draw: _Draw, text: str) -> str:
    noise = [
        "",
        "[2026-11-02 10:11:12,345] WARN [AdminClient] Connection to node -1 could not be established.\n",
        "SLF4J: Class path contains multiple SLF4J bindings.\n$ kafka-configs.sh --describe --all\n",
    ]
    text = draw.random.choice(noise) + text
    return text.replace("\n", "\r\n") if draw.random.random() < 0.2 else text


# --- dynamic values --------------------------------------------------------------------------------------------------


def _new_configs(draw: _Draw, of_all: Values, of_each: Values) -> str:
    each = [
        entry(name, value, "DYNAMIC_BROKER", *([f"DYNAMIC_DEFAULT_BROKER={of_all[name]}"] if name in of_all else []))
        for name, value in of_each.items()
    ]
    parts = [f"Dynamic configs for broker {number} are:\n" + "".join(each) for number in BROKERS if each]
    everywhere = "".join(entry(name, value, "DYNAMIC_DEFAULT_BROKER") for name, value in of_all.items())
    if everywhere:
        parts.append(f"Default configs for brokers in the cluster are:\n{everywhere}")
    draw.random.shuffle(parts)
    return "".join(parts)


def _old_configs(draw: _Draw, of_all: Values, of_each: Values) -> str:
    text = _new_configs(draw, of_all, of_each)
    return text.replace("Dynamic configs for broker", "Configs for broker").replace("Default configs", "Default config")


# --- the brokers' own files ------------------------------------------------------------------------------------------


def _properties(draw: _Draw, of_file: Values) -> dict[str, str]:
    return {f"server-{number}.properties": _server(draw, of_file, number) for number in BROKERS}


def _server(draw: _Draw, of_file: Values, number: int) -> str:
    spaced: list[Callable[[str, str], str]] = [
        lambda name, value: f"{name}={value}",
        lambda name, value: f"  {name} = {value}  ",
        lambda name, value: f"{name}:{value}",
        lambda name, value: f"{name}=\\\n   {value}",
        lambda name, value: f"{name}=0\n{name}={value}",
    ]
    lines = [f"node.id={number}", "# made by hand \\", "", "num.io.threads=8"]
    for name, value in of_file.items():
        lines.append(draw.random.choice(spaced)(name, draw.spoil(name, draw.cased(value))))
    return "\n".join(lines) + "\n"


def _log(draw: _Draw, of_file: Values) -> dict[str, str]:
    def block(number: int) -> str:
        values = of_file | {"node.id": str(number), "broker.rack": "null", "log.cleaner.threads": "1"}
        lines = [
            f"\t{name} = {f'[{value}]'.replace(',', ', ') if name == 'log.cleanup.policy' else value}\n"
            for name, value in sorted(values.items())
        ]
        return f"[2026-11-02] INFO KafkaConfig values: \n{''.join(lines)} (kafka.server.KafkaConfig)\n[2026] INFO x\n"

    _ = draw
    return {f"server-{number}.log": block(number) for number in BROKERS}


def _strimzi(draw: _Draw, of_file: Values) -> dict[str, str]:
    written: list[Callable[[str], str]] = [str, lambda value: f'"{value}"', lambda value: f"'{value}'  # said"]
    head = "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {name: events}\nspec:\n  kafka:\n    config:\n"
    lines = []
    for name, value in of_file.items():
        spoilt = draw.spoil(name, draw.cased(value))
        text = draw.random.choice(written)(value) if spoilt.lower() == value else json.dumps(spoilt)
        lines.append(f"      {name}: {text}\n")
    return {"kafka.yaml": head + "".join(lines) + "      num.io.threads: 8\n"}


def _strimzi_json(draw: _Draw, of_file: Values) -> dict[str, str]:
    def typed(value: str) -> object:
        plain = value in {"true", "false"} or value.lstrip("-").isdigit()
        return json.loads(value) if plain and draw.random.random() < 0.5 else value

    config = {name: typed(draw.spoil(name, value)) for name, value in of_file.items()}
    kafka = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "spec": {"kafka": {"config": config}}}
    return {"kafka.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": [kafka]}, indent=2)}


def _compose(draw: _Draw, of_file: Values) -> dict[str, str]:
    bitnami = draw.random.random() < 0.4
    image, prefix = ("bitnami/kafka:3.9", "KAFKA_CFG_") if bitnami else ("confluentinc/cp-kafka:7.9.0", "KAFKA_")
    listed = draw.random.random() < 0.5
    lines = ["services:", "  ui:", "    image: ui", "    environment: {KAFKA_CLUSTERS_0_NAME: x}"]
    for number in BROKERS:
        lines += [f"  kafka-{number}:", f"    image: {image}", "    environment:"]
        values = {"node.id": str(number), **{name: draw.spoil(name, value) for name, value in of_file.items()}}
        for name, value in values.items():
            variable = prefix + name.upper().replace(".", "_")
            lines.append(
                f"      - {json.dumps(f'{variable}={value}')}" if listed else f"      {variable}: {json.dumps(value)}"
            )
    return {"compose.yaml": "\n".join(lines) + "\n"}
