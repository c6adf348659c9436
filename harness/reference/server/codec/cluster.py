"""ApiVersions, Metadata, FindCoordinator and administration."""

from __future__ import annotations

from typing import Any, Final

from harness.reference.core.types import NONE, PartitionState
from harness.reference.server import requests as plain
from harness.reference.server.codec.wire import Context, Fields, text

#: From these versions on, topics may be named by id, and several coordinators are asked for at once.
DELETE_BY_ID: Final = 6
FIND_SEVERAL: Final = 4
#: "Ask again" for clients: LEADER_NOT_AVAILABLE, which nothing but a partition in Metadata ever has.
_LEADER_NOT_AVAILABLE: Final = 5
#: Where a setting of a resource comes from, as DescribeConfigs says it: set on the topic, or in the broker's file.
TOPIC_RESOURCE: Final = 2
TOPIC_SOURCE: Final = 1
BROKER_SOURCE: Final = 4


def decode_api_versions(_request: Any, _: Context) -> plain.ApiVersionsRequest:
    """The client's software and version do not matter."""
    return plain.ApiVersionsRequest()


def decode_metadata(request: Any, context: Context) -> plain.MetadataRequest:
    """In version 0 no topics means all, later None does."""
    topics, version = request.topics, context.version
    if topics is None or (version == 0 and not topics):
        return plain.MetadataRequest(None, auto_create=False)
    return plain.MetadataRequest(
        _names(topics, context), auto_create=version < 4 or bool(request.allow_auto_topic_creation)
    )


def _names(topics: Any, context: Context) -> tuple[str, ...]:
    return tuple(topic.name if topic.name is not None else context.ids.name(topic.topic_id) for topic in topics)


def encode_metadata(answer: plain.MetadataResponse, context: Context) -> Fields:
    """Brokers in the order of their numbers, topics in the order of the request."""
    return {
        "brokers": [
            {"node_id": node, "host": broker.host, "port": broker.port, "rack": None}
            for node, broker in sorted(answer.brokers.items())
        ],
        "cluster_id": answer.cluster_id,
        "controller_id": answer.controller,
        "topics": [_topic(topic, set(answer.brokers), context) for topic in answer.topics],
    }


def _topic(topic: plain.TopicMetadata, live: set[int], context: Context) -> Fields:
    partitions = topic.state.partitions if topic.state is not None else ()
    return {
        "error_code": topic.error,
        "name": topic.name,
        "topic_id": context.ids.identity(topic.name),
        "is_internal": topic.name.startswith("__"),
        "partitions": [_partition(index, state, live) for index, state in enumerate(partitions)],
    }


def _partition(index: int, state: PartitionState, live: set[int]) -> Fields:
    return {
        "error_code": _LEADER_NOT_AVAILABLE if state.leader == NONE else 0,
        "partition_index": index,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": list(state.replicas),
        "isr_nodes": list(state.isr),
        "offline_replicas": [replica for replica in state.replicas if replica not in live],
    }


def decode_find_coordinator(request: Any, context: Context) -> plain.FindCoordinatorRequest:
    """Version 0 knows groups only."""
    keys = request.coordinator_keys if context.version >= FIND_SEVERAL else (request.key,)
    return plain.FindCoordinatorRequest(
        request.key_type if context.version >= 1 else 0, tuple(text(key) for key in keys)
    )


def encode_find_coordinator(answer: plain.FindCoordinatorResponse, context: Context) -> Fields:
    """One coordinator before version 4."""
    found = [
        {"node_id": one.node, "host": one.host, "port": one.port, "error_code": one.error, "error_message": None}
        for one in answer.found
    ]
    if context.version < FIND_SEVERAL:
        return found[0]
    return {"coordinators": [{"key": one.key, **each} for one, each in zip(answer.found, found, strict=True)]}


def decode_create_topics(request: Any, _: Context) -> plain.CreateTopicsRequest:
    """A manual assignment lists partitions in any order; it is put in theirs."""
    return plain.CreateTopicsRequest(
        tuple(
            plain.NewTopic(
                text(topic.name),
                topic.num_partitions,
                topic.replication_factor,
                tuple(
                    tuple(row.broker_ids)
                    for row in sorted(topic.assignments or (), key=lambda row: row.partition_index)
                ),
                {text(config.name): config.value for config in topic.configs or ()},
            )
            for topic in request.topics
        ),
        bool(request.validate_only),
    )


def encode_create_topics(answer: plain.TopicsResponse, context: Context) -> Fields:
    """The configuration is not repeated."""
    return {"topics": [{**result, "configs": None} for result in _results(answer, context)]}


def decode_delete_topics(request: Any, context: Context) -> plain.DeleteTopicsRequest:
    """By name, or by id from version 6 on."""
    if context.version < DELETE_BY_ID:
        return plain.DeleteTopicsRequest(tuple(text(name) for name in request.topic_names))
    return plain.DeleteTopicsRequest(_names(request.topics, context))


def encode_delete_topics(answer: plain.TopicsResponse, context: Context) -> Fields:
    """Name and outcome."""
    return {"responses": _results(answer, context)}


def _results(answer: plain.TopicsResponse, context: Context) -> list[Fields]:
    return [
        {
            "name": result.name,
            "topic_id": context.ids.identity(result.name),
            "error_code": result.error,
            "error_message": result.reason or None,
        }
        for result in answer.results
    ]


def decode_describe_configs(request: Any, _: Context) -> plain.DescribeConfigsRequest:
    """Synonyms and documentation are not given."""
    return plain.DescribeConfigsRequest(
        tuple(
            plain.ConfigResource(
                resource.resource_type,
                text(resource.resource_name),
                None if resource.configuration_keys is None else tuple(resource.configuration_keys),
            )
            for resource in request.resources
        )
    )


def encode_describe_configs(answer: plain.DescribeConfigsResponse, _: Context) -> Fields:
    """Every setting is read-only: settings are fixed when a topic is made or a node is started."""
    return {
        "results": [
            {
                "error_code": result.error,
                "error_message": result.reason or None,
                "resource_type": result.resource.kind,
                "resource_name": result.resource.name,
                "configs": [
                    {
                        "name": name,
                        "value": value,
                        "read_only": True,
                        "config_source": TOPIC_SOURCE if result.resource.kind == TOPIC_RESOURCE else BROKER_SOURCE,
                        "synonyms": [],
                        "documentation": None,
                    }
                    for name, value in result.configs.items()
                ],
            }
            for result in answer.results
        ]
    }
