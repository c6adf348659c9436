"""Reads what a plan says of a rolling upgrade, and refuses, in a sentence, one that Kafka does not have."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from harness.plan.file_form import WORLD_DEFAULTS
from harness.plan.model import Plan
from harness.plan.values import PlanKey, Table, flattened, table_at, value_at
from harness.plan.worlds import ClientName, Kafka, Ssh, UpgradeEnd
from nemesis.faults import Upgrade
from nemesis.succession import UpgradeBy
from workloads import Settings, spelled

#: The keys of a world's table that are about it.
UPGRADE_KEYS: Final = ("upgrade_to", "upgrade_end", "upgrade_by", "change")
#: The first release whose controllers join and leave, and how many there are so that one can.
_VOTERS_SINCE: Final = [3, 9]
_VOTERS_MIN: Final = 3
#: The client library that comes in releases.
JAVA: Final = "java"
#: A release of Apache Kafka.
_VERSION: Final = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}")
#: Settings by which the harness knows a node, and finds its files.
_IDENTITY: Final = (
    "process.roles", "node.id", "broker.id", "controller.quorum.voters", "controller.listener.names", "listeners",
    "listener.security.protocol.map", "advertised.listeners", "log.dirs", "log.dir", "metadata.log.dir",
)  # fmt: skip


def release_at(table: Table, key: str, plan_key: PlanKey) -> str:
    """The release of Kafka under ``key``, or "".

    Raises:
        PlanError: it is not a version.
    """
    version: str = value_at(table, key, str, "", plan_key)
    if version and not _VERSION.fullmatch(version):
        raise (plan_key / key).wrong(
            f'"{version}" is not a version of Apache Kafka; write three numbers, for example "4.1.1"'
        )
    return version


def client_at(table: Table, plan_key: PlanKey) -> ClientName:
    """The client library of a world.

    Raises:
        PlanError: it is not one, or has another name in plans.
    """
    if table.get("client") == "librdkafka":
        raise (plan_key / "client").wrong('librdkafka is used by "confluent-kafka"; write that')
    client: ClientName = value_at(table, "client", ClientName, WORLD_DEFAULTS.client, plan_key)
    return client


def other_clients_at(table: Table, plan_key: PlanKey) -> tuple[tuple[ClientName, str], ...]:
    """The libraries that take turns with the world's own, each with the release of the Java client, or "".

    Raises:
        PlanError: one is not a library, or is not followed by a version.
    """
    words: list[str] = value_at(table, "other_clients", list[str], [], plan_key)
    clients = []
    for number, word in enumerate(words):
        name, _, release = word.partition(":")
        entry: Table = {"client": name, **({"client_version": release} if release else {})}
        key = plan_key / f"other_clients[{number}]"
        if release and name != JAVA:
            raise key.wrong(f'only the client java has releases to choose from; write "{name}"')
        clients.append((client_at(entry, key), release_at(entry, "client_version", key)))
    return tuple(clients)


def with_upgrade(world: Kafka, table: Table, plan_key: PlanKey) -> Kafka:
    """``world`` with the upgrade that its ``table`` describes.

    Raises:
        PlanError: Kafka, or this host, has no such upgrade.
    """
    end: UpgradeEnd = value_at(table, "upgrade_end", UpgradeEnd, WORLD_DEFAULTS.upgrade_end, plan_key)
    change = flattened(table_at(table, "change", plan_key))
    to = release_at(table, "upgrade_to", plan_key)
    asked = next((key for key in UPGRADE_KEYS if key in table), "")
    if asked and world.mode == "zookeeper":
        raise (plan_key / asked).wrong(
            f'a cluster with mode = "zookeeper" cannot be upgraded here; leave out {asked}, or mode'
        )
    if asked and isinstance(world.host, Ssh):
        raise (plan_key / asked).wrong(
            f"nodes over SSH have the one release that is installed there; leave out {asked}, or write another host"
        )
    _refuse_older(world.version, to, plan_key)
    by: UpgradeBy = value_at(table, "upgrade_by", UpgradeBy, WORLD_DEFAULTS.upgrade_by, plan_key)
    _refuse_fixed_voters(world, by, plan_key / "upgrade_by")
    for name in change:
        if name in _IDENTITY:
            raise (plan_key / "change").wrong(f"the harness finds nodes by {name}; change another setting")
        if name in Settings().to_mapping():
            raise (plan_key / "change").wrong(f"the promise of a run follows from {name}; write it under [settings]")
    changed = tuple((name, spelled(value)) for name, value in change.items())
    return msgspec.structs.replace(world, upgrade_to=to, upgrade_end=end, upgrade_by=by, change=changed)


def check_upgrade(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse a world that describes an upgrade which no family of the plan performs.

    Raises:
        PlanError: one sentence.
    """
    if any(Upgrade.family in family.split("+") for family in plan.families):
        return
    for world in plan.worlds:
        if isinstance(world.world, Kafka) and (world.world.upgrade_to or world.world.change):
            raise (plan_key / "families").wrong(
                f'[worlds.kafka] describes an upgrade, but no family performs one; write "{Upgrade.family}" or, for '
                f'example, "{Upgrade.family}+kill"'
            )


def _refuse_older(version: str, to: str, plan_key: PlanKey) -> None:
    """A cluster has the features of the release that formatted it, and an older minor release does not know them."""
    if not to:
        return
    if not version:
        raise (plan_key / "upgrade_to").wrong("write version too, the release with which the cluster begins")
    if _minor(to) < _minor(version):
        raise (plan_key / "upgrade_to").wrong(
            f"a cluster that began with {version} has features that {to} does not know; to try the way back, write "
            f'version = "{to}", upgrade_to = "{version}" and upgrade_end = "back"'
        )


def _refuse_fixed_voters(world: Kafka, by: UpgradeBy, plan_key: PlanKey) -> None:
    if by == "restart":
        return
    if world.version and _minor(world.version) < _VOTERS_SINCE:
        raise plan_key.wrong(f"controllers of {world.version} cannot leave their quorum; begin with 3.9 or later")
    if world.controllers < _VOTERS_MIN:
        raise plan_key.wrong("a controller that leaves needs others that stay; write controllers = 3")


def _minor(release: str) -> list[int]:
    return [int(part) for part in release.split(".")][:2]
