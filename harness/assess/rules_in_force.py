"""The rules of replication that a cluster has: those of its release, KRaft or ZooKeeper, protocol, formats, features.

A release brings rules, and several wait for something else: a controller of KRaft (KAFKA-12670), the protocol between
brokers and the format of messages, which an operator raises after an upgrade (KIP-101, KIP-279, KIP-320), and levels of
features, which no upgrade raises (KIP-584, KAFKA-18979). Where no file tells one of these, it is taken as it keeps
least; a protocol that is not set is the release's own. :func:`assumptions` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harness.assess.client_settings import version_of
from harness.assess.configuration import Client, Cluster, Release
from harness.assess.grouping import TopicGroup
from harness.plan import UNCLEAN_IN_KRAFT_SINCE, ModeName
from harness.worlds.kafka.properties import RULES_SINCE
from harness.worlds.kafka.releases import ELR_SINCE, TRANSACTIONS_2_SINCE, ZOOKEEPER_GONE_SINCE, Version
from harness.worlds.kafka.zookeeper import own_truncation
from workloads import PRESETS

#: The feature that makes a replica eligible that left a small ISR (KIP-966).
ELR_FEATURE: Final = "eligible.leader.replicas.version"
#: The feature with which each transaction has a producer epoch of its own (KIP-890).
TRANSACTIONS_FEATURE: Final = "transaction.version"
#: The feature of KRaft itself; where its level is known all levels are, and a feature without one is at 0.
METADATA_FEATURE: Final = "metadata.version"
#: Its level from which on a fetch carries the epoch of its broker (3.5-IV1, KIP-903).
_BROKER_EPOCHS_LEVEL: Final = 10
#: The Java client that ends transactions in the new way.
_NEW_ENDS: Final = Version(4, 0, 0)
#: The first release that starts without ZooKeeper at all.
_KRAFT_EXISTS_SINCE: Final = Version(2, 8, 0)
#: The format of messages that has leader epochs and sequence numbers (KIP-98, KIP-101).
_EPOCHS_IN_FORMAT: Final = Version(0, 11, 0)
#: The protocol from which on the format is the newest, whatever is set (KIP-724).
_FORMAT_IGNORED_SINCE: Final = Version(3, 0, 0)
#: The protocol from which on a committed offset is kept in a form without a time (KIP-211).
_OFFSETS_WITHOUT_TIME: Final = Version(2, 1, 0)
_PROTOCOL: Final = "inter.broker.protocol.version"
_FORMAT: Final = "message.format.version"
_BOTH: Final = "brokers have process.roles and zookeeper.connect, as in a migration"
_NEITHER: Final = "no server.properties with process.roles or zookeeper.connect was read"
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.\d+)?(?:-IV\d+)?")
#: Eras with the release from which on each holds, newest first.
_ERAS: Final = sorted(
    ((Version(*[int(part) for part in (*era.split("."), "0")[:3]]), era) for era in PRESETS if era[0].isdigit()),
    reverse=True,
)


def era_of(version: Version) -> str:
    """The rules of replication that a release has: those of the newest era that is not newer."""
    return next((era for since, era in _ERAS if since <= version), _ERAS[-1][1])


def keeper_of(cluster: Cluster) -> ModeName | None:
    """The keeper of the metadata, from the release where it decides, else from settings of brokers; None: not known.

    While a cluster is migrated brokers have the settings of both.
    """
    version = cluster.release.version if cluster.release else None
    if version is not None and not _KRAFT_EXISTS_SINCE <= version < ZOOKEEPER_GONE_SINCE:
        return "kraft" if version >= ZOOKEEPER_GONE_SINCE else "zookeeper"
    roles = bool(_setting(cluster, "process.roles")) or METADATA_FEATURE in cluster.features
    if roles == bool(_setting(cluster, "zookeeper.connect")):
        return None
    return "kraft" if roles else "zookeeper"


def protocol_of(cluster: Cluster) -> Version | None:
    """The oldest protocol that brokers are set to speak with each other; None where none is set, or understood."""
    texts = (_setting(cluster, _PROTOCOL), *cluster.differing.get(_PROTOCOL, ()))
    return min(filter(None, map(_version, texts)), default=None)


def level_of(cluster: Cluster, feature: str) -> int | None:
    """The level of a feature; None where it is not known."""
    if feature in cluster.features:
        return cluster.features[feature]
    return 0 if METADATA_FEATURE in cluster.features else None


def rules_of(cluster: Cluster, group: TopicGroup) -> dict[str, object]:
    """The rules under which stories of the group are performed: an era, and what differs from it, under their names."""
    version = cluster.release.version if cluster.release else None
    rules: dict[str, object] = {} if version is None else {"era": era_of(version)}
    keeper = keeper_of(cluster)
    if keeper == "kraft":
        return rules | _with_kraft(cluster, version)
    if keeper is None and version is None:
        return rules
    return rules | {"broker.epochs": False, "unclean.elections": True} | _spoken(cluster, group)


def has_sequences(cluster: Cluster, group: TopicGroup) -> bool:
    """True if messages have the numbers of their producers, so that a batch is known again (KIP-98)."""
    own = cluster.release.version if cluster.release else None
    acting = min(filter(None, (own, _spoken_version(cluster, group.settings.get(_FORMAT, "")))), default=None)
    return keeper_of(cluster) == "kraft" or acting is None or acting >= _EPOCHS_IN_FORMAT


def acting_release(cluster: Cluster) -> Release | None:
    """The release by whose rules brokers replicate: their own, or an older one whose protocol or messages they have."""
    spoken = _spoken_version(cluster, _setting(cluster, f"log.{_FORMAT}"))
    if spoken is None or keeper_of(cluster) == "kraft":
        return cluster.release
    return min(filter(None, (cluster.release, Release(spoken))))


def offsets_have_times(cluster: Cluster) -> bool:
    """True if brokers may keep committed offsets in the old form, with a time: their protocol is before 2.1."""
    spoken = protocol_of(cluster)
    if keeper_of(cluster) == "kraft" or (spoken is None and _file_seen(cluster)):
        return False
    return spoken is None or spoken < _OFFSETS_WITHOUT_TIME


def ends_safely(cluster: Cluster, producer: Client) -> bool:
    """True if each transaction is known to have a producer epoch of its own: brokers and client know how (KIP-890)."""
    version = version_of(producer)
    new = producer.library == "java" and (version is None or version >= _NEW_ENDS)
    return new and (level_of(cluster, TRANSACTIONS_FEATURE) or 0) >= 2


def assumptions(cluster: Cluster, producers: Sequence[Client]) -> Iterator[str]:
    """Sentences about what decides a rule, and was not known, so that it was assumed."""
    version, keeper = cluster.release.version if cluster.release else None, keeper_of(cluster)
    if version is None:
        return
    if keeper is None:
        both = _setting(cluster, "process.roles") and _setting(cluster, "zookeeper.connect")
        yield (
            f"It is not known whether KRaft or ZooKeeper keeps the metadata: {_BOTH if both else _NEITHER}. The rules "
            "with ZooKeeper are taken, which keep less."
        )
    if keeper == "kraft" and (names := _levels_not_known(cluster, version, producers)):
        yield (
            f"The level of {' and of '.join(names)} is not known: it is taken as not raised, as after an upgrade "
            "(KAFKA-18979), so stories are shown that a raised one prevents; `kafka-features.sh describe` prints it."
        )
    if keeper != "kraft" and not _file_seen(cluster):
        yield (
            f"{_PROTOCOL} and log.{_FORMAT} are not known: those of the release are taken, as where an upgrade was "
            "finished; add a server.properties."
        )


def _levels_not_known(cluster: Cluster, version: Version, producers: Sequence[Client]) -> list[str]:
    transactions = any("transactional.id" in producer.settings for producer in producers)
    asked = {
        ELR_FEATURE: version >= ELR_SINCE,
        METADATA_FEATURE: version >= RULES_SINCE["broker.epochs"] and not level_of(cluster, ELR_FEATURE),
        TRANSACTIONS_FEATURE: version >= TRANSACTIONS_2_SINCE and transactions,
    }
    return [name for name, matters in asked.items() if matters and level_of(cluster, name) is None]


def _with_kraft(cluster: Cluster, version: Version | None) -> dict[str, object]:
    """The rules of KRaft's; of a release that is not known the newest, as far as levels of features do not differ."""
    eligible, metadata = level_of(cluster, ELR_FEATURE), level_of(cluster, METADATA_FEATURE)
    if version is None:
        epochs = metadata is None or metadata >= _BROKER_EPOCHS_LEVEL
        return {"eligible.leader.replicas": bool(eligible), "broker.epochs": epochs}
    # Eligible leader replicas need a later level of metadata than epochs of brokers do.
    raised = bool(eligible) or (metadata or 0) >= _BROKER_EPOCHS_LEVEL
    return {
        "unclean.elections": version >= UNCLEAN_IN_KRAFT_SINCE,
        "broker.epochs": version >= RULES_SINCE["broker.epochs"] and raised,
        "eligible.leader.replicas": version >= ELR_SINCE and bool(eligible),
    }


def _spoken(cluster: Cluster, group: TopicGroup) -> dict[str, object]:
    """The rules that go by what brokers speak, and by the format of messages, where these are older than the release.

    Without leader epochs in messages a follower cuts its log at the high watermark.
    """
    spoken = _spoken_version(cluster, group.settings.get(_FORMAT, ""))
    own = cluster.release.version if cluster.release else None
    if spoken is None or (own is not None and spoken >= own):
        return {}
    return {"truncation": own_truncation(spoken), "fetch.fencing": spoken >= RULES_SINCE["fetch.fencing"]}


def _spoken_version(cluster: Cluster, message_format: str) -> Version | None:
    """The older of protocol and format, as far as it decides; None where both are the release's own."""
    protocol, written = protocol_of(cluster), _version(message_format)
    speaks = protocol or (cluster.release.version if cluster.release else None)
    if written is None or written >= _EPOCHS_IN_FORMAT or (speaks is not None and speaks >= _FORMAT_IGNORED_SINCE):
        return protocol
    return written


def _file_seen(cluster: Cluster) -> bool:
    """True if a whole file of a broker was read, in which a protocol that is not named is the release's own."""
    return any(_setting(cluster, name) for name in ("process.roles", "zookeeper.connect", _PROTOCOL))


def _setting(cluster: Cluster, name: str) -> str:
    value = cluster.settings.get(name, "")
    return "" if value == "null" else value


def _version(text: str) -> Version | None:
    """The release whose protocol or format a setting names, such as 0.10.2 or 2.3-IV1; None where it names none."""
    match = _NUMBERS.fullmatch(text.strip())
    return Version(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None
