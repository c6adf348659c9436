"""The table of a world, ``[worlds.NAME]``, and the world that it describes."""

from __future__ import annotations

import re
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec

from harness.plan import worlds
from harness.plan.bounds import PORT_MAX, RUNS_MAX
from harness.plan.machines import machines_in
from harness.plan.operator_commands import OperatorCommands, operator_commands_of
from harness.plan.security import OPEN, Security, security_of
from harness.plan.upgrades import change_of, client_of, other_clients_of, refuse_impossible_upgrade, release_of
from harness.plan.values import (
    Only,
    PlanKey,
    ReadBy,
    Table,
    choices_of,
    keys_of,
    known_keys,
    record_of,
    refuse_pointless,
    shared,
    value_of,
)
from harness.plan.worlds import ClientChoice, ClientName, HostName, ModeName, UpgradeEnd
from nemesis.cluster import CONTROLLER
from nemesis.succession import UpgradeBy
from workloads import shown

#: Clusters that exist already.
_ELSEWHERE: Final = ("existing", "commands")
#: An even number outlives no more deaths than the odd one below it.
_CONTROLLERS: Final = (1, 3, 5)
_SERVER: Final = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})")
#: Kafka's limit for a topic's name is 249; on a cluster that exists already a run adds a hyphen and its seed.
_TOPIC_MAX: Final = 200


class _Setup(NamedTuple):
    """The choices in a world's table that decide which of its keys count."""

    world: str
    host: str
    client: object
    mode: object

    @property
    def kafka(self) -> bool:
        return self.world == "kafka"

    @property
    def exists(self) -> bool:
        return self.host in _ELSEWHERE


_OVER_SSH: Final = Only(
    lambda setup: setup.host == "ssh", 'machines are for host = "ssh"; write that, or leave the inventory out'
)
_FOUND: Final = Only(
    lambda setup: setup.exists, 'bootstrap servers are for host = "existing"; write that, or leave them out'
)
_SECURED: Final = Only(
    lambda setup: setup.exists, 'TLS and SASL are for host = "existing"; write that, or leave them out'
)
_BY_COMMANDS: Final = Only(
    lambda setup: setup.host == "commands", 'commands are for host = "commands"; write that, or leave them out'
)
_REAL: Final = Only(
    lambda setup: setup.world != "simulated", "the simulated world has models of clients; leave this key out"
)
_OF_JAVA: Final = Only(lambda setup: setup.client == "java", 'it is for client = "java"; write that, or leave it out')
_MIXED: Final = Only(
    lambda setup: setup.kafka and not setup.exists,
    "only a cluster of Kafka that a run starts can have other clients; leave this key out",
)
_RELEASED: Final = Only(lambda setup: setup.kafka, "only the kafka world has versions; leave this key out")
_MODES: Final = Only(lambda setup: setup.kafka, "only the kafka world has modes; leave this key out")
_QUORUM: Final = Only(lambda setup: setup.kafka, "the reference broker has one controller; leave this key out")
_STARTED: Final = Only(lambda setup: not setup.exists, "a cluster that exists already has its own; leave this key out")
_Value = TypeVar("_Value")
_Upgraded = Annotated[
    _Value,
    Only(lambda setup: setup.kafka, "only nodes of the kafka world can be upgraded; leave this key out"),
    _STARTED,
    Only(
        lambda setup: setup.mode != "zookeeper",
        'a cluster with mode = "zookeeper" cannot be upgraded here; leave out {key}, or mode',
    ),
    Only(
        lambda setup: setup.host != "ssh",
        "nodes over SSH have the one release that is installed there; leave out {key}, or write another host",
    ),
]


def _servers(value: object, plan_key: PlanKey) -> tuple[str, ...]:
    return tuple(_server(server, plan_key) for server in choices_of(value, plan_key))


def _server(server: object, plan_key: PlanKey) -> str:
    match = _SERVER.fullmatch(server) if isinstance(server, str) else None
    if match is None:
        raise plan_key.wrong(
            f'{shown(server)} is not the address of a server; write "host:port", for example "kafka-1.example:9092"'
        )
    if not 0 < int(match["port"]) <= PORT_MAX:
        raise plan_key.wrong(f"port {match['port']} of {shown(server)} does not exist; ports go from 1 to {PORT_MAX}")
    return match[0]


class WorldTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table of a world."""

    runs: Annotated[
        int,
        msgspec.Meta(ge=1, le=RUNS_MAX, description="each leaves a directory of files, and one job checks them all"),
    ] = 0
    """Runs of each cell; by default 10 in the simulated world and 1 elsewhere, and 1 where a story or a `[[schedule]]`
    leaves nothing to draw."""
    parallel: Annotated[int, msgspec.Meta(ge=1, le=256, description="each run has processes of its own")] = 0
    """Runs at a time. The default in virtual time is one a core, on real machines 3 clusters. It is one on a cluster
    that exists already and on machines over SSH. Runs in virtual time go on beside those of the plan's first world in
    real time, and give way to them (`nice`); a second world in real time follows."""
    workload: Table = {}
    """Values that replace those of `[workload]` in this world."""
    faults: Table = {}
    """Values that replace those of `[faults]` in this world."""
    host: HostName = "loopback"
    """The place of the nodes. `"namespaces"` needs root: addresses and links of their own. `"ssh"`, `"existing"`
    and `"commands"` are for the kafka world only."""
    client: Annotated[ClientChoice, _REAL, ReadBy(client_of)] = "kafka-python"
    """The client library of real worlds ([clients](../guides/clients.md)), or a program that brings its own:
    `{ command = ["node", "client.js"] }` ([client programs](../guides/client-programs.md)). Its producers are not
    idempotent unless the plan says so."""
    client_version: Annotated[str, _OF_JAVA, ReadBy(release_of)] = ""
    """The installed release of Apache Kafka from which `client = "java"` comes; by default that of the brokers in the
    kafka world, else the newest that was tried."""
    other_clients: Annotated[tuple[tuple[ClientName, str], ...], _MIXED, ReadBy(other_clients_of)] = ()
    """Kafka: libraries whose clients take turns with those of `client`, as old and new ones do in an upgrade:
    `["java:4.3.1", "confluent-kafka"]`."""
    version: Annotated[str, _RELEASED, _STARTED, ReadBy(release_of)] = ""
    """Kafka: an installed release; by default the newest that was tried."""
    upgrade_to: Annotated[_Upgraded[str], ReadBy(release_of)] = ""
    """Kafka: the release to which the family `upgrade` takes every node, one after the other; by default the same."""
    upgrade_end: _Upgraded[UpgradeEnd] = "finalize"
    """Kafka: the end of an upgrade. `"finalize"` raises the features, `"back"` takes every node back, `"leave"` does
    neither."""
    upgrade_by: _Upgraded[UpgradeBy] = "restart"
    """Kafka: `"replace"` lets each node leave the cluster, and a new one with its number and an empty disk join;
    `"move-and-replace"` moves a broker's replicas away before, and back afterwards. It needs release 3.9 and three
    controllers: voters are removed and added (KIP-853)."""
    change: Annotated[_Upgraded[tuple[tuple[str, str], ...]], ReadBy(change_of)] = ()
    """Kafka: settings that nodes have after their step of the family `upgrade`: `{ "num.io.threads" = 8 }`."""
    controllers: Annotated[int, msgspec.Meta(ge=1), _QUORUM, _STARTED] = 1
    """Kafka: 1, 3 or 5 controllers."""
    mode: Annotated[ModeName, _MODES, _STARTED] = "kraft"
    """Kafka: `"zookeeper"` is for releases from 0.10.1 to 3.9."""
    inventory: Annotated[Table, _OVER_SSH] = {}
    """Kafka with `host = "ssh"`: the machines, as a list `machines` and what all of them share ([below](#machines))."""
    bootstrap: Annotated[tuple[str, ...], _FOUND, ReadBy(_servers)] = ()
    """Kafka with `host = "existing"`: addresses of brokers, `["host:port"]`."""
    security: Annotated[Security, _SECURED, ReadBy(security_of)] = OPEN
    """Kafka with `host = "existing"` or `"commands"`: TLS and SASL ([below](#security))."""
    commands: Annotated[OperatorCommands | None, _BY_COMMANDS, ReadBy(operator_commands_of)] = None
    """Kafka with `host = "commands"`: the operator's own commands, each with one that observes it ([your
    cluster](../start/your-cluster.md#break-it-by-your-own-commands))."""


def world_table(name: str, table: Table, plan_key: PlanKey) -> WorldTable:
    """The ``table`` of the world ``name``."""
    known_keys(table, keys_of(WorldTable), plan_key)
    host = value_of(keys_of(WorldTable)["host"], table.get("host", "loopback"), plan_key / "host")
    if host != "loopback" and name == "simulated":
        raise (plan_key / "host").wrong("the simulated world is one process and has no hosts; leave this key out")
    if host == "ssh" and name != "kafka":
        raise (plan_key / "host").wrong(
            "only Apache Kafka runs on machines over SSH; write this host under [worlds.kafka]"
        )
    if host in _ELSEWHERE and name != "kafka":
        raise (plan_key / "host").wrong(
            "only Apache Kafka clusters can exist already; write this host under [worlds.kafka]"
        )
    refuse_pointless(WorldTable, table, _Setup(name, host, table.get("client"), table.get("mode")), plan_key)
    return record_of(WorldTable, table, plan_key)


def world_of(name: str, table: WorldTable, brokers: int, topic: str, plan_key: PlanKey) -> worlds.AnyWorld:
    """The world ``name`` as its ``table`` describes it; its runs have this number of brokers and make ``topic``."""
    if name == "simulated":
        return worlds.Simulated()
    if table.host in _ELSEWHERE:
        _refuse_unreachable(table, topic, plan_key)
        if table.host == "commands" and not table.commands:
            operator_commands_of({}, plan_key / "commands")  # says what is missing
        return worlds.Existing(**shared(worlds.Existing, table))
    host: worlds.AnyHost = worlds.Namespaces() if table.host == "namespaces" else worlds.Loopback()
    if name == "processes":
        return worlds.Processes(**shared(worlds.Processes, table) | {"host": host})
    _refuse_quorum(table.controllers, table.mode, plan_key / "controllers")
    if table.host == "ssh":
        nodes = [*range(brokers), *range(CONTROLLER, CONTROLLER + table.controllers)]
        host = worlds.Ssh(machines_in(table.inventory, nodes, plan_key / "inventory"))
    started = worlds.Kafka(**shared(worlds.Kafka, table) | {"host": host})
    refuse_impossible_upgrade(started, plan_key)
    return started


def _refuse_quorum(controllers: int, mode: ModeName, plan_key: PlanKey) -> None:
    if controllers != 1 and mode == "zookeeper":
        raise plan_key.wrong('with mode = "zookeeper" the controller is one of the brokers; leave controllers out')
    if controllers not in _CONTROLLERS:
        raise plan_key.wrong(f"a quorum of {controllers} controllers is not possible here; choose 1, 3 or 5")


def _refuse_unreachable(table: WorldTable, topic: str, plan_key: PlanKey) -> None:
    if not table.bootstrap:
        raise plan_key.wrong(f'host = "{table.host}" needs bootstrap = ["host:port", ...]: some servers of the cluster')
    if len(topic) > _TOPIC_MAX:
        raise (plan_key / "workload").wrong(
            f"topic={shown(topic)} is too long for a run to add its seed; the most is {_TOPIC_MAX} letters"
        )
