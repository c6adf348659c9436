"""Reads what a plan says of a rolling upgrade, and refuses, in a sentence, one that Kafka does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from harness.plan.model import Plan
from harness.plan.values import PlanKey, flattened, of_kind, record_of, table_of
from harness.plan.worlds import ClientChoice, ClientName, ClientProgram, Kafka
from nemesis.faults import Upgrade
from workloads import Settings, spelled

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


def release_of(value: object, plan_key: PlanKey) -> str:
    """A release of Kafka, or ""."""
    version: str = of_kind(value, str, plan_key)
    if version and not _VERSION.fullmatch(version):
        raise plan_key.wrong(f'"{version}" is not a version of Apache Kafka; write three numbers, for example "4.1.1"')
    return version


def client_of(value: object, plan_key: PlanKey) -> ClientChoice:
    """A client library, or a program that brings its own."""
    if isinstance(value, Mapping):
        return record_of(
            ClientProgram, value, plan_key, '{key} is missing; write { command = ["python3", "client.py"] }'
        )
    return _library(value, plan_key)


def _library(value: object, plan_key: PlanKey) -> ClientName:
    if value == "librdkafka":
        raise plan_key.wrong('librdkafka is used by "confluent-kafka"; write that')
    client: ClientName = of_kind(value, ClientName, plan_key)
    return client


def other_clients_of(value: object, plan_key: PlanKey) -> tuple[tuple[ClientName, str], ...]:
    """The libraries that take turns with the world's own, each with the release of the Java client, or ""."""
    words: list[str] = of_kind(value, list[str], plan_key)
    clients = []
    for number, word in enumerate(words):
        name, _, release = word.partition(":")
        here = plan_key[number]
        if release and name != JAVA:
            raise here.wrong(f'only the client java has releases to choose from; write "{name}"')
        clients.append((_library(name, here / "client"), release_of(release, here / "client_version")))
    return tuple(clients)


def change_of(value: object, plan_key: PlanKey) -> tuple[tuple[str, str], ...]:
    """The settings that nodes have after an upgrade, each with its value."""
    change = flattened(table_of(value, plan_key))
    for name in change:
        if name in _IDENTITY:
            raise plan_key.wrong(f"the harness finds nodes by {name}; change another setting")
        if name in Settings().to_mapping():
            raise plan_key.wrong(f"the promise of a run follows from {name}; write it under [settings]")
    return tuple((name, spelled(value)) for name, value in change.items())


def refuse_impossible_upgrade(world: Kafka, plan_key: PlanKey) -> None:
    """Refuse an upgrade that Kafka does not have."""
    _refuse_older(world.version, world.upgrade_to, plan_key)
    _refuse_fixed_voters(world, plan_key / "upgrade_by")


def check_upgrade(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse a world that describes an upgrade which no family of the plan performs."""
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


def _refuse_fixed_voters(world: Kafka, plan_key: PlanKey) -> None:
    if world.upgrade_by == "restart":
        return
    if world.version and _minor(world.version) < _VOTERS_SINCE:
        raise plan_key.wrong(f"controllers of {world.version} cannot leave their quorum; begin with 3.9 or later")
    if world.controllers < _VOTERS_MIN:
        raise plan_key.wrong("a controller that leaves needs others that stay; write controllers = 3")


def _minor(release: str) -> list[int]:
    return [int(part) for part in release.split(".")][:2]
