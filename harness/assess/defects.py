"""Finds the defects of Kafka and its clients that a release has, and whose conditions a configuration meets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from harness.assess.client_settings import effective, version_of
from harness.assess.configuration import Client, Cluster, Release
from harness.assess.grouping import TopicGroup
from harness.assess.rules_in_force import acting_release, ends_safely, has_sequences, keeper_of, offsets_have_times
from harness.ground.known_defects import Defect, Need, every_defect
from harness.worlds.kafka.releases import Version

#: The patch of a release where only its line is known.
_ANY_PATCH = 999


class Applied(NamedTuple):
    """A defect that applies. ``sure`` is false where only the line of a release is known, and its patch decides.

    ``since`` is the first release without it, empty where none is.
    """

    defect: Defect
    sure: bool
    since: str


def defects_of(cluster: Cluster, clients: Sequence[Client], met: Collection[Need]) -> Iterator[Applied]:
    """The defects of the release and of these clients whose needs are ``met``."""
    for defect in every_defect():
        if not set(defect.needs) <= set(met):
            continue
        releases = _releases(defect, cluster, clients)
        applied = [each for release in releases if (each := _applied(defect, release)) is not None]
        if applied:
            yield max(applied, key=lambda each: each.sure)


def needs_met(group: TopicGroup, cluster: Cluster, producer: Client, consumers: Sequence[Client]) -> frozenset[Need]:
    """The conditions of defects that hold of a group and its clients."""
    values = effective(producer)
    reading = [effective(consumer) for consumer in consumers]
    transactions = "transactional.id" in values
    conditions: dict[Need, bool] = {
        "acks-all": values["acks"] == "all",
        "compaction": group.compacted,
        "consumers": bool(reading),
        "end-of-partition": any(each.get("enable.partition.eof") == "true" for each in reading),
        "groups": any("group.id" in each for each in reading),
        "idempotence": values["enable.idempotence"] == "true",
        "kraft": keeper_of(cluster) == "kraft",
        "no-idempotence": values["enable.idempotence"] != "true",
        "new-protocol": any(each["group.protocol"] == "consumer" for each in reading),
        "offsets-with-times": offsets_have_times(cluster),
        "old-message-format": not has_sequences(cluster, group),
        "one-in-flight": values["max.in.flight.requests.per.connection"] == "1",
        "old-transactions": transactions and not ends_safely(cluster, producer),
        "replicated": group.replicas > 1,
        "several-directories": "," in cluster.settings.get("log.dirs", ""),
        "several-in-flight": values["max.in.flight.requests.per.connection"] != "1",
        "share-groups": any("share.acknowledgement.mode" in each for each in reading),
        "streams-groups": any(each["group.protocol"] == "streams" for each in reading),
        "tiered-storage": cluster.broker_setting("remote.log.storage.system.enable").lower() == "true",
        "transactions": transactions,
        "unclean-election": group.settings["unclean.leader.election.enable"].lower() == "true",
    }
    return frozenset(need for need, met in conditions.items() if met)


def _releases(defect: Defect, cluster: Cluster, clients: Sequence[Client]) -> Iterator[Release | None]:
    """The releases of what has the defect; None where one is not known."""
    if defect.of == "kafka":
        yield acting_release(cluster) if defect.by == "protocol" else cluster.release
        return
    for client in clients:
        if client.library == defect.of:
            version = version_of(client)
            yield None if version is None else Release(version)


def _applied(defect: Defect, release: Release | None) -> Applied | None:
    """The defect where a release has it. Of one that is not known only defects apply that no release is without."""
    for first, since in defect.affected:
        if release is None:
            if not since:
                return Applied(defect, sure=False, since="")
            continue
        low, high = parsed(first), parsed(since) if since else None
        last = release.version if release.patch_seen else release.version._replace(patch=_ANY_PATCH)
        if last >= low and (high is None or release.version < high):
            sure = release.version >= low and (high is None or last < high)
            return Applied(defect, sure=sure, since=since)
    return None


def parsed(text: str) -> Version:
    """A release as the file of known defects has it."""
    return Version(*[int(part) for part in text.split(".")])
