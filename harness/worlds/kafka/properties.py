"""The configuration of one node, from the settings of a run. No effects here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import msgspec

from harness.broker.core.coordinator import log_config
from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicConfig
from harness.ground.errors import PlanError
from harness.plan import Kafka
from harness.worlds.hosts import Address
from harness.worlds.kafka.releases import ELR_SINCE, KRAFT_SINCE, TRANSACTIONS_2_SINCE, Version
from harness.worlds.reference_settings import topic_config
from nemesis.cluster import CONTROLLER
from workloads import KAFKA_DEFECTS, NEVER, Settings, spelled

#: The first release that follows a rule which the reference broker can switch: before it, the setting must say so.
RULES_SINCE: Final[Mapping[str, tuple[int, int, int]]] = {
    "strict.min.isr": (3, 7, 0),  # KAFKA-15583
    "broker.epochs": (3, 5, 0),  # KIP-903
    "fetch.fencing": (2, 1, 0),  # KIP-320
    "isr.join.epoch.rule": (2, 0, 1),  # KAFKA-7128
}
#: The settings that are chosen when a cluster is formatted.
ELR: Final = "eligible.leader.replicas"
TRANSACTIONS: Final = "transaction.version"
#: Consumers read from a follower since 2.4 (KIP-392), if brokers have this class choose one.
NEAR: Final = "follower.fetching"
NEAR_SINCE: Final = (2, 4, 0)
_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
#: Choices of a cluster that are neither a rule of the release nor a defect, and since when there are.
SINCE: Final[Mapping[str, tuple[int, int, int]]] = {
    ELR: ELR_SINCE,
    NEAR: NEAR_SINCE,
    TRANSACTIONS: TRANSACTIONS_2_SINCE,
}
#: The choice of all releases before, where it is not the default.
_BEFORE: Final[Mapping[str, object]] = {TRANSACTIONS: 1}
#: The defects that the brokers of every release have, as the reference broker's settings name them (rules 21, 30).
_DEFECTS: Final[Mapping[str, object]] = {
    "missed.epoch": "kafka",
    "producers.after.restart": "last-batch",
}
#: The rule that depends on the keeper of metadata, too: :func:`elections_possible`.
UNCLEAN: Final = "unclean.elections"
#: Not compared: these, one of a client, and a preset of the others.
_FREE: Final = (*KAFKA_DEFECTS, UNCLEAN, "era")
#: Small and quick: a run has a few partitions and megabytes.
_SMALL: Final[Mapping[str, object]] = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 4 * 2**20,
    "log.cleaner.io.buffer.size": 2**19,
    "log.segment.bytes": 16 * 2**20,
    # An index file is a memory map of this size, sparse on disk; ten megabytes each is Kafka's default.
    "log.index.size.max.bytes": 256 * 2**10,
    "auto.create.topics.enable": "false",
    # Only the nemesis, and the controller's answer to it, move leaders.
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
}
#: Fast enough that a fault matters within seconds; Kafka's defaults are 30 s, 500 ms to 1 s, and 2 s.
_QUICK: Final[Mapping[str, object]] = {
    "replica.socket.timeout.ms": 3_000,
    "controller.socket.timeout.ms": 3_000,
    "controller.quorum.election.timeout.ms": 1_000,
    "controller.quorum.fetch.timeout.ms": 2_000,
    "controller.quorum.request.timeout.ms": 1_000,
    "broker.initial.registration.timeout.ms": 300_000,  # a broker that gives up ends, on a slow machine too
}


#: Brokers with a compacted topic have a cleaner that looks for work this often; Kafka's default is 15 s.
_CLEANING: Final[Mapping[str, object]] = {"log.cleaner.backoff.ms": 500}
#: Brokers whose records go by age look for old segments this often; Kafka's defaults are 5 min and 30 s.
_EXPIRING: Final[Mapping[str, object]] = {"log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 500}


class NodePlace(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a cluster: its number, its files, its address and those of the controllers by number.

    ``rack`` is a broker's, "" where each is in one of its own. ``dynamic``: controllers may join and leave (KIP-853).
    """

    node: int
    data: Path
    address: Address
    controllers: Mapping[int, Address]
    rack: str = ""
    dynamic: bool = False


def possible_with_kraft(settings: Settings, version: Version) -> None:
    """Refuse a release that wants ZooKeeper, and settings that this release does not have.

    Raises:
        PlanError: the release does not go with the plan; the text says what to change.
    """
    if version < KRAFT_SINCE:
        raise PlanError(
            f"Apache Kafka {version} is started with ZooKeeper here, as all releases before "
            f'{".".join(map(str, KRAFT_SINCE))} are: write mode = "zookeeper", or choose a later version'
        )
    possible(settings, version)


def possible(settings: Settings, version: Version, free: Collection[str] = ()) -> None:
    """Refuse settings that this release does not have; those in ``free`` can be chosen.

    Where no transactions are written their version decides nothing: :func:`transactions_possible`.

    Raises:
        PlanError: a setting does not go with the release; the text names it.
    """
    chosen = settings.to_mapping()
    for name, wanted in _rules_of(version, (*free, TRANSACTIONS)).items():
        if chosen[name] != wanted:
            raise PlanError(
                f"{name}={spelled(chosen[name])} is not how Apache Kafka {version} works; in its world write "
                f"{name}={spelled(wanted)}"
            )


def transactions_possible(settings: Settings, version: Version, feature: int | None = None) -> None:
    """Refuse a version of transactions that a cluster does not have, for a workload that writes in transactions.

    ``feature`` is the level of the feature in a cluster that exists; None where the cluster is still to be formatted.

    Raises:
        PlanError: the release, or the cluster, has the other one.
    """
    if feature is None and version >= TRANSACTIONS_2_SINCE:
        return
    has = 2 if (feature or 0) > 1 else 1
    if settings.transaction_version != has:
        where = f"Apache Kafka {version}" if feature is None else "this cluster"
        raise PlanError(
            f"{TRANSACTIONS}={settings.transaction_version} is not how {where} works; in its world write "
            f"{TRANSACTIONS}={has}"
        )


def elections_possible(settings: Settings, world: Kafka, version: Version) -> None:
    """Refuse a rule of unclean elections that the release, with its keeper of metadata, does not have (rule 14).

    Where a topic does not allow them the rule decides nothing.

    Raises:
        PlanError: it has the other one.
    """
    if settings.unclean_leader_election_enable and settings.unclean_elections != world.unclean_elections:
        keeper = "ZooKeeper" if world.mode == "zookeeper" else "KRaft"
        raise PlanError(
            f"{UNCLEAN}={spelled(settings.unclean_elections)} is not how Apache Kafka {version} with {keeper} works; "
            f"in its world write {UNCLEAN}={spelled(world.unclean_elections)}"
        )


def foreign_rule(chosen: Mapping[str, object], version: Version) -> str:
    """The first of these settings that no node of this release works by, such as "truncation=kip-101"; "" if it does.

    A defect of Kafka that is switched off is one.
    """
    rules = {**_rules_of(version), **_DEFECTS}
    names = (name for name, value in chosen.items() if name in rules and value != rules[name])
    return next((f"{name}={spelled(chosen[name])}" for name in names), "")


def _rules_of(version: Version, free: Collection[str] = ()) -> dict[str, object]:
    """The rules that only the reference broker can switch, as this release has them, but those that are ``free``."""
    usual = Settings().to_mapping()
    fixed = [
        name
        for name in Settings.scoped("reference")
        if name not in (*free, *_FREE) and not (name in SINCE and version >= SINCE[name])
    ]
    return {
        name: version >= RULES_SINCE[name] if name in RULES_SINCE else _BEFORE.get(name, usual[name]) for name in fixed
    }


def node_properties(node_place: NodePlace, settings: Settings, brokers: int) -> dict[str, str]:
    """The ``server.properties`` of a broker or of the controller."""
    replicas = min(3, brokers)
    groups, transactions = (
        log_config(topic, topic_config(settings), replicas) for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    )
    chosen: dict[str, object] = {
        **_identity(node_place),
        **_SMALL,
        **_QUICK,
        **{name: value for name, value in settings.to_mapping().items() if name in Settings.scoped("broker")},
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": transactions.min_insync_replicas,
        # Brokers make the log of groups with their own defaults.
        "min.insync.replicas": groups.min_insync_replicas,
        "unclean.leader.election.enable": groups.unclean_leader_election_enable,
        **_group_sessions(settings.session_timeout_ms),
        **({"replica.selector.class": _SELECTOR} if settings.follower_fetching else {}),
        **(_cleaning(groups) if groups.compacted else {}),
        **(_EXPIRING if settings.expires else {}),
        "log.flush.interval.messages": NEVER,
        # flush.ms of a topic acts only as often as this looks.
        "log.flush.scheduler.interval.ms": settings.flush_ms,
    }
    return {name: spelled(value) for name, value in chosen.items()}


def _cleaning(groups: TopicConfig) -> dict[str, object]:
    """The properties of brokers with a compacted topic, whose log of groups is cleaned as that is."""
    return {
        **_CLEANING,
        "log.roll.ms": groups.segment_ms,
        "log.cleaner.min.cleanable.ratio": groups.min_cleanable_dirty_ratio,
        "log.cleaner.delete.retention.ms": groups.delete_retention_ms,
        "log.cleaner.min.compaction.lag.ms": groups.min_compaction_lag_ms,
    }


def _group_sessions(session_ms: int) -> dict[str, object]:
    """Sessions of group members: a member asks for its own, or, with KIP-848, the brokers have one for all.

    Limits are Kafka's own, and wider where the session needs it.
    """
    heartbeat_ms = max(1, min(session_ms // 3, 15_000))
    return {
        "group.min.session.timeout.ms": min(6_000, session_ms),
        "group.consumer.min.session.timeout.ms": min(45_000, session_ms),
        "group.consumer.max.session.timeout.ms": max(60_000, session_ms),
        "group.consumer.session.timeout.ms": session_ms,
        "group.consumer.min.heartbeat.interval.ms": min(5_000, heartbeat_ms),
        "group.consumer.heartbeat.interval.ms": heartbeat_ms,
    }


def lone_properties(node_place: NodePlace, settings: Settings) -> dict[str, str]:
    """``server.properties`` of a node that is broker and controller in one."""
    broker, (controller,) = node_place.address, node_place.controllers.values()
    return node_properties(node_place, settings, brokers=1) | {
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"{node_place.node}@{controller.host}:{controller.port}",
        "listeners": f"PLAINTEXT://{broker.host}:{broker.port},CONTROLLER://{controller.host}:{controller.port}",
    }


def as_text(properties: Mapping[str, str]) -> str:
    """The text of a properties file."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _identity(node_place: NodePlace) -> dict[str, object]:
    controls = node_place.node >= CONTROLLER
    name = "CONTROLLER" if controls else "PLAINTEXT"
    listener = f"{name}://{node_place.address.host}:{node_place.address.port}"
    advertised = (
        {} if controls else {"advertised.listeners": listener, "broker.rack": node_place.rack or f"r{node_place.node}"}
    )
    controllers = {node: f"{address.host}:{address.port}" for node, address in node_place.controllers.items()}
    quorum = {"controller.quorum.voters": ",".join(f"{node}@{address}" for node, address in controllers.items())}
    if node_place.dynamic:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(controllers.values())}
    return {
        "process.roles": "controller" if controls else "broker",
        "node.id": node_place.node,
        **quorum,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": listener,
        **advertised,
        "log.dirs": node_place.data,
    }
