"""ApiVersions, Metadata, topics and settings: what a broker answers from its image or passes on to the controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from harness.broker.core import messages as core
from harness.broker.core.controller import name_objection
from harness.broker.core.types import NONE, BrokerConfig, ErrorCode, Image, NodeId, PartitionState, TopicConfig
from harness.broker.server.codec import ADVERTISED
from harness.broker.server.codec.wire import Fields, TopicIds
from harness.broker.server.config import NodeConfig
from harness.broker.server.handlers.gateway import Call, Gateway, Gather

#: Longest wait for the controller; it answers at once or the message was lost.
CONTROLLER_TIMEOUT_S: Final = 5.0
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
#: The source of a setting, as DescribeConfigs numbers it: set on the topic, or in the broker's file.
_CONFIG_SOURCES: Final = {TOPIC_RESOURCE: 1, BROKER_RESOURCE: 4}
#: "Ask again" for clients: LEADER_NOT_AVAILABLE, which nothing but a partition in Metadata ever has.
_LEADER_NOT_AVAILABLE: Final = 5
#: From this version on, DeleteTopics names topics by name or id.
_DELETE_BY_ID: Final = 6
_DEFAULTS: Final = TopicConfig()
#: Names of settings that every Kafka client may send and that mean nothing here: this log keeps everything, in order.
IGNORED_SETTINGS: Final = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
    }
)
#: The one value that a log of this broker has, of some of these: Kafka Streams names it for topics of its own.
_ALREADY_SO: Final = {"message.timestamp.type": "CreateTime"}


class ClusterRequests:
    """Requests about the cluster as a whole. ``image`` gives the image that this broker has applied."""

    def __init__(self, config: NodeConfig, gateway: Gateway, image: Callable[[], Image], ids: TopicIds) -> None:
        self._config = config
        self._gateway = gateway
        self._image = image
        self._ids = ids

    def api_versions(self, call: Call) -> None:
        """The table of what is served, with an error where the question's version is unknown (KIP-511)."""
        rows = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in ADVERTISED.items()]
        error = ErrorCode.UNSUPPORTED_VERSION if call.request is None else ErrorCode.NONE
        call.reply({"error_code": error, "api_keys": rows})

    def metadata(self, call: Call) -> None:
        """Live brokers and topics from the own image; a missing topic is made if that is switched on.

        Brokers are in the order of their numbers, topics in the order of the request. In version 0 no topics means all,
        later null does.
        """
        image, wanted = self._image(), call.request.topics
        live = {node: broker for node, broker in sorted(image.brokers.items()) if not broker.fenced}
        everything = wanted is None or (call.header.version == 0 and not wanted)
        names = tuple(image.topics) if everything else self._names(wanted)
        if self._config.auto_create_topics and call.request.allow_auto_topic_creation:
            for name in names:
                if name not in image.topics and name_objection(name) is None:
                    self.create_topic(call.sender, name, lambda _: None)
        call.reply(
            {
                "brokers": [
                    {"node_id": node, "host": broker.host, "port": broker.port, "rack": broker.rack or None}
                    for node, broker in live.items()
                ],
                "cluster_id": self._config.cluster_id,
                # Clients send topic changes to "the controller"; any broker passes them on, so one for everybody does.
                "controller_id": min(live, default=NONE),
                "topics": [self._topic(image, name, live) for name in names],
            }
        )

    def create_topics(self, call: Call) -> None:
        """Refuse what can be refused here, and ask the controller for the rest."""
        topics = call.request.topics
        gather = Gather(len(topics), lambda results: call.reply({"topics": results}))
        for index, topic in enumerate(topics):
            put = gather.put_at(index)
            refused = name_objection(topic.name)
            try:
                config = parse_topic_config({each.name: each.value for each in topic.configs})
            except SettingError as error:
                refused = ErrorCode.INVALID_CONFIG, str(error)
            if refused is not None or call.request.validate_only:
                put(self._result(topic.name, *(refused or (ErrorCode.NONE, ""))))
                continue
            rows = sorted(topic.assignments, key=lambda row: row.partition_index)
            self.create_topic(
                call.sender,
                topic.name,
                put,
                partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                config=config,
                assignment=tuple(tuple(row.broker_ids) for row in rows),
            )

    def delete_topics(self, call: Call) -> None:
        """Ask the controller for each topic."""
        by_id = call.header.version >= _DELETE_BY_ID
        names = self._names(call.request.topics) if by_id else call.request.topic_names
        gather = Gather(len(names), lambda results: call.reply({"responses": results}))
        for index, name in enumerate(names):
            self._ask_controller(call.sender, core.DeleteTopic(0, name), gather.put_at(index))

    def describe_configs(self, call: Call) -> None:
        """Settings of topics and of this broker, all read-only: they are fixed when a topic is made, a node started."""
        call.reply({"results": [self._describe(resource) for resource in call.request.resources]})

    def create_topic(
        self,
        sender: NodeId,
        name: str,
        done: Callable[[Fields], None],
        *,
        partitions: int = NONE,
        replication_factor: int = NONE,
        config: TopicConfig = _DEFAULTS,
        assignment: tuple[tuple[NodeId, ...], ...] = (),
    ) -> None:
        """Have a topic made; ``done`` gets the result's fields. Counts of NONE mean this node's defaults (KIP-464)."""
        if partitions == NONE:
            partitions = self._config.default_partitions
        if replication_factor == NONE:
            replication_factor = self._config.default_replication_factor
        question = core.CreateTopic(0, name, partitions, replication_factor, config, assignment)
        self._ask_controller(sender, question, done)

    def _ask_controller(
        self, sender: NodeId, question: core.CreateTopic | core.DeleteTopic, done: Callable[[Fields], None]
    ) -> None:
        def answered(answer: core.TopicResponse) -> None:
            done(self._result(question.topic, answer.error, answer.reason))

        def late() -> None:
            done(self._result(question.topic, ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer"))

        self._gateway.ask_within(CONTROLLER_TIMEOUT_S, sender, question, answered, late)

    def _result(self, name: str, error: ErrorCode, reason: str = "") -> Fields:
        """The outcome of creating or deleting a topic."""
        identity = self._ids.identity(name)
        return {"name": name, "topic_id": identity, "error_code": error, "error_message": reason or None}

    def _names(self, topics: Any) -> list[str]:
        return [self._ids.name(topic.topic_id) if topic.name is None else topic.name for topic in topics]

    def _topic(self, image: Image, name: str, live: Mapping[NodeId, object]) -> Fields:
        topic = image.topics.get(name)
        return {
            "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else ErrorCode.NONE,
            "name": name,
            "topic_id": self._ids.identity(name),
            "is_internal": name.startswith("__"),
            "partitions": [_partition(*each, live) for each in enumerate(topic.partitions if topic else ())],
        }

    def _describe(self, resource: Any) -> Fields:
        kind, name = resource.resource_type, resource.resource_name
        topic = self._image().topics.get(name)
        error, reason = ErrorCode.NONE, None
        configs: dict[str, str] = {}
        if kind == BROKER_RESOURCE and name in ("", str(self._config.node)):
            configs = written(self._config.broker)
        elif kind == TOPIC_RESOURCE and topic is not None:
            configs = written(topic.config)
        elif kind == TOPIC_RESOURCE:
            error, reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}"
        else:
            error, reason = ErrorCode.INVALID_REQUEST, "ask for a topic, or a broker about itself"
        wanted = resource.configuration_keys
        return {
            "error_code": error,
            "error_message": reason,
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {
                    "name": key,
                    "value": value,
                    "read_only": True,
                    "config_source": _CONFIG_SOURCES[kind],
                    "documentation": None,
                }
                for key, value in configs.items()
                if wanted is None or key in wanted
            ],
        }


def _partition(index: int, state: PartitionState, live: Mapping[NodeId, object]) -> Fields:
    return {
        "error_code": _LEADER_NOT_AVAILABLE if state.leader == NONE else 0,
        "partition_index": index,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": list(state.replicas),
        "isr_nodes": list(state.isr),
        "offline_replicas": [replica for replica in state.replicas if replica not in live],
    }


class SettingError(ValueError):
    """A setting is unknown or has an impossible value; the text names it."""


def kafka_name(field: str) -> str:
    """``min_insync_replicas`` as Kafka writes it."""
    return field.replace("_", ".")


#: Without ``retention_ms``: records of this log stay at any age.
_TOPIC_FIELDS: Final = {
    kafka_name(field): field for field in TopicConfig.__struct_fields__ if kafka_name(field) != "retention.ms"
}


def parse_topic_config(configs: Mapping[str, str | None]) -> TopicConfig:
    """A topic's settings from what a client wrote, defaults for the rest.

    Raises:
        SettingError: unknown name or impossible value.
    """
    chosen: dict[str, Any] = {}
    for name, value in configs.items():
        if name in _TOPIC_FIELDS and value is not None:
            chosen[_TOPIC_FIELDS[name]] = value
        elif name not in IGNORED_SETTINGS and name not in _TOPIC_FIELDS:
            raise SettingError(f"unknown topic setting {name}; known are {', '.join(sorted(_TOPIC_FIELDS))}")
        elif _ALREADY_SO.get(name, value) != value:
            raise SettingError(f"{name} is {_ALREADY_SO[name]} here, and nothing else")
    try:
        config = msgspec.convert(chosen, TopicConfig, strict=False)
    except msgspec.ValidationError as error:
        raise SettingError(f"a topic setting has an impossible value: {error}") from error
    if min(config.min_insync_replicas, config.flush_messages, config.flush_ms) < 1:
        raise SettingError("min.insync.replicas, flush.messages and flush.ms are at least 1")
    return config


def written(config: TopicConfig | BrokerConfig) -> dict[str, str]:
    """Every setting of ``config`` under Kafka's name, in the form that Kafka prints (true, false)."""
    values = {field: getattr(config, field) for field in config.__struct_fields__}
    return {kafka_name(field): str(v).lower() if isinstance(v, bool) else str(v) for field, v in values.items()}
