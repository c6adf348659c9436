"""ApiVersions, Metadata, topics and settings: what a broker answers from its image or passes on to the controller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from harness.reference.core import messages as core
from harness.reference.core.types import NONE, ErrorCode, Image, NodeId, TopicConfig
from harness.reference.server import requests as plain
from harness.reference.server.config import NodeConfig
from harness.reference.server.gateway import Gateway, Gather
from harness.reference.server.topic_settings import SettingError, parse_topic_config, written

#: How long the controller may take; it answers at once or the message was lost.
CONTROLLER_TIMEOUT_S: Final = 5.0
_LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

Reply = Callable[[Any], None]


class ClusterRequests:
    """What concerns the cluster as a whole. ``image`` gives the image that this broker has applied."""

    def __init__(self, config: NodeConfig, gateway: Gateway, image: Callable[[], Image]) -> None:
        self._config = config
        self._gateway = gateway
        self._image = image

    def api_versions(self, sender: NodeId, request: plain.ApiVersions, reply: Reply) -> None:
        """KIP-511: an unknown version of the question is told the table too, with an error."""
        del sender
        reply(plain.ApiVersionsAnswer(ErrorCode.NONE if request.supported else ErrorCode.UNSUPPORTED_VERSION))

    def metadata(self, sender: NodeId, request: plain.MetadataWanted, reply: Reply) -> None:
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
        reply(plain.ClusterMetadata(self._config.cluster_id, controller, live, topics))

    def create_topics(self, sender: NodeId, request: plain.CreateTopics, reply: Reply) -> None:
        """The controller decides; what can be refused here is."""
        gather = Gather(len(request.topics), lambda results: reply(plain.TopicsChanged(tuple(results))))
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
                self._ask_controller(sender, topic.name, partial(self._new, topic, config), gather.at(place))

    def delete_topics(self, sender: NodeId, request: plain.DeleteTopics, reply: Reply) -> None:
        """The controller decides."""
        gather = Gather(len(request.names), lambda results: reply(plain.TopicsChanged(tuple(results))))
        for place, name in enumerate(request.names):
            self._ask_controller(sender, name, partial(_delete, name), gather.at(place))

    def describe_configs(self, sender: NodeId, request: plain.DescribeConfigs, reply: Reply) -> None:
        """Settings of topics and of this broker."""
        del sender
        reply(plain.ConfigsDescribed(tuple(self._describe(resource) for resource in request.resources)))

    def create_internal(self, topic: plain.NewTopic, config: TopicConfig, done: Reply) -> None:
        """Create a topic for the broker itself; ``done`` gets a TopicResult."""
        self._ask_controller(self._config.node, topic.name, partial(self._new, topic, config), done)

    def _ask_controller(self, sender: NodeId, name: str, question: Callable[[int], core.Message], done: Reply) -> None:
        def answered(answer: core.TopicResponse) -> None:
            timeout.cancel()
            done(plain.TopicResult(name, answer.error, answer.reason))

        def expired() -> None:
            if self._gateway.give_up(correlation):
                done(plain.TopicResult(name, ErrorCode.REQUEST_TIMED_OUT, "the controller did not answer"))

        timeout = asyncio.get_running_loop().call_later(CONTROLLER_TIMEOUT_S, expired)
        correlation = self._gateway.ask(sender, question, answered)

    def _new(self, topic: plain.NewTopic, config: TopicConfig, correlation: int) -> core.CreateTopic:
        """A count of NONE means the default (KIP-464)."""
        return core.CreateTopic(
            correlation,
            topic.name,
            self._config.default_partitions if topic.partitions == NONE else topic.partitions,
            self._config.default_replication_factor if topic.replication_factor == NONE else topic.replication_factor,
            config,
            topic.assignment,
        )

    def _create_default(self, sender: NodeId, name: str) -> None:
        topic = plain.NewTopic(name, NONE, NONE, (), {})
        self.create_topics(sender, plain.CreateTopics((topic,), validate_only=False), lambda _: None)

    def _topic(self, image: Image, name: str) -> plain.TopicMetadata:
        state = image.topics.get(name)
        if state is None:
            return plain.TopicMetadata(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return plain.TopicMetadata(name, ErrorCode.NONE, state)

    def _describe(self, resource: plain.ConfigResource) -> plain.ConfigResult:
        topic = self._image().topics.get(resource.name)
        if resource.kind == BROKER_RESOURCE and resource.name in ("", str(self._config.node)):
            configs = written(self._config.broker)
        elif resource.kind == TOPIC_RESOURCE and topic is not None:
            configs = written(topic.config)
        elif resource.kind == TOPIC_RESOURCE:
            return plain.ConfigResult(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {resource.name}")
        else:
            return plain.ConfigResult(resource, ErrorCode.INVALID_REQUEST, "ask for a topic, or a broker about itself")
        if resource.keys is not None:
            configs = {name: value for name, value in configs.items() if name in resource.keys}
        return plain.ConfigResult(resource, ErrorCode.NONE, configs=configs)


def _delete(name: str, correlation: int) -> core.DeleteTopic:
    return core.DeleteTopic(correlation, name)
