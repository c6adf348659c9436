"""ApiVersions, Metadata, topics and settings: what a broker answers from its image or passes on to the controller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from harness.reference.core import messages as core
from harness.reference.core.types import NONE, BrokerConfig, ErrorCode, Image, NodeId, TopicConfig
from harness.reference.server import requests as plain
from harness.reference.server.config import NodeConfig
from harness.reference.server.handlers.gateway import Gateway, Gather, Reply

#: How long the controller may take; it answers at once or the message was lost.
CONTROLLER_TIMEOUT_S: Final = 5.0
_LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
#: Names of settings that every Kafka client may send and that mean nothing here: this log keeps everything, in order.
IGNORED_SETTINGS: Final = frozenset(
    {"cleanup.policy", "compression.type", "max.message.bytes", "retention.bytes", "retention.ms", "segment.bytes"}
)


class ClusterRequests:
    """Requests about the cluster as a whole. ``image`` gives the image that this broker has applied."""

    def __init__(self, config: NodeConfig, gateway: Gateway, image: Callable[[], Image]) -> None:
        self._config = config
        self._gateway = gateway
        self._image = image

    def api_versions(self, _sender: NodeId, request: plain.ApiVersionsRequest, reply: Reply) -> None:
        """The table of what is served, with an error where the question's version is unknown (KIP-511)."""
        reply(plain.ApiVersionsResponse(ErrorCode.NONE if request.supported else ErrorCode.UNSUPPORTED_VERSION))

    def metadata(self, sender: NodeId, request: plain.MetadataRequest, reply: Reply) -> None:
        """Live brokers and topics from the own image; a missing topic is made if that is switched on."""
        image = self._image()
        live = {node: broker for node, broker in image.brokers.items() if not broker.fenced}
        names = tuple(image.topics) if request.topics is None else request.topics
        topics = tuple(self._topic(image, name) for name in names)
        if self._config.auto_create_topics and request.auto_create:
            for topic in topics:
                if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self._create_default(sender, topic.name)
        # Clients send topic changes to "the controller"; any broker passes them on, so the same one for everybody does.
        controller = min(live, default=NONE)
        reply(plain.MetadataResponse(self._config.cluster_id, controller, live, topics))

    def create_topics(self, sender: NodeId, request: plain.CreateTopicsRequest, reply: Reply) -> None:
        """The controller decides; what can be refused here is."""
        gather = Gather(len(request.topics), plain.TopicsResponse, reply)
        for place, topic in enumerate(request.topics):
            try:
                config = parse_topic_config(topic.configs)
            except SettingError as error:
                gather.put(place, plain.TopicResult(topic.name, ErrorCode.INVALID_CONFIG, str(error)))
                continue
            if not _LEGAL_NAME.fullmatch(topic.name) or topic.name in (".", ".."):
                reason = "a topic's name has 1 to 249 letters, digits, dots, underscores and hyphens"
                gather.put(place, plain.TopicResult(topic.name, ErrorCode.INVALID_TOPIC_EXCEPTION, reason))
            elif request.validate_only:
                gather.put(place, plain.TopicResult(topic.name, ErrorCode.NONE))
            else:
                self._ask_controller(sender, self._new(topic, config), gather.at(place))

    def delete_topics(self, sender: NodeId, request: plain.DeleteTopicsRequest, reply: Reply) -> None:
        """The controller decides."""
        gather = Gather(len(request.names), plain.TopicsResponse, reply)
        for place, name in enumerate(request.names):
            self._ask_controller(sender, core.DeleteTopic(0, name), gather.at(place))

    def describe_configs(self, _sender: NodeId, request: plain.DescribeConfigsRequest, reply: Reply) -> None:
        """Settings of topics and of this broker."""
        reply(plain.DescribeConfigsResponse(tuple(self._describe(resource) for resource in request.resources)))

    def create_internal(self, topic: plain.NewTopic, config: TopicConfig, done: Reply) -> None:
        """Create a topic for the broker itself; ``done`` gets a TopicResult."""
        self._ask_controller(self._config.node, self._new(topic, config), done)

    def _ask_controller(self, sender: NodeId, question: core.CreateTopic | core.DeleteTopic, done: Reply) -> None:
        def answered(answer: core.TopicResponse) -> None:
            timeout.cancel()
            done(plain.TopicResult(question.topic, answer.error, answer.reason))

        def expired() -> None:
            if self._gateway.give_up(correlation):
                done(plain.TopicResult(question.topic, ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer"))

        timeout = asyncio.get_running_loop().call_later(CONTROLLER_TIMEOUT_S, expired)
        correlation = self._gateway.ask_numbered(sender, question, answered)

    def _new(self, topic: plain.NewTopic, config: TopicConfig) -> core.CreateTopic:
        return core.CreateTopic(
            0,
            topic.name,
            self._config.default_partitions if topic.partitions == NONE else topic.partitions,
            self._config.default_replication_factor if topic.replication_factor == NONE else topic.replication_factor,
            config,
            topic.assignment,
        )

    def _create_default(self, sender: NodeId, name: str) -> None:
        request = plain.CreateTopicsRequest((plain.NewTopic(name),), validate_only=False)
        self.create_topics(sender, request, lambda _: None)

    def _topic(self, image: Image, name: str) -> plain.TopicMetadata:
        state = image.topics.get(name)
        if state is None:
            return plain.TopicMetadata(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return plain.TopicMetadata(name, ErrorCode.NONE, state)

    def _describe(self, resource: plain.ConfigResource) -> plain.DescribedResource:
        topic = self._image().topics.get(resource.name)
        if resource.kind == BROKER_RESOURCE and resource.name in ("", str(self._config.node)):
            configs = written(self._config.broker)
        elif resource.kind == TOPIC_RESOURCE and topic is not None:
            configs = written(topic.config)
        elif resource.kind == TOPIC_RESOURCE:
            return plain.DescribedResource(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {resource.name}")
        else:
            return plain.DescribedResource(
                resource, ErrorCode.INVALID_REQUEST, "ask for a topic, or a broker about itself"
            )
        if resource.keys is not None:
            configs = {name: value for name, value in configs.items() if name in resource.keys}
        return plain.DescribedResource(resource, ErrorCode.NONE, configs=configs)


class SettingError(ValueError):
    """A setting is unknown or has an impossible value; the text says which."""


def kafka_name(field: str) -> str:
    """``min_insync_replicas`` as Kafka writes it."""
    return field.replace("_", ".")


_TOPIC_FIELDS: Final = {kafka_name(field): field for field in TopicConfig.__struct_fields__}


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
    try:
        config = msgspec.convert(chosen, TopicConfig, strict=False)
    except msgspec.ValidationError as error:
        raise SettingError(f"a topic setting has an impossible value: {error}") from error
    if min(config.min_insync_replicas, config.flush_messages, config.flush_ms) < 1:
        raise SettingError("min.insync.replicas, flush.messages and flush.ms are at least 1")
    return config


def written(config: TopicConfig | BrokerConfig) -> dict[str, str]:
    """Every setting of ``config`` under Kafka's name."""
    return {kafka_name(field): _text(getattr(config, field)) for field in config.__struct_fields__}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
