"""Drawn settings of a producer are the same in every form of file, or are said to be not understood; never others."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from harness.assess import Client, clients_named
from harness.assess.client_settings import effective

CONFIGURATIONS: Final = 200
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "acks": ("all", "-1", "1", "0"),
    "enable.idempotence": ("true", "false"),
    "retries": ("0", "3", "2147483647"),
    "max.in.flight.requests.per.connection": ("1", "5", "10"),
    "linger.ms": ("0", "20"),
    "delivery.timeout.ms": ("30000", "120000"),
    "request.timeout.ms": ("10000", "30000"),
    "retry.backoff.ms": ("100", "500"),
    "transactional.id": ("billing-1", "null", ""),
}
NOISE: Final = {
    "bootstrap.servers": "broker-1.example:9092,broker-2.example:9092",
    "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    "client.id": "Gr\u00f6\u00dfe",
    "sasl.jaas.config": 'module required username="a" password="s=e:c#r!et";',
}
IN_SPRING: Final = {"acks": "acks", "retries": "retries", "transactional.id": "transaction-id-prefix"}

Drawn = Mapping[str, str]
#: A form makes of settings a file's name, its text, and the settings that its framework adds or fixes.
Form = Callable[[Drawn, random.Random], tuple[str, str, Drawn]]


def drawn(seed: int) -> dict[str, str]:
    rng = random.Random(seed)
    names = rng.sample(sorted(VALUES), rng.randint(1, len(VALUES)))
    return {name: rng.choice(VALUES[name]) for name in names}


def shuffled(values: Drawn, rng: random.Random) -> list[tuple[str, str]]:
    return rng.sample(sorted((NOISE | dict(values)).items()), len(NOISE | dict(values)))


def noisy(value: str, rng: random.Random) -> str:
    return rng.choice([value.upper(), value.title(), value]) if value in {"true", "false"} else value


def line_of(name: str, value: str, rng: random.Random) -> str:
    separator = rng.choice(["=", " = ", ": ", "\\\n   = \\\n", "\t=\t"])
    escaped = name if rng.random() < 0.7 else f"\\u{ord(name[0]):04x}{name[1:]}"
    comment = rng.choice(["", "", "# old: acks=0 \\\n", "! retries=7\n", "\n \t\n"])
    return f"{comment}{escaped}{separator}{noisy(value, rng)}{rng.choice(['', '  ', chr(9)])}\n"


def prefixed(prefix: str, values: Drawn, rng: random.Random) -> str:
    return "".join(line_of(f"{prefix}{name}", value, rng) for name, value in shuffled(values, rng))


def as_properties(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    return "p.properties", prefixed("", values, rng).replace("\n", rng.choice(["\n", "\r\n"])), {}


def as_json(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    typed: dict[str, object] = {}
    for name, value in shuffled(values, rng):
        numeric = value.lstrip("-").isdigit()
        typed[name] = int(value) if numeric else value == "true" if value in {"true", "false"} else value or None
    inside = {"producer": typed, "consumer": {"group.id": "g", "enable.auto.commit": False}}
    return "p.json", json.dumps(rng.choice([typed, inside, {"conf": typed}]), indent=rng.choice([None, 2])), {}


def as_log(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    """The whole effective configuration, as the client logs it."""
    given = {
        name: value for name, value in values.items() if not (name == "transactional.id" and value in {"", "null"})
    }
    whole = effective(Client(name="c", library="java", settings=given))
    before = rng.choice(["", "2026-05-04T10:11:12.131Z stdout F ", "app-1  | "])
    lines = [f"{name} = {value}" for name, value in sorted(NOISE.items() | whole.items()) if name != "transactional.id"]
    lines.append(f"transactional.id = {whole.get('transactional.id', 'null')}")
    block = "".join(f"{before}\t{line}\n" for line in lines)
    other = f"{before}INFO ConsumerConfig values:\n{before}\tacks = 7\n{before}\tgroup.id = g\n"
    header = f"{before}[2026-05-04 10:11:12,131] INFO ProducerConfig values: \n"
    return "client.log", f"starting\n{other}{header}{block} (org.example.ProducerConfig)\n{other}", {}


def spring_names(values: Drawn, rng: random.Random) -> dict[str, str]:
    named = {}
    for name, value in values.items():
        own = IN_SPRING.get(name)
        direct = own is not None and rng.random() < 0.6
        named[f"spring.kafka.producer.{own}" if direct else f"spring.kafka.producer.properties.{name}"] = value
    return named


def as_spring_properties(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    named = spring_names(values, rng) | {"spring.application.name": "orders", "spring.kafka.consumer.group-id": "g"}
    return "application.properties", "".join(line_of(name, value, rng) for name, value in named.items()), {}


def as_spring_yaml(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    lines = ["# settings", "spring:", "  application:", "    name: orders", "  kafka:"]
    lines += ["    consumer:", "      group-id: orders", "    producer:"]
    properties = []
    for name, value in values.items():
        text = rng.choice([f'"{value}"', f"'{value}'", value]) if value else '""'
        if name in IN_SPRING and rng.random() < 0.6:
            lines.append(f"      {IN_SPRING[name]}: {text}   # as agreed")
        else:
            properties.append(f"        {rng.choice([name, f'[{name}]', name]) if '.' in name else name}: {text}")
    quoted = [line.replace("[", '"[').replace("]", ']"') for line in properties]
    return "application.yml", "\n".join([*lines, *(["      properties:", *quoted] if quoted else [])]) + "\n", {}


def as_connect(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    worker = "group.id=connect\nkey.converter=x\nacks=0\noffset.storage.topic=o\nconfig.storage.topic=c\n"
    base = {
        "acks": "all",
        "enable.idempotence": "false",
        "max.in.flight.requests.per.connection": "1",
        "delivery.timeout.ms": "2147483647",
    }
    return "connect.properties", worker + prefixed("producer.", values, rng), base


def as_environment(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    quote = rng.choice(["", '"', "'"])
    export = rng.choice(["", "export "])
    named = {f"KAFKA_PRODUCER_{name.upper().replace('.', '_')}": value for name, value in values.items()}
    lines = [f"{export}{name}={quote}{noisy(value, rng)}{quote}" for name, value in named.items()]
    return "app.env", "\n".join(["# the application", "APP_NAME=orders", "KAFKA_BOOTSTRAP_SERVERS=b:1", *lines, ""]), {}


def as_compose(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    named = {f"KAFKA_PRODUCER_{name.upper().replace('.', '_')}": value for name, value in values.items()}
    as_list = [f"      - {name}={value}" for name, value in named.items()]
    as_table = [f'      {name}: "{value}"' for name, value in named.items()]
    broker = ["  kafka:", "    environment:", "      KAFKA_NODE_ID: 1", "      KAFKA_ACKS: 7"]
    lines = ["services:", *broker, "  app:", "    image: app", "    environment:", *rng.choice([as_list, as_table])]
    return "compose.yml", "\n".join(lines) + "\n", {}


def as_streams(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    top = "application.id=orders\nstate.dir=/var/lib/s\nrestore.consumer.isolation.level=read_committed\n"
    return "streams.properties", top + prefixed("producer.", values, rng), {"linger.ms": "100"}


def as_micronaut(values: Drawn, rng: random.Random) -> tuple[str, str, Drawn]:
    return "application.properties", prefixed("kafka.producers.default.", values, rng), {}


FORMS: Final[Mapping[str, Form]] = {
    name.removeprefix("as_"): form
    for name, form in sorted(globals().items())
    if name.startswith("as_") and callable(form)
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_settings_that_were_drawn(form: str, tmp_path: Path) -> None:
    understood = 0
    for seed in range(CONFIGURATIONS):
        values = drawn(seed)
        rng = random.Random(f"{form} {seed}")
        name, text, base = FORMS[form](values, rng)
        file = tmp_path / name
        file.write_bytes(text.encode(rng.choice(["utf-8", "latin-1"]) if file.suffix == ".properties" else "utf-8"))
        settings = dict(base) | {
            name: value for name, value in values.items() if not (name == "transactional.id" and value in {"", "null"})
        }
        expected = effective(Client(name="c", library="java", settings=settings))
        (client,) = clients_named([str(file)], "--producer")
        unclear = {each.name for each in client.not_understood}
        read_values = effective(client)
        wrong = {
            own: read_values[own] for own in expected.keys() & read_values.keys() if read_values[own] != expected[own]
        }
        assert not wrong or unclear, (f"seed {seed}", values, wrong, text)
        assert unclear or ("transactional.id" in read_values) == ("transactional.id" in expected), (
            f"seed {seed}",
            text,
        )
        understood += not unclear
    assert understood == CONFIGURATIONS, "all that is written here is understood"


OF_CONSUMERS: Final[Mapping[str, tuple[str, ...]]] = {
    "auto.offset.reset": ("earliest", "latest", "none"),
    "enable.auto.commit": ("true", "false"),
    "isolation.level": ("read_committed", "read_uncommitted"),
    "group.id": ("orders", "null"),
}


def consumer_texts(values: Drawn, rng: random.Random) -> dict[str, str]:
    """The same settings of a consumer in several forms, by the name of a file."""
    spring = {
        "group.id": "group-id",
        "auto.offset.reset": "auto-offset-reset",
        "enable.auto.commit": "enableAutoCommit",
    }
    named = {name: f"consumer.{own}" for name, own in spring.items()}
    lines = "".join(
        f"spring.kafka.{named.get(name, f'consumer.properties.{name}')}: {value}\n" for name, value in values.items()
    )
    whole = effective(Client(name="c", library="java", settings=values))
    block = "".join(f"\t{name} = {value}\n" for name, value in (whole | {"group.id": values["group.id"]}).items())
    variables = (f"KAFKA_CONSUMER_{name.upper().replace('.', '_')}={value}\n" for name, value in values.items())
    return {
        "c.properties": prefixed("", values, rng),
        "c.json": json.dumps({"consumer": values, "producer": {"acks": 1}}),
        "application.yml": f"{lines}spring.kafka.producer.acks: 0\n",
        "c.log": f"INFO ProducerConfig values:\n\tacks = 0\nINFO ConsumerConfig values: \n{block}",
        "c.env": "".join(variables),
    }


def test_every_form_gives_the_settings_of_a_consumer_that_were_drawn(tmp_path: Path) -> None:
    read = 0
    for seed in range(CONFIGURATIONS // 4):
        rng = random.Random(seed)
        values = {name: rng.choice(choices) for name, choices in OF_CONSUMERS.items()}
        expected = {name: value for name, value in values.items() if value != "null"}
        for name, text in consumer_texts(values, rng).items():
            (tmp_path / name).write_bytes(text.encode())
            (client,) = clients_named([str(tmp_path / name)], "--consumer")
            decisive = {own: value for own, value in client.settings.items() if own in OF_CONSUMERS}
            assert (decisive, client.not_understood) == (expected, ()), (f"seed {seed}", text)
            read += 1
    assert read == CONFIGURATIONS // 4 * 5
