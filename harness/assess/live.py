"""Reads a cluster that runs, through its bootstrap servers. It asks, and changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from kafka.errors import UnsupportedVersionError

from checkers import counted
from harness.assess.cluster_files.evidence import (
    ClusterEvidence,
    Declared,
    Entered,
    Layer,
    ReadPartition,
    ReadValue,
    Slot,
    TopicSaid,
)
from harness.assess.cluster_files.settling import settled
from harness.assess.configuration import OF_BROKERS, OF_TOPICS, Cluster, Release, Topic
from harness.ground.progress import Progress
from harness.plan import Existing
from harness.worlds.kafka.administration import (
    Administration,
    ConfiguredValue,
    UnansweredError,
)
from harness.worlds.kafka.reaching import reached
from harness.worlds.kafka.releases import Version
from nemesis.cluster import PartitionView

#: Topics whose settings are asked for at a time.
TOPICS_A_REQUEST: Final = 500
_OF_BROKERS: Final = tuple(OF_BROKERS) + tuple(name for inherited in OF_TOPICS.values() for name in inherited.brokers)


def read_live(world: Existing, progress: Progress) -> Cluster:
    """The cluster of ``world``.

    Raises:
        NotReachableError: no server answers; the text says why of each.
        AccessError: the cluster refuses us; the text says why.
    """
    with reached(world) as administration:
        return _read(administration, world.bootstrap, progress)


def _read(administration: Administration, bootstrap: Sequence[str], progress: Progress) -> Cluster:
    racks = administration.racks()
    progress.say(f"{counted(len(racks), 'running broker')} found")
    topics = administration.topics()
    progress.say(f"{counted(len(topics), 'topic')} found")
    unread: list[str] = []
    evidence = ClusterEvidence()
    for name, partitions in topics.items():
        _put_topic(evidence.topic(name), name, partitions, evidence)
    for names in _chunks(sorted(topics)):
        _put_settings(administration, names, evidence, unread)
    brokers, releases = _put_brokers(administration, racks, evidence, unread)
    evidence.features = {
        name: ReadValue(str(level), "the cluster") for name, level in administration.features().items()
    }
    release = Release(min(releases), patch_seen=False) if releases else None
    cluster = settled(evidence, ", ".join(bootstrap), release)
    differing = dict(cluster.differing)
    if len(releases) > 1:
        differing["release"] = tuple(f"{major}.{minor}" for major, minor, *_ in sorted(releases))
    return msgspec.structs.replace(
        cluster,
        topics=tuple(_with_absent(topic, topics[topic.name], brokers) for topic in cluster.topics),
        brokers=len(brokers),
        differing=differing,
        given={},
        unread=tuple(dict.fromkeys(unread)),
    )


def _put_topic(said: TopicSaid, name: str, partitions: Sequence[PartitionView], evidence: ClusterEvidence) -> None:
    said.declared = Declared(len(partitions), 1)
    for number, each in enumerate(partitions):
        if each.replicas:
            leader = "" if each.leader is None else str(each.leader)
            evidence.put_partition(name, number, ReadPartition("the cluster", each.replicas, leader, each.isr))


def _with_absent(topic: Topic, partitions: Sequence[PartitionView], running: Collection[int]) -> Topic:
    absent = {broker for each in partitions for broker in each.replicas} - {*running}
    return msgspec.structs.replace(topic, now=msgspec.structs.replace(topic.now, absent=tuple(sorted(absent))))


def _put_settings(
    administration: Administration, names: Sequence[str], evidence: ClusterEvidence, unread: list[str]
) -> None:
    read = administration.configured("topic", names, tuple(OF_TOPICS))
    if any(not read.get(name) for name in names):
        unread.append("settings of some topics (DescribeConfigs on the topics)")
    for name, settings in read.items():
        said = evidence.topic(name)
        said.owned_whole = bool(settings)
        for setting, configured in settings.items():
            own = configured.source == "DYNAMIC_TOPIC_CONFIG"
            evidence.put(said.own if own else said.effective, Entered(setting, configured.value, name))


def _put_brokers(
    administration: Administration, running: Mapping[int, str], evidence: ClusterEvidence, unread: list[str]
) -> tuple[set[int], set[Version]]:
    """Take over the settings of the brokers that answer. These brokers, and their releases.

    A cluster counts a broker as running until the session of its process is over, which by default lasts nine seconds.

    Raises:
        UnansweredError: none answers.
    """
    brokers: set[int] = set()
    releases: set[Version] = set()
    for broker, rack in running.items():
        node = evidence.node(str(broker))
        if rack:
            evidence.put(node.layers[Layer.FILE], Entered("broker.rack", rack, f"broker {broker}"))
        try:
            release = administration.release(broker)
            settings = _of_broker(administration, broker, unread)
        except UnansweredError:
            unread.append(f"settings of broker {broker}, which is not dead for the cluster, but does not answer")
            continue
        _put_broker(settings, broker, evidence)
        brokers.add(broker)
        releases.add(release)
    if running and not brokers:
        raise UnansweredError("no broker answers")
    return brokers, releases


def _put_broker(settings: Mapping[str, ConfiguredValue], broker: int, evidence: ClusterEvidence) -> None:
    """Take over the settings of one broker by their sources.

    A value of the whole cluster may be known to some brokers only: then it is theirs.
    """
    node = evidence.node(str(broker))
    node.whole = bool(settings)
    for name, (value, source) in settings.items():
        written = Entered(name, value, f"broker {broker}")
        if source == "DEFAULT_CONFIG":
            evidence.put_default(node, written)
        elif source == "DYNAMIC_DEFAULT_BROKER_CONFIG" and _agrees(evidence.of_all.get(name), value):
            evidence.put(evidence.of_all, written)
        else:
            layer = Layer.DYNAMIC if source.startswith("DYNAMIC") else Layer.RUNNING
            evidence.put(node.layers[layer], written)


def _agrees(slot: Slot | None, value: str) -> bool:
    return slot is None or (isinstance(slot, ReadValue) and slot.value == value)


def _of_broker(administration: Administration, broker: int, unread: list[str]) -> dict[str, ConfiguredValue]:
    """The settings of one broker; empty where they cannot be read."""
    try:
        read = administration.configured("broker", [str(broker)], _OF_BROKERS)
    except UnsupportedVersionError:
        read = {}
    own = read.get(str(broker), {})
    if not own:
        unread.append("settings of brokers (DescribeConfigs on the cluster)")
    return own


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(names), TOPICS_A_REQUEST):
        yield names[begin : begin + TOPICS_A_REQUEST]
