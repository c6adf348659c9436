"""The configuration that is assessed: topics, the cluster around them, and its clients. Data, wherever it came from.

Values are texts under Kafka's own names, as its tools print them. Only names of :data:`DECISIVE` are kept: nothing of a
configuration that has secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from harness.ground.known_defects import Library
from harness.worlds.kafka.releases import Version


class Inherited(NamedTuple):
    """A topic's setting: the brokers' settings from which it inherits, with the unit of each, and its default."""

    brokers: Mapping[str, int]
    default: str


_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
#: The settings of a topic that decide something here.
OF_TOPICS: Final[Mapping[str, Inherited]] = {
    "min.insync.replicas": Inherited({"min.insync.replicas": 1}, "1"),
    "unclean.leader.election.enable": Inherited({"unclean.leader.election.enable": 1}, "false"),
    "flush.messages": Inherited({"log.flush.interval.messages": 1}, str(2**63 - 1)),
    "cleanup.policy": Inherited({"log.cleanup.policy": 1}, "delete"),
    "retention.ms": Inherited(
        {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": _HOUR_MS}, str(7 * _DAY_MS)
    ),
    "delete.retention.ms": Inherited({"log.cleaner.delete.retention.ms": 1}, str(_DAY_MS)),
    "retention.bytes": Inherited({"log.retention.bytes": 1}, "-1"),
    "flush.ms": Inherited({"log.flush.interval.ms": 1}, str(2**63 - 1)),
    "message.format.version": Inherited({"log.message.format.version": 1}, ""),
}
#: Settings of brokers that decide something of every topic, with Kafka's defaults.
OF_BROKERS: Final[Mapping[str, str]] = {
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "1000",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "unclean.leader.election.interval.ms": "300000",
    "auto.create.topics.enable": "true",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.partition.verification.enable": "true",
    "offsets.retention.minutes": "10080",
    "inter.broker.protocol.version": "",
    "log.dirs": "",
    "log.dir": "/tmp/kafka-logs",  # noqa: S108 - the default of Kafka
    "metadata.log.dir": "",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "offsets.commit.required.acks": "-1",
    "controlled.shutdown.enable": "true",
    "producer.id.expiration.ms": str(_DAY_MS),
    "controller.quorum.voters": "",
    "remote.log.storage.system.enable": "false",
    "process.roles": "",
    "zookeeper.connect": "",
    "replica.selector.class": "",
    "broker.rack": "",
}
#: Defaults before a release, of topics and of brokers (KIP-106, KIP-186, KIP-537).
_BEFORE: Final[Mapping[str, tuple[Version, str]]] = {
    "unclean.leader.election.enable": (Version(0, 11, 0), "true"),
    "replica.lag.time.max.ms": (Version(2, 5, 0), "10000"),
    "offsets.retention.minutes": (Version(2, 0, 0), "1440"),
}
#: The settings of clients.
OF_CLIENTS: Final = frozenset(
    {
        "acks", "enable.idempotence", "retries", "max.in.flight.requests.per.connection", "request.timeout.ms",
        "delivery.timeout.ms", "linger.ms", "retry.backoff.ms", "transactional.id", "transaction.timeout.ms",
        "auto.offset.reset", "enable.auto.commit", "isolation.level", "group.id", "group.protocol",
        "enable.partition.eof", "compression.type",
    }
)  # fmt: skip
_BY_BROKERS: Final = frozenset(name for inherited in OF_TOPICS.values() for name in inherited.brokers)
#: Every name that is kept.
DECISIVE: Final = frozenset({*OF_TOPICS, *OF_BROKERS, *OF_CLIENTS, *_BY_BROKERS})
#: Kafka's own topics, which its brokers write.
INTERNAL: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state", "__cluster_metadata")


class NotUnderstood(msgspec.Struct, frozen=True):
    """Something that is present and was not understood: no default is taken for it in silence.

    ``where`` is a file with its line, or another word of where it stands ("server-1.properties, line 3"); ``text`` is
    what is written there, ``why`` says what is wrong with it. ``name`` is the setting that it may decide, under Kafka's
    name; empty: any setting. ``at_best``: the best of the possible values was taken, so that what speaks against a
    requirement does so in any case.
    """

    where: str
    text: str
    why: str
    name: str = ""
    at_best: bool = False

    @property
    def words(self) -> str:
        """The sentence about it."""
        return f"{self.where}: {self.text}: {self.why}"


class Now(msgspec.Struct, frozen=True):
    """The numbers of log partitions of a topic that lacked a leader, or a replica in sync, when they were read.

    ``in_sync`` is the least number of replicas in sync; None where it is not known. ``absent`` are brokers that are
    named as replicas, and that the cluster does not count as running. ``eligible`` are those that could lead a log
    partition without a leader and lose nothing (its eligible leader replicas, KIP-966).
    """

    leaderless: int = 0
    behind: int = 0
    in_sync: int | None = None
    absent: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic. ``replicas`` and ``racks`` are those of its log partition that has the fewest; racks None: not known.

    ``settings`` are its own, or the effective ones; what it lacks is inherited from the brokers. What was
    ``not_understood`` of a topic, of a cluster or of a client makes requirements "not known" that could hang on it.
    """

    name: str
    partitions: int
    replicas: int
    racks: int | None = None
    settings: Mapping[str, str] = {}
    now: Now = Now()
    not_understood: tuple[NotUnderstood, ...] = ()


class Release(NamedTuple):
    """A release of Kafka; ``patch_seen`` is false where a broker's protocol only told its line (4.3)."""

    version: Version
    patch_seen: bool = True

    @property
    def words(self) -> str:
        """The release in words."""
        major, minor, *_ = self.version
        return str(self.version) if self.patch_seen else f"{major}.{minor}"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The topics, and what is the same for all of them.

    ``settings`` are those of brokers, where they differ the worst; ``differing`` names settings that they do not share,
    with the values, the worst first. ``brokers`` counts no node that is a controller only; ``controllers`` are the
    settings of such. ``source`` says where all was read, ``unread`` what could not be. ``given`` are the names of the
    settings that files have, without values, by whether they are of brokers ("broker") or of topics ("topic").
    """

    source: str
    topics: tuple[Topic, ...]
    brokers: int | None = None
    settings: Mapping[str, str] = {}
    controllers: Mapping[str, str] = {}
    differing: Mapping[str, tuple[str, ...]] = {}
    features: Mapping[str, int] = {}
    release: Release | None = None
    unread: tuple[str, ...] = ()
    given: Mapping[str, tuple[str, ...]] = {}
    not_understood: tuple[NotUnderstood, ...] = ()

    def broker_setting(self, name: str) -> str:
        """The value of a broker's setting, or the default of its release."""
        return self.settings.get(name) or self._default(name, OF_BROKERS[name])

    def setting_of(self, topic: Topic, name: str) -> str:
        """The effective value of a topic's setting: its own, else its brokers', else the default of their release."""
        if name in topic.settings:
            return topic.settings[name]
        for broker_name, factor in OF_TOPICS[name].brokers.items():
            if value := self.settings.get(broker_name):
                return value if factor == 1 else str(int(value) * factor)
        return self._default(name, OF_TOPICS[name].default)

    def _default(self, name: str, newest: str) -> str:
        since, before = _BEFORE.get(name, (None, ""))
        old = self.release is not None and since is not None and self.release.version < since
        return before if old else newest


class Question(NamedTuple):
    """A cluster and the clients that are assessed with it, and families of faults that are asked about in addition."""

    cluster: Cluster
    producers: Sequence[Client]
    consumers: Sequence[Client] = ()
    families: Sequence[str] = ()


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A producer or a consumer: its library, and its settings as they were given, under Kafka's names.

    ``name`` is its file, or says where it came from; ``assumed``: no one was named. ``version`` may be empty.
    ``strange`` are names in its file that no such client is known to have. ``topics`` are the replication factors with
    which its framework, such as Kafka Connect, makes topics of its own, by the names of these settings.
    """

    name: str
    library: Library
    version: str = ""
    settings: Mapping[str, str] = {}
    strange: tuple[str, ...] = ()
    assumed: bool = False
    not_understood: tuple[NotUnderstood, ...] = ()
    topics: Mapping[str, str] = {}
