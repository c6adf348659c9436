"""Says what an assessment leaves out, so that no one takes silence for an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers import counted
from harness.assess.client_names import nearest
from harness.assess.configuration import Client, Cluster, Release
from harness.assess.defects import parsed
from harness.assess.grouping import whole
from harness.assess.risks import of_internal
from harness.errors import PlanError
from harness.known_defects import every_defect
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version

#: Names of topics in one sentence.
NAMES_MAX: Final = 3


def limits_of(cluster: Cluster, producers: Sequence[Client], consumers: Sequence[Client]) -> Iterator[str]:
    """The limits of an answer about this cluster with these clients; the state of the cluster comes first."""
    yield from _of_now(cluster)
    yield (
        "Stories are performed in virtual time on the reference broker, with one log partition and a "
        "broker for each replica; real Kafka was not run."
    )
    yield "What no story, defect or rule here is about, this says nothing of: tiered storage, mirrors, applications."
    yield from _of_release(cluster)
    yield from _of_clients(producers, consumers)
    for risk in of_internal(cluster, producers, consumers, used=False):
        yield f"It is not known whether this is in use: {risk.sentence}. Change: {risk.change}."
    if all(topic.racks is None for topic in cluster.topics):
        yield "Racks are not known."
    for what in cluster.unread:
        yield f"Not read, so Kafka's defaults are taken: {what}."


def _of_now(cluster: Cluster) -> Iterator[str]:
    """The state at this moment, which no setting tells."""
    refusing = [
        topic.name
        for topic in cluster.topics
        if topic.now.in_sync is not None
        and topic.now.in_sync < min(whole(cluster.setting_of(topic, "min.insync.replicas"), 1), topic.replicas)
    ]
    leaderless = {topic.name: topic.now.leaderless for topic in cluster.topics if topic.now.leaderless}
    behind = {topic.name: topic.now.behind for topic in cluster.topics if topic.now.behind}
    partitions = "log partition"
    lacking = [
        f"{things} {what} ({_first(names)})"
        for names, things, what in (
            ([*leaderless], counted(sum(leaderless.values()), partitions), "without a leader"),
            ([*behind], counted(sum(behind.values()), partitions), "with fewer replicas in sync than there are"),
            (refusing, counted(len(refusing), "topic"), "with fewer in sync than min.insync.replicas"),
        )
        if names
    ]
    if lacking:
        yield (
            f"The cluster was not whole when this was read: {', '.join(lacking)}. What is said here is of "
            "settings only; mend that first."
        )


def _first(names: Sequence[str]) -> str:
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more:,} more" if more > 0 else "")


def require_known(release: Release | None) -> None:
    """Refuse a release that is older than all that is known here.

    Raises:
        PlanError: it is older than every release that has a defect or rules here.
    """
    oldest = min(parsed(first) for defect in every_defect() if defect.of == "kafka" for first, _ in defect.affected)
    if release is not None and release.version < oldest:
        raise PlanError(
            f"nothing is known here of Apache Kafka {release.words}: the oldest release with rules and defects is "
            f"{oldest}; correct --release"
        )


def _of_release(cluster: Cluster) -> Iterator[str]:
    newest = parse_version(DEFAULT_VERSION)
    if cluster.release is not None and cluster.release.version > newest:
        yield (
            f"Nothing newer than Apache Kafka {newest} is known here: {cluster.release.words} is taken for it, and "
            "nothing is said of what is new or mended since."
        )
    if cluster.release is None:
        yield (
            "The release is not known, so the newest rules are taken, and only defects that no release is without; "
            "name it with --release."
        )
    elif not cluster.release.patch_seen:
        yield f"Brokers tell their line ({cluster.release.words}), not their patch; name it with --release."
    if releases := cluster.differing.get("release"):
        yield f"Brokers are of several releases ({', '.join(releases)}); the oldest is assessed."


def _of_clients(producers: Sequence[Client], consumers: Sequence[Client]) -> Iterator[str]:
    if any(producer.assumed for producer in producers):
        yield "No producer was named: the defaults of Kafka's own client are assumed; name one with --producer."
    if not all(client.version for client in (*producers, *consumers)):
        yield (
            "The release of a client is not known, so of its defects only those are named that no release is without; "
            "write, for example, --client java:3.9.1."
        )
    for option, clients in (("--producer", producers), ("--consumer", consumers)):
        yield from (_strange(client, option) for client in clients if client.strange)
    if not consumers:
        yield "No consumer was named, so nothing is said of groups; name one with --consumer."
    if not any("transactional.id" in producer.settings for producer in producers):
        yield "No producer has a transactional.id, so nothing is said of transactions."


def _strange(client: Client, option: str) -> str:
    near = {name: nearest(name, option) for name in client.strange}
    names = ", ".join(f"{name} ({near[name]}?)" if near[name] else name for name in client.strange)
    return (
        f"{client.name} has settings that no {option.removeprefix('--')} is known to have; nothing is said of them: "
        f"{names}."
    )
