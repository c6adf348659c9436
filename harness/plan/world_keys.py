"""A world as its table in a plan describes it: ``[worlds.NAME]``, except for workload, faults and number of runs."""

from __future__ import annotations

import re
from typing import Final

from harness.plan import worlds
from harness.plan.bounds import PORT_MAX
from harness.plan.file_form import WORLD_DEFAULTS
from harness.plan.machines import machines_at
from harness.plan.operator_commands import operator_commands_at
from harness.plan.security import security_at
from harness.plan.upgrades import UPGRADE_KEYS, client_at, other_clients_at, release_at, with_upgrade
from harness.plan.values import PlanKey, Table, list_at, value_at
from nemesis.cluster import CONTROLLER
from workloads import shown

#: Keys whose values a cluster that exists already has itself.
_ITS_OWN: Final = ("version", "controllers", "mode", *UPGRADE_KEYS)
#: Clusters that exist already.
_ELSEWHERE: Final = ("existing", "commands")
#: An even number outlives no more deaths than the odd one below it.
_CONTROLLERS: Final = (1, 3, 5)
_SERVER: Final = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})")
#: Kafka's limit for a topic's name is 249; on a cluster that exists already a run adds a hyphen and its seed.
_TOPIC_MAX: Final = 200


def world_at(name: str, table: Table, brokers: int, topic: str, plan_key: PlanKey) -> worlds.AnyWorld:
    """The world ``name`` as its ``table`` describes it; its runs have this number of brokers and make ``topic``.

    Raises:
        PlanError: a key is missing, a value is not possible, or two values do not go together.
    """
    host = value_at(table, "host", worlds.HostName, WORLD_DEFAULTS.host, plan_key)
    _refuse_host(name, host, plan_key / "host")
    _refuse_what_others_take(name, host, table, plan_key)
    if name == "simulated":
        return worlds.Simulated()
    client = client_at(table, plan_key)
    release = release_at(table, "client_version", plan_key)
    if host in _ELSEWHERE:
        security = security_at(table, plan_key)
        bootstrap = _bootstrap(table, host, topic, plan_key)
        commands = operator_commands_at(table, plan_key) if host == "commands" else None
        return worlds.Existing(
            bootstrap=bootstrap, security=security, commands=commands, client=client, client_version=release
        )
    local: worlds.LocalHost = worlds.Namespaces() if host == "namespaces" else worlds.Loopback()
    if name == "processes":
        return worlds.Processes(host=local, client=client, client_version=release)
    mode = value_at(table, "mode", worlds.ModeName, WORLD_DEFAULTS.mode, plan_key)
    controllers = _controllers(
        value_at(table, "controllers", int, WORLD_DEFAULTS.controllers, plan_key), mode, plan_key / "controllers"
    )
    nodes_host: worlds.AnyHost = local
    if host == "ssh":
        nodes = [*range(brokers), *range(CONTROLLER, CONTROLLER + controllers)]
        nodes_host = worlds.Ssh(machines_at(table, nodes, plan_key))
    version = release_at(table, "version", plan_key)
    started = worlds.Kafka(
        version=version,
        mode=mode,
        controllers=controllers,
        host=nodes_host,
        client=client,
        client_version=release,
        other_clients=other_clients_at(table, plan_key),
    )
    return with_upgrade(started, table, plan_key)


def _refuse_host(world: str, host: worlds.HostName, plan_key: PlanKey) -> None:
    if host != "loopback" and world == "simulated":
        raise plan_key.wrong("the simulated world is one process and has no hosts; leave this key out")
    if host == "ssh" and world != "kafka":
        raise plan_key.wrong("only Apache Kafka runs on machines over SSH; write this host under [worlds.kafka]")
    if host in _ELSEWHERE and world != "kafka":
        raise plan_key.wrong("only Apache Kafka clusters can exist already; write this host under [worlds.kafka]")


def _refuse_what_others_take(world: str, host: worlds.HostName, table: Table, plan_key: PlanKey) -> None:
    existing, kafka = host in _ELSEWHERE, world == "kafka"
    for key, taken, what in (
        ("inventory", host == "ssh", 'machines are for host = "ssh"; write that, or leave the inventory out'),
        ("bootstrap", existing, 'bootstrap servers are for host = "existing"; write that, or leave them out'),
        ("security", existing, 'TLS and SASL are for host = "existing"; write that, or leave them out'),
        ("commands", host == "commands", 'commands are for host = "commands"; write that, or leave them out'),
        ("client", world != "simulated", "the simulated world has models of clients; leave this key out"),
        ("client_version", table.get("client") == "java", 'it is for client = "java"; write that, or leave it out'),
        (
            "other_clients",
            kafka and not existing,
            "only a cluster of Kafka that a run starts can have other clients; leave this key out",
        ),
        ("version", kafka, "only the kafka world has versions; leave this key out"),
        ("mode", kafka, "only the kafka world has modes; leave this key out"),
        ("controllers", kafka, "the reference broker has one controller; leave this key out"),
        *((key, kafka, "only nodes of the kafka world can be upgraded; leave this key out") for key in UPGRADE_KEYS),
        *((key, not existing, "a cluster that exists already has its own; leave this key out") for key in _ITS_OWN),
    ):
        if key in table and not taken:
            raise (plan_key / key).wrong(what)


def _controllers(controllers: int, mode: worlds.ModeName, plan_key: PlanKey) -> int:
    if controllers != 1 and mode == "zookeeper":
        raise plan_key.wrong('with mode = "zookeeper" the controller is one of the brokers; leave controllers out')
    if controllers not in _CONTROLLERS:
        raise plan_key.wrong(f"a quorum of {controllers} controllers is not possible here; choose 1, 3 or 5")
    return controllers


def _bootstrap(table: Table, host: worlds.HostName, topic: str, plan_key: PlanKey) -> tuple[str, ...]:
    if "bootstrap" not in table:
        raise plan_key.wrong(f'host = "{host}" needs bootstrap = ["host:port", ...]: some servers of the cluster')
    if len(topic) > _TOPIC_MAX:
        raise (plan_key / "workload").wrong(
            f"topic={shown(topic)} is too long for a run to add its seed; the most is {_TOPIC_MAX} letters"
        )
    return tuple(_server(server, plan_key / "bootstrap") for server in list_at(table, "bootstrap", [], plan_key))


def _server(server: object, plan_key: PlanKey) -> str:
    match = _SERVER.fullmatch(server) if isinstance(server, str) else None
    if match is None:
        raise plan_key.wrong(
            f'{shown(server)} is not the address of a server; write "host:port", for example "kafka-1.example:9092"'
        )
    if not 0 < int(match["port"]) <= PORT_MAX:
        raise plan_key.wrong(f"port {match['port']} of {shown(server)} does not exist; ports go from 1 to {PORT_MAX}")
    return match[0]
