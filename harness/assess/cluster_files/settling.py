"""Makes the cluster of what files say: brokers and controllers, what each of them decides, and the topics.

The order of the files decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.assess.cluster_files.evidence import ClusterEvidence, ClusterNode, ReadValue, TopicSaid
from harness.assess.cluster_files.nodes import Chosen, ClusterNodes
from harness.assess.cluster_files.topics import IN_SYNC, UNCLEAN, Inheritance, topic_of
from harness.assess.cluster_files.worst import worst_first
from harness.assess.configuration import OF_BROKERS, OF_TOPICS, Cluster, NotUnderstood, Release
from harness.assess.rules_in_force import ELR_FEATURE, METADATA_FEATURE
from harness.worlds.kafka.releases import Version

#: Settings by which the controller decides, from its own file alone.
_OF_CONTROLLERS: Final = ("unclean.leader.election.interval.ms", "broker.session.timeout.ms")
#: Settings that differ from broker to broker by right.
_DIRECTORIES: Final = ("log.dirs", "log.dir", "metadata.log.dir")
_SERVERS: Final = ("zookeeper.connect", "controller.quorum.voters")
_OF_EACH: Final = ("broker.rack", "process.roles", *_DIRECTORIES, *_SERVERS)
_NAMED_MAX: Final = 3
#: From this release on unclean elections of KRaft ask a setting (KAFKA-12670), and new clusters have the feature of
#: eligible replicas (KIP-966).
_ASKS_SINCE: Final = Version(3, 9, 0)
_ELIGIBLE_SINCE: Final = Version(4, 1, 0)


def settled(evidence: ClusterEvidence, source: str, release: Release | None) -> Cluster:
    """The cluster that the evidence is of, whose brokers are of this release."""
    placed = {name: said for name, said in evidence.topics.items() if said.partitions or said.declared}
    numbers = {
        broker for said in placed.values() for partition in said.partitions.values() for broker in partition.replicas
    }
    nodes = ClusterNodes(evidence, numbers)
    features = {name: int(said.value) for name, said in sorted(evidence.features.items())}
    of_topics = {name: nodes.topics_inherit(name, nodes.brokers.values()) for name in OF_TOPICS}
    if not nodes.apart:
        of_topics[UNCLEAN] = nodes.topics_inherit(UNCLEAN, nodes.deciding.values())
    inheritance = Inheritance(of_topics, _of_controllers(nodes, features, release))
    of_brokers = dict(_of_brokers(nodes))
    every = {**_by_brokers(of_topics), **of_brokers}
    racks = {int(name): rack for name, rack in _values(nodes, nodes.brokers, "broker.rack") if name.isdigit()}
    default = of_brokers["default.replication.factor"].value or OF_BROKERS["default.replication.factor"]
    return Cluster(
        source=source,
        topics=tuple(topic_of(name, said, inheritance, racks, int(default)) for name, said in sorted(placed.items())),
        brokers=max(len(nodes.brokers), evidence.brokers_declared),
        settings={name: each.value for name, each in every.items() if each.value is not None} | _of_each(nodes),
        controllers=_settings_of(nodes, nodes.controllers),
        differing={name: each.differing for name, each in (of_topics | of_brokers).items() if each.differing}
        | {name: tuple(each) for name in _DIRECTORIES if len(each := _directories(nodes, name)) > 1},
        features=features,
        release=release,
        unread=tuple(_unread(placed)),
        given={kind: tuple(sorted(names)) for kind, names in evidence.given.items() if names},
        not_understood=tuple(sorted(_unclear(evidence, nodes, of_brokers), key=lambda each: each.words)),
    )


def _unread(placed: Mapping[str, TopicSaid]) -> Iterator[str]:
    """The topics whose replicas are in files, and whose settings are not."""
    without = [
        name
        for name, said in sorted(placed.items())
        if said.declared is None and not (said.owned_whole or said.own or said.effective or said.listed)
    ]
    if without:
        more = f" and {len(without) - _NAMED_MAX} more" if without[_NAMED_MAX:] else ""
        yield f"the topics' own settings of {', '.join(without[:_NAMED_MAX])}{more}"


def _of_controllers(nodes: ClusterNodes, features: Mapping[str, int], release: Release | None) -> dict[str, Chosen]:
    """Settings by which the controllers decide, where some brokers are no controllers."""
    if not nodes.apart:
        return {}
    controllers = {UNCLEAN: nodes.topics_inherit(UNCLEAN, nodes.deciding.values())}
    if not nodes.deciding and UNCLEAN in nodes.of_all:
        controllers[UNCLEAN] = nodes.topics_inherit(UNCLEAN, [ClusterNode()])
    eligible = features.get(ELR_FEATURE, 0 if METADATA_FEATURE in features else None)
    may_be = eligible > 0 if eligible is not None else release is None or release.version >= _ELIGIBLE_SINCE
    if may_be and IN_SYNC not in nodes.of_all:
        controllers[IN_SYNC] = nodes.topics_inherit(IN_SYNC, nodes.deciding.values())
    if release is not None and release.version < _ASKS_SINCE:
        del controllers[UNCLEAN]
    return controllers


def _of_brokers(nodes: ClusterNodes) -> Iterator[tuple[str, Chosen]]:
    for name, default in OF_BROKERS.items():
        if name not in _OF_EACH:
            who = nodes.deciding if name in _OF_CONTROLLERS and nodes.deciding else nodes.brokers
            yield name, nodes.brokers_have(name, default, who.values())


def _by_brokers(of_topics: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """Settings that topics inherit, under the broker's name that has the topic's unit."""
    return {next(iter(OF_TOPICS[name].brokers)): each for name, each in of_topics.items()}


def _of_each(nodes: ClusterNodes) -> dict[str, str]:
    """The settings that every broker has its own of: directories of the worst, roles together, any ZooKeeper."""
    settings: dict[str, str] = {}
    for name in _DIRECTORIES:
        if directories := _directories(nodes, name):
            several = max(directories, key=lambda each: each.count(","))
            both = directories[0].split(",") + (several.split(",") if "," in several else [])
            settings[name] = ",".join(dict.fromkeys(both))
    roles = {role for _, value in _values(nodes, nodes.brokers, "process.roles") for role in value.split(",")}
    roles |= {"broker"} if nodes.controllers else set()
    if roles:
        settings["process.roles"] = ",".join(sorted(roles))
    for name in _SERVERS:
        if servers := {value for _, value in _values(nodes, nodes.brokers, name)}:
            settings[name] = min(servers)
    return settings


def _directories(nodes: ClusterNodes, name: str) -> list[str]:
    return worst_first(name, (value for _, value in _values(nodes, nodes.brokers, name)))


def _values(nodes: ClusterNodes, some: Mapping[str, ClusterNode], name: str) -> Iterator[tuple[str, str]]:
    yield from ((number, slot.value) for number, slot in nodes.said(some, name) if isinstance(slot, ReadValue))


def _settings_of(nodes: ClusterNodes, some: Mapping[str, ClusterNode]) -> dict[str, str]:
    """The settings of nodes that are controllers only, the worst where they differ."""
    names = sorted({*OF_BROKERS, *(name for each in OF_TOPICS.values() for name in each.brokers)})
    have = {name: [value for _, value in _values(nodes, some, name)] for name in names}
    return {name: worst_first(name, values)[0] for name, values in have.items() if values}


def _unclear(evidence: ClusterEvidence, nodes: ClusterNodes, of_brokers: Mapping[str, Chosen]) -> set[NotUnderstood]:
    """Everything of the cluster that was not understood; settings that topics inherit are said of those that do."""
    some = nodes.brokers | nodes.deciding
    own = {slot for name in _OF_EACH for _, slot in nodes.said(some, name) if isinstance(slot, NotUnderstood)}
    return {*evidence.not_understood, *own, *(each for chosen in of_brokers.values() for each in chosen.unclear)}
