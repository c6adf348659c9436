"""Reads the table of one world, ``[worlds.kafka]``: what runs, and where."""

from __future__ import annotations

import re
from typing import Final

from harness.plan.machines import PORT_MAX, machines_at
from harness.plan.security import security_at
from harness.plan.values import Place, Table, list_at, shown, value_at
from harness.plan.worlds import (
    AnyHost,
    AnyWorld,
    ClientName,
    Existing,
    HostName,
    Kafka,
    LocalHost,
    Loopback,
    ModeName,
    Namespaces,
    Processes,
    Simulated,
    Ssh,
)
from nemesis.cluster import CONTROLLER

#: What a world's table says of the world itself.
WORLD_KEYS: Final = ("host", "version", "controllers", "mode", "client", "inventory", "bootstrap", "security")
#: What a cluster that exists already brings itself.
_ITS_OWN: Final = ("version", "controllers", "mode")
#: A release of Apache Kafka.
_VERSION: Final = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}")
#: An even number outlives no more deaths than the odd one below it.
_CONTROLLERS: Final = (1, 3, 5)
_SERVER: Final = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})")
#: Kafka's limit for a topic's name is 249; on a cluster that exists already a run adds a hyphen and its seed.
_TOPIC_MAX: Final = 200


def world_at(name: str, table: Table, brokers: int, topic: str, place: Place) -> AnyWorld:
    """The world ``name`` as its ``table`` describes it; its runs have so many brokers and make ``topic``.

    Raises:
        PlanError: something is missing, is no choice, or does not go together with the rest.
    """
    host = value_at(table, "host", HostName, "loopback", place)
    _refuse_host(name, host, place / "host")
    _refuse_what_others_take(name, host, table, place)
    if name == "simulated":
        return Simulated()
    client = value_at(table, "client", ClientName, "kafka-python", place)
    if host == "existing":
        security = security_at(table, place)
        return Existing(bootstrap=_bootstrap(table, topic, place), security=security, client=client)
    local: LocalHost = Namespaces() if host == "namespaces" else Loopback()
    if name == "processes":
        return Processes(host=local, client=client)
    mode = value_at(table, "mode", ModeName, "kraft", place)
    controllers = _controllers(value_at(table, "controllers", int, 1, place), mode, place / "controllers")
    there: AnyHost = local
    if host == "ssh":
        nodes = [*range(brokers), *range(CONTROLLER, CONTROLLER + controllers)]
        there = Ssh(machines_at(table, nodes, place))
    version = _version(value_at(table, "version", str, "", place), place / "version")
    return Kafka(version=version, mode=mode, controllers=controllers, host=there, client=client)


def _refuse_host(world: str, host: HostName, place: Place) -> None:
    if host != "loopback" and world == "simulated":
        raise place.wrong("the simulated world is one process and has no hosts; leave it out")
    if host == "ssh" and world != "kafka":
        raise place.wrong("machines over SSH carry Apache Kafka only; use it under [worlds.kafka]")
    if host == "existing" and world != "kafka":
        raise place.wrong("clusters that exist already are Apache Kafka's; use it under [worlds.kafka]")


def _refuse_what_others_take(world: str, host: HostName, table: Table, place: Place) -> None:
    existing, kafka = host == "existing", world == "kafka"
    for key, taken, what in (
        ("inventory", host == "ssh", 'machines are for host = "ssh"; write that, or leave the inventory out'),
        ("bootstrap", existing, 'bootstrap servers are for host = "existing"; write that, or leave them out'),
        ("security", existing, 'TLS and SASL are for host = "existing"; write that, or leave them out'),
        ("client", world != "simulated", "the simulated world has models of clients; leave it out"),
        ("version", kafka, "only the kafka world has versions; leave it out"),
        ("mode", kafka, "only the kafka world has modes; leave it out"),
        ("controllers", kafka, "the reference broker has one controller; leave it out"),
        *((key, not existing, "a cluster that exists already brings its own; leave it out") for key in _ITS_OWN),
    ):
        if key in table and not taken:
            raise (place / key).wrong(what)


def _version(version: str, place: Place) -> str:
    if version and not _VERSION.fullmatch(version):
        raise place.wrong(f'"{version}" is no version of Apache Kafka; write three numbers, for example "4.1.1"')
    return version


def _controllers(controllers: int, mode: ModeName, place: Place) -> int:
    if controllers != 1 and mode == "zookeeper":
        raise place.wrong('with mode = "zookeeper" the controller is one of the brokers; leave controllers out')
    if controllers not in _CONTROLLERS:
        raise place.wrong(
            f"{controllers} controllers are no quorum that outlives as many deaths as it could; choose 1, 3 or 5"
        )
    return controllers


def _bootstrap(table: Table, topic: str, place: Place) -> tuple[str, ...]:
    if "bootstrap" not in table:
        raise place.wrong(
            'host = "existing" needs bootstrap = ["host:port", ...]: servers of the cluster to start from'
        )
    if len(topic) > _TOPIC_MAX:
        raise (place / "workload").wrong(
            f"topic={shown(topic)} is too long for a run to add its seed; the most is {_TOPIC_MAX} letters"
        )
    return tuple(_server(server, place / "bootstrap") for server in list_at(table, "bootstrap", [], place))


def _server(server: object, place: Place) -> str:
    found = _SERVER.fullmatch(server) if isinstance(server, str) else None
    if found is None:
        raise place.wrong(f'{shown(server)} is no server; write "host:port", for example "kafka-1.example:9092"')
    if not 0 < int(found["port"]) <= PORT_MAX:
        raise place.wrong(f"port {found['port']} of {shown(server)} is none; ports go from 1 to {PORT_MAX}")
    return found[0]
