"""Says what an assessment leaves out, so that no one takes silence for an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from harness.assess.broker_risks import unset_directories
from harness.assess.client_settings import version_of
from harness.assess.configuration import Client, Cluster, Release
from harness.assess.defects import parsed
from harness.assess.internal_topics import of_internal
from harness.assess.rules_in_force import assumptions
from harness.assess.setting_names import KIND_OF, Kind, names_of_kafka, nearest, newest, strange_to_kafka
from harness.broker.core.types import OFFSETS_TOPIC
from harness.ground.errors import PlanError
from harness.ground.known_defects import Library, looked_at
from harness.worlds.kafka.releases import DEFAULT_VERSION, Version, parse_version


def limits_of(
    cluster: Cluster, producers: Sequence[Client], consumers: Sequence[Client], *, measured: bool = False
) -> Iterator[str]:
    """The limits of an answer about this cluster with these clients; ``measured``: it has figures of prices."""
    yield (
        "Stories are performed in virtual time on the reference broker, with one log partition and a "
        "broker for each replica; real Kafka was not run."
    )
    yield "Not judged: tiered storage, mirrors, applications, and all else that no story, defect or rule here is about."
    if measured:
        yield (
            "Measured prices are of three brokers on one machine of few processors, without a fault, far from what it "
            "can take: compare a figure with the one beside it, not with those of your cluster (results/reference). "
            "A price without a figure was not measured."
        )
    yield from _of_defects(cluster, [*producers, *consumers])
    yield from _of_release(cluster)
    yield from assumptions(cluster, producers)
    yield from _of_names(cluster)
    if cluster.settings.get("process.roles") == "broker" and not cluster.controllers:
        yield (
            "No server.properties of a controller was read. The controllers decide by their own file whether a replica "
            "out of sync may lead: it is taken that it says what the brokers' files say."
        )
    yield from _of_clients(producers, consumers, {topic.name for topic in cluster.topics})
    for risk in of_internal(cluster, producers, consumers, used=False):
        yield f"It is not known whether this is in use: {risk.sentence}. Change: {risk.change}."
    if unset_directories(cluster):
        yield (
            "No log.dirs is in the files of the brokers. If nothing else sets it, it is Kafka's default, "
            "/tmp/kafka-logs, which a reboot may empty."
        )
    if all(topic.racks is None for topic in cluster.topics):
        yield "Racks are not known."
    for what in cluster.unread:
        yield f"Not read, so those of other brokers, or Kafka's defaults, are taken: {what}."


def require_known(release: Release | None) -> None:
    """Refuse a release that is older than all that is known here.

    Raises:
        PlanError: it is older than every release that has a defect or rules here.
    """
    oldest = parsed(looked_at()["kafka"][0])
    if release is not None and release.version < oldest:
        raise PlanError(
            f"nothing is known here of Apache Kafka {release.words}: the oldest release with rules and defects is "
            f"{oldest}; correct --release"
        )


def _of_defects(cluster: Cluster, clients: Sequence[Client]) -> Iterator[str]:
    """The releases for which defects were looked for, and those asked about for which they were not."""
    asked: set[tuple[str, Version | None, str]] = {
        (client.library, version_of(client), client.version) for client in clients
    }
    if cluster.release is not None:
        asked.add(("kafka", cluster.release.version, cluster.release.words))
    lists = {of: looked_at()[of] for of in dict.fromkeys(("kafka", *(client.library for client in clients)))}
    names = {"kafka": "Apache Kafka", "java": "Kafka's own client"}
    looked = ", ".join(f"{names.get(of, of)} {oldest} to {newest}" for of, (oldest, newest) in lists.items())
    yield f"Known defects were looked for in {looked}."
    for of, version, words in sorted(asked, key=str):
        oldest, newest = map(parsed, lists[of])
        if version is not None and not oldest <= version <= newest:
            yield f"{names.get(of, of)} {words} is not one of them: that few defects are named, or none, says nothing."


def _of_release(cluster: Cluster) -> Iterator[str]:
    if cluster.release is not None and cluster.release.version > parse_version(DEFAULT_VERSION):
        yield (
            f"Apache Kafka {cluster.release.words} is newer than all that is known here: it is judged as "
            f"{DEFAULT_VERSION}, without what was added or mended since."
        )
    if cluster.release is None:
        yield (
            "The release is not known: the newest rules are used, and only defects of every release are named; "
            "name it with --release."
        )
    elif not cluster.release.patch_seen:
        yield f"Brokers report {cluster.release.words} without the patch number; name the release with --release."
    if releases := cluster.differing.get("release"):
        yield f"Brokers run several releases ({', '.join(releases)}); the oldest is assessed."


def _of_names(cluster: Cluster) -> Iterator[str]:
    """Settings of files that no broker or topic has, or none of this release."""
    kinds: tuple[Kind, ...] = ("broker", "topic")
    for kind in kinds:
        given = cluster.given.get(kind, ())
        if strange := [name for name in given if strange_to_kafka(name, kind)]:
            yield f"No {kind} is known to have these settings, so they are not judged: {_near(strange, kind)}."
        if cluster.release is not None:
            here = names_of_kafka(kind, cluster.release.version)
            if elsewhere := sorted(names_of_kafka(kind).intersection(given) - here):
                yield (
                    f"A {kind} of Apache Kafka {cluster.release.words} does not have these settings, which other "
                    f"releases have: {', '.join(elsewhere)}."
                )


def _near(names: Sequence[str], kind: Kind, library: Library | None = None) -> str:
    """The names, each with the nearest that exists."""
    near = {name: nearest(name, kind, library) for name in names}
    return ", ".join(f"{name} ({near[name]}?)" if near[name] else name for name in names)


def _of_releases(clients: Sequence[Client]) -> Iterator[str]:
    """Releases of clients that are older or newer than all that is known of their library."""
    for client in {(client.library, client.version): client for client in clients}.values():
        library, version = client.library, version_of(client)
        oldest = parsed(looked_at()[library][0])
        if version is not None and not oldest <= version <= newest(library):
            taken = (
                "is judged as the newest, without what was added or mended since"
                if version > newest(library)
                else "has the settings and defects named here, and may have others"
            )
            releases = f"{oldest} to {newest(library)}"
            yield f"Releases {releases} of {library} are known here: {client.version} {taken}."


def _of_clients(producers: Sequence[Client], consumers: Sequence[Client], topics: Collection[str]) -> Iterator[str]:
    if any(producer.assumed for producer in producers):
        yield "No producer was named: the defaults of Kafka's own client are assumed; name one with --producer."
    if not all(client.version for client in (*producers, *consumers)):
        yield (
            "The release of a client is not known: only defects of every release are named; "
            "write, for example, --client java:3.9.1."
        )
    yield from _of_releases([*producers, *consumers])
    for option, clients in (("--producer", producers), ("--consumer", consumers)):
        yield from (_strange(client, option) for client in clients if client.strange)
    if not consumers:
        yield "No consumer was named, so nothing is said of groups; name one with --consumer."
    grouped = any("group.id" in consumer.settings for consumer in consumers)
    if grouped and OFFSETS_TOPIC not in topics:
        yield f"{OFFSETS_TOPIC} is not among the topics, so no story of groups was performed."
    if not any("transactional.id" in producer.settings for producer in producers):
        yield "No producer has a transactional.id, so nothing is said of transactions."


def _strange(client: Client, option: str) -> str:
    kind = KIND_OF[option]
    return (
        f"{client.name} has settings that no {kind} of {client.library} is known to have, so they are not judged: "
        f"{_near(client.strange, kind, client.library)}."
    )
