"""The administration of a cluster, as an operator uses it: over the network, through any broker that answers.

Built on the public methods of kafka-python's ``KafkaAdminClient``. To move a leadership to a chosen broker, Kafka
offers two steps: put the broker first in the list of replicas, which makes it the preferred leader, and elect the
preferred leader.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType

from harness.ground.errors import AccessError, HostError
from harness.plan import OPEN, Security
from harness.worlds.clients import KAFKA_PYTHON, make, named
from harness.worlds.kafka.refusals import refusal
from harness.worlds.kafka.releases import Version
from nemesis.cluster import PartitionView
from workloads import LogPartition, Settings, spelled

Answer = TypeVar("Answer")

#: The wait for one broker, which may be frozen.
REQUEST_LIMIT_MS: Final = 1_500
#: All tries of one question; the last may last a few requests longer. The run's clock stands still meanwhile.
ASK_LIMIT_S: Final = 4.0
#: The same for a cluster that may be far away.
FAR_ASK_LIMIT_S: Final = 10.0
#: A broker that refuses does so at once; Kafka holds back its answer to a wrong password for 300 ms at least.
REFUSAL_LIMIT_S: Final = 3.0
_PAUSE_S: Final = 0.05
#: The library's network client is made to wait no longer for a frozen broker's first word than for others; its own
#: limit is ten seconds.
_SETUP_LIMITS: Final = ("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms")
_PREFERRED: Final = 0
_NO_LEADER: Final = -1
_DEFAULT: Final = "DEFAULT_CONFIG"
#: Errors of a broker that does not know a topic, or does not know it yet.
_NOT_YET: Final = (errors.UnknownTopicOrPartitionError, errors.LeaderNotAvailableError)
_MATTERS: Final = frozenset(Settings().to_mapping())


class TopicImage(msgspec.Struct, frozen=True):
    """A topic as the brokers know it: its id, and its partitions by name ("topic-number")."""

    topic_id: UUID
    partitions: Mapping[str, PartitionView]


class ConfiguredValue(NamedTuple):
    """The effective value of a setting, and Kafka's name of its source, such as DYNAMIC_BROKER_CONFIG."""

    value: str
    source: str


class UnansweredError(HostError):
    """No broker answered in time: name bootstrap servers that can be reached, or wait until they can."""


def _connect(**configuration: Any) -> KafkaAdminClient:
    return make(KafkaAdminClient, configuration, **dict.fromkeys(_SETUP_LIMITS, REQUEST_LIMIT_MS))


class Administration:
    """Asks brokers. ``brokers`` gives "host:port" of those that may answer now; not for several threads at once.

    ``security`` is what a cluster of the user's demands. Where such a cluster has never accepted us and says why, every
    question raises an AccessError. None: the harness's own cluster, which demands nothing.
    """

    def __init__(
        self,
        brokers: Callable[[], Sequence[str]],
        *,
        limit_s: float = ASK_LIMIT_S,
        security: Security | None = None,
        connect: Callable[..., KafkaAdminClient] = _connect,
    ) -> None:
        self._brokers = brokers
        self._limit_s = limit_s
        self._security = security
        self._accepted = False
        self._connect = connect
        self._client: KafkaAdminClient | None = None

    def close(self) -> None:
        """Hang up. Idempotent; the next question connects again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    # --- leaders and replicas ----------------------------------------------------------------------------------------

    def move_leader(self, partition: str, broker: int, replicas: Sequence[int]) -> str:
        """Let ``broker``, one of ``replicas``, lead. The answer is empty, or says why not.

        Where the election fails, the order of preference becomes that of ``replicas`` again.

        Raises:
            UnansweredError: no broker answered; the move may be granted all the same.
        """
        topic_partition = _topic_partition(partition)

        def move(admin: KafkaAdminClient) -> str:
            if admin.list_partition_reassignments([topic_partition]):
                return "its replicas are being reassigned"
            _alter(admin, topic_partition, (broker, *(other for other in replicas if other != broker)))
            try:
                admin.elect_leaders(_PREFERRED, {topic_partition.topic: [topic_partition.partition]})
            except errors.KafkaError as error:
                if not isinstance(error, errors.ElectionNotNeededError) and not _may_pass(error):
                    _alter(admin, topic_partition, replicas)
                raise
            return ""

        return self._granted(move)

    def reassign(self, partition: str, replicas: Sequence[int]) -> str:
        """Let these brokers replicate ``partition``, in this order of preference; answer and error as above.

        A reassignment under way is called off first: asked to go back, Kafka would keep the brokers that were to come
        among the replicas until the next change.
        """
        topic_partition = _topic_partition(partition)

        def alter(admin: KafkaAdminClient) -> str:
            if admin.list_partition_reassignments([topic_partition]):
                admin.alter_partition_reassignments({topic_partition: None})
            _alter(admin, topic_partition, replicas)
            return ""

        return self._granted(alter)

    # --- topics ------------------------------------------------------------------------------------------------------

    def topic(self, name: str) -> TopicImage | None:
        """The topic, None where it does not exist. Eligible leader replicas are known to brokers from 3.7 on (KRaft).

        Raises:
            KafkaError: the cluster refuses to answer (the topic may exist all the same).
            UnansweredError: no broker could be asked.
        """
        answer = self._ask(lambda admin: _described(admin, name))
        error = errors.for_code(answer["error_code"])
        if error is not errors.NoError and not issubclass(error, _NOT_YET):
            raise error(f"topic {name}")
        return None if error is not errors.NoError else _image(answer)

    def create_topic(self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> None:
        """Create a topic.

        Raises:
            KafkaError: the cluster refused.
            UnansweredError: no broker answered; the topic may exist all the same.
        """
        wanted = {"num_partitions": partitions, "replication_factor": replication_factor, "configs": dict(configs)}
        self._ask(lambda admin: admin.create_topics({name: wanted}))

    def delete_topic(self, topic_id: UUID) -> bool:
        """Delete the topic with this id, and no other of its name. False where it does not exist.

        Raises:
            KafkaError: the cluster refused.
            UnansweredError: no broker answered.
        """
        try:
            self._ask(lambda admin: admin.delete_topics([topic_id]))
        except (errors.UnknownTopicIdError, errors.UnknownTopicOrPartitionError):
            return False
        return True

    # --- the cluster -------------------------------------------------------------------------------------------------

    def running(self) -> tuple[int, ...]:
        """The brokers that the cluster counts as running, ascending.

        Raises:
            UnansweredError: no broker could be asked.
        """
        answer = self._ask(lambda admin: admin.describe_cluster())
        return tuple(sorted(broker["broker_id"] for broker in answer["brokers"] if not broker.get("is_fenced")))

    def registered(self) -> tuple[int, ...]:
        """The brokers that the cluster knows, running or not. Errors as above."""
        answer = self._ask(lambda admin: admin.describe_cluster())
        return tuple(broker["broker_id"] for broker in answer["brokers"])

    def voters(self) -> dict[int, UUID]:
        """The directories of the controllers that vote, as their leader says (KRaft). Errors as above."""
        return dict(self._quorum("current_voters"))

    def observers(self) -> frozenset[tuple[int, UUID]]:
        """The nodes that fetch the metadata without a vote, brokers among them, with their directories.

        For a while a node that began afresh is there twice: with the directory that it had, too. Errors as above.
        """
        return frozenset(self._quorum("observers"))

    def release(self, broker: int) -> Version:
        """The release of a broker, as far as its protocol shows: the patch is always 0."""
        answer = self._ask(lambda admin: admin.get_broker_version_data(broker)).broker_version
        return Version(answer[0], answer[1], 0)

    def configuration(self, kind: Literal["broker", "topic"], name: str) -> dict[str, Any]:
        """The values of a broker or topic that are not secret: those that are set, and those that decide replication.

        Empty where our user may not read them. A topic without an entry is asked for again within the limit of a
        question: a broker may not know it yet, and the library drops the error that tells these two cases apart.
        """
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        deadline = time.monotonic() + (self._limit_s if kind == "topic" else 0)

        def entries(admin: KafkaAdminClient) -> dict[str, Any]:
            described: dict[str, Any] = admin.describe_configs([resource], config_filter="all")[kind][name]
            return described

        while not (values := self._ask(entries)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return {
            name: entry["value"]
            for name, entry in sorted(values.items())
            if not entry["is_sensitive"] and (entry["config_source"] != _DEFAULT or name in _MATTERS)
        }

    # --- all of it, to be read only ----------------------------------------------------------------------------------

    def topics(self) -> dict[str, list[PartitionView]]:
        """The log partitions of every topic that our user may see.

        Raises:
            UnansweredError: no broker could be asked.
        """
        described = self._ask(lambda admin: admin.describe_topics())
        return {topic["name"]: [_view(partition) for partition in topic["partitions"]] for topic in described}

    def racks(self) -> dict[int, str]:
        """The rack of each broker that runs; empty where it has none."""
        answer = self._ask(lambda admin: admin.describe_cluster())
        return {
            broker["broker_id"]: broker.get("rack") or "" for broker in answer["brokers"] if not broker.get("is_fenced")
        }

    def features(self) -> dict[str, int]:
        """The level of each feature that was finalized; none where brokers know no features."""
        return self._feature_levels("finalized")

    def supported_features(self) -> dict[str, int]:
        """The highest level of each feature that the broker which answers supports."""
        return self._feature_levels("supported")

    def finalize(self, levels: Mapping[str, int]) -> str:
        """Raise features to these levels. The answer is empty, or says why not.

        Raises:
            UnansweredError: no broker answered; they may be raised all the same.
        """

        def update(admin: KafkaAdminClient) -> str:
            answers = admin.update_features(dict(levels), timeout_ms=REQUEST_LIMIT_MS)
            return "; ".join(f"{name}: {answer}" for name, answer in answers.items() if answer != "OK")

        return self._granted(update)

    def configurations(
        self, kind: Literal["broker", "topic"], names: Sequence[str], settings: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """The effective values of these ``settings`` of each broker or topic, as texts.

        Without those that it does not have, and without all where our user may not read them.
        """
        configured = self.configured(kind, names, settings)
        return {name: {key: value for key, (value, _) in values.items()} for name, values in configured.items()}

    def configured(
        self, kind: Literal["broker", "topic"], names: Sequence[str], settings: Sequence[str]
    ) -> dict[str, dict[str, ConfiguredValue]]:
        """The same, each value with its source."""
        asked = dict.fromkeys(settings)
        resources = [ConfigResource(ConfigResourceType[kind.upper()], name, configs=asked) for name in names]
        described = self._ask(lambda admin: admin.describe_configs(resources, config_filter="all"))
        return {
            name: {
                key: ConfiguredValue(spelled(entry["value"]), str(entry["config_source"]))
                for key, entry in entries.items()
                if entry["value"] is not None
            }
            for name, entries in described.get(kind, {}).items()
        }

    # --- inside ------------------------------------------------------------------------------------------------------

    def _quorum(self, part: Literal["current_voters", "observers"]) -> list[tuple[int, UUID]]:
        answer = self._ask(lambda admin: admin.describe_metadata_quorum())
        states = answer["topics"][0]["partitions"][0][part]
        return [(state["replica_id"], UUID(str(state["replica_directory_id"]))) for state in states]

    def _feature_levels(self, kind: Literal["finalized", "supported"]) -> dict[str, int]:
        try:
            described = self._ask(lambda admin: admin.describe_features())
        except errors.UnsupportedVersionError:
            return {}
        return {name: levels[kind][1] for name, levels in described.items() if kind in levels}

    def _granted(self, action: Callable[[KafkaAdminClient], str]) -> str:
        """The answer of ``action``, or the name of the refusal. Without an answer the whole action begins again."""
        try:
            return self._ask(action)
        except errors.ElectionNotNeededError:
            return ""
        except errors.KafkaError as error:
            return type(error).__name__

    def _ask(self, question: Callable[[KafkaAdminClient], Answer]) -> Answer:
        """The answer of any broker. A dead or frozen one gives none; the next connection may meet another."""
        deadline = time.monotonic() + self._limit_s
        while True:
            try:
                return question(self._connected())
            except (errors.KafkaError, OSError, RuntimeError) as error:
                if not _may_pass(error):
                    raise
                self.close()
                if (left_s := deadline - time.monotonic()) <= 0:
                    tried = ", ".join(self._brokers()) or "none"
                    why = named(error) if isinstance(error, errors.KafkaConnectionError) else type(error).__name__
                    raise UnansweredError(
                        f"no broker answered within {self._limit_s:.0f} s ({why}); tried {tried}"
                    ) from error
                self._see_why(left_s)
            time.sleep(_PAUSE_S)

    def _connected(self) -> KafkaAdminClient:
        if self._client is None:
            brokers = list(self._brokers())
            if not brokers:
                raise errors.NodeNotReadyError("no broker runs")
            self._client = self._connect(
                bootstrap_servers=brokers,
                client_id="ackproof-admin",
                bootstrap_timeout_ms=REQUEST_LIMIT_MS,
                request_timeout_ms=REQUEST_LIMIT_MS,
                reconnect_backoff_max_ms=200,
                **KAFKA_PYTHON.login(self._security or OPEN),
            )
            self._accepted = True
        return self._client

    def _see_why(self, limit_s: float) -> None:
        """Raise an AccessError where brokers answered and refused us."""
        if self._security is None or self._accepted:
            return
        if why := refusal(self._brokers(), self._security, min(limit_s, REFUSAL_LIMIT_S)):
            raise AccessError(why)


def _may_pass(error: BaseException) -> bool:
    """True where asking again may help: connections, time limits, a controller that moved (a RuntimeError).

    The library may not know a broker yet that has started just now.
    """
    if isinstance(error, errors.BrokerResponseError):
        return isinstance(error, (errors.RequestTimedOutError, errors.NotControllerError))
    return not isinstance(error, errors.KafkaError) or error.retriable or isinstance(error, errors.UnknownBrokerIdError)


def _alter(admin: KafkaAdminClient, topic_partition: TopicPartition, replicas: Sequence[int]) -> None:
    error = admin.alter_partition_reassignments({topic_partition: list(replicas)}).get(topic_partition)
    if error is not None:
        raise error


def _topic_partition(partition: str) -> TopicPartition:
    return TopicPartition(*LogPartition.named(partition))


def _described(admin: KafkaAdminClient, name: str) -> dict[str, Any]:
    """A topic as brokers describe it: a page of partitions at a time (KIP-966), or all at once as older ones do."""
    try:
        page = admin.describe_topic_partitions([name])
        (answer,) = page["topics"]
        while (cursor := page["next_cursor"]) is not None:
            page = admin.describe_topic_partitions([name], cursor=cursor)
            answer["partitions"] += page["topics"][0]["partitions"]
    except errors.UnsupportedVersionError:
        (answer,) = admin.describe_topics([name])
    return dict(answer)


def _image(answer: Mapping[str, Any]) -> TopicImage:
    partitions = sorted(answer["partitions"], key=lambda partition: partition["partition_index"])
    return TopicImage(
        topic_id=UUID(str(answer["topic_id"])),
        partitions={f"{answer['name']}-{partition['partition_index']}": _view(partition) for partition in partitions},
    )


def _view(partition: Mapping[str, Any]) -> PartitionView:
    return PartitionView(
        leader=None if partition["leader_id"] == _NO_LEADER else partition["leader_id"],
        leader_epoch=partition["leader_epoch"],
        isr=tuple(partition["isr_nodes"]),
        replicas=tuple(partition["replica_nodes"]),
        elr=tuple(partition.get("eligible_leader_replicas") or ()),
    )
