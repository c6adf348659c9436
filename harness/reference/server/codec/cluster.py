"""ApiVersions, Metadata, FindCoordinator and administration."""

from __future__ import annotations

from typing import Any, Final

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.admin.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse

from harness.reference.core.types import NONE, ErrorCode, PartitionState
from harness.reference.server import requests as plain
from harness.reference.server.codec.wire import TopicIds, text

#: From these versions on, topics may be named by id, and several coordinators are asked for at once.
METADATA_BY_ID: Final = 10
DELETE_BY_ID: Final = 6
FIND_SEVERAL: Final = 4
#: Where a setting of a resource comes from, as DescribeConfigs says it: set on the topic, or in the broker's file.
TOPIC_SOURCE: Final = 1
BROKER_SOURCE: Final = 4


def decode_api_versions(request: Any, version: int, ids: TopicIds) -> plain.ApiVersions:
    """Who the client is does not matter."""
    del request, version, ids
    return plain.ApiVersions()


def encode_api_versions(served: dict[int, tuple[int, int]], error: ErrorCode, version: int) -> Any:
    """The table of served versions, in version 0 if there is an error (KIP-511)."""
    version = 0 if error else version
    row = ApiVersionsResponse.ApiVersion
    keys = [row(version=version, api_key=key, min_version=low, max_version=high) for key, (low, high) in served.items()]
    return ApiVersionsResponse(version=version, error_code=int(error), api_keys=keys)


def decode_metadata(request: Any, version: int, ids: TopicIds) -> plain.MetadataWanted:
    """In version 0 no topics means all, later None does."""
    topics = request.topics
    if topics is None or (version == 0 and not topics):
        return plain.MetadataWanted(None, auto_create=False)
    names = tuple(topic.name if topic.name is not None else ids.name(topic.topic_id) for topic in topics)
    return plain.MetadataWanted(names, auto_create=version < 4 or bool(request.allow_auto_topic_creation))


def encode_metadata(answer: plain.ClusterMetadata, version: int, ids: TopicIds) -> Any:
    """Leaderless partitions carry LEADER_NOT_AVAILABLE (5), which clients take as "ask again"."""
    broker_class = MetadataResponse.MetadataResponseBroker
    return MetadataResponse(
        version=version,
        brokers=[
            broker_class(version=version, node_id=node, host=broker.host, port=broker.port, rack=None)
            for node, broker in sorted(answer.brokers.items())
        ],
        cluster_id=answer.cluster_id,
        controller_id=answer.controller,
        topics=[_topic(topic, set(answer.brokers), version, ids) for topic in answer.topics],
    )


def _topic(topic: plain.TopicMetadata, live: set[int], version: int, ids: TopicIds) -> Any:
    topic_class = MetadataResponse.MetadataResponseTopic
    partitions = topic.state.partitions if topic.state is not None else ()
    return topic_class(
        version=version,
        error_code=int(topic.error),
        name=topic.name,
        topic_id=ids.identity(topic.name),
        is_internal=topic.name.startswith("__"),
        partitions=[_partition(index, state, live, version) for index, state in enumerate(partitions)],
    )


def _partition(index: int, state: PartitionState, live: set[int], version: int) -> Any:
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        version=version,
        error_code=5 if state.leader == NONE else 0,
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=[replica for replica in state.replicas if replica not in live],
    )


def decode_find_coordinator(request: Any, version: int, ids: TopicIds) -> plain.FindCoordinator:
    """Version 0 knows groups only."""
    del ids
    keys = request.coordinator_keys if version >= FIND_SEVERAL else (request.key,)
    return plain.FindCoordinator(request.key_type if version >= 1 else 0, tuple(text(key) for key in keys))


def encode_coordinators(answer: plain.Coordinators, version: int, ids: TopicIds) -> Any:
    """One coordinator before version 4."""
    del ids
    if version >= FIND_SEVERAL:
        row = FindCoordinatorResponse.Coordinator
        return FindCoordinatorResponse(
            version=version,
            coordinators=[
                row(
                    version=version,
                    key=found.key,
                    node_id=found.node,
                    host=found.host,
                    port=found.port,
                    error_code=int(found.error),
                    error_message=None,
                )
                for found in answer.found
            ],
        )
    found = answer.found[0]
    return FindCoordinatorResponse(
        version=version, error_code=int(found.error), node_id=found.node, host=found.host, port=found.port
    )


def decode_create_topics(request: Any, version: int, ids: TopicIds) -> plain.CreateTopics:
    """A manual assignment lists partitions in any order; it is put in theirs."""
    del version, ids
    return plain.CreateTopics(
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


def encode_topics_created(answer: plain.TopicsChanged, version: int, ids: TopicIds) -> Any:
    """The configuration is not repeated."""
    row = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(
        version=version,
        topics=[
            row(
                version=version,
                name=result.name,
                topic_id=ids.identity(result.name),
                error_code=int(result.error),
                error_message=result.reason or None,
                configs=None,
            )
            for result in answer.results
        ],
    )


def decode_delete_topics(request: Any, version: int, ids: TopicIds) -> plain.DeleteTopics:
    """By name, or by id from version 6 on."""
    if version < DELETE_BY_ID:
        return plain.DeleteTopics(tuple(text(name) for name in request.topic_names))
    return plain.DeleteTopics(
        tuple(topic.name if topic.name is not None else ids.name(topic.topic_id) for topic in request.topics)
    )


def encode_topics_deleted(answer: plain.TopicsChanged, version: int, ids: TopicIds) -> Any:
    """Name and outcome."""
    row = DeleteTopicsResponse.DeletableTopicResult
    return DeleteTopicsResponse(
        version=version,
        responses=[
            row(
                version=version,
                name=result.name,
                topic_id=ids.identity(result.name),
                error_code=int(result.error),
                error_message=result.reason or None,
            )
            for result in answer.results
        ],
    )


def decode_describe_configs(request: Any, version: int, ids: TopicIds) -> plain.DescribeConfigs:
    """Synonyms and documentation are not given."""
    del version, ids
    return plain.DescribeConfigs(
        tuple(
            plain.ConfigResource(
                resource.resource_type,
                text(resource.resource_name),
                None if resource.configuration_keys is None else tuple(resource.configuration_keys),
            )
            for resource in request.resources
        )
    )


def encode_configs(answer: plain.ConfigsDescribed, version: int, ids: TopicIds) -> Any:
    """Every setting is read-only: settings are fixed when a topic is made or a node is started."""
    del ids
    row_class = DescribeConfigsResponse.DescribeConfigsResult
    config_class = row_class.DescribeConfigsResourceResult
    return DescribeConfigsResponse(
        version=version,
        results=[
            row_class(
                version=version,
                error_code=int(result.error),
                error_message=result.reason or None,
                resource_type=result.resource.kind,
                resource_name=result.resource.name,
                configs=[
                    config_class(
                        version=version,
                        name=name,
                        value=value,
                        read_only=True,
                        config_source=TOPIC_SOURCE if result.resource.kind == 2 else BROKER_SOURCE,
                        is_sensitive=False,
                        synonyms=[],
                        config_type=0,
                        documentation=None,
                    )
                    for name, value in result.configs.items()
                ],
            )
            for result in answer.results
        ],
    )


REQUESTS: Final = (
    ApiVersionsRequest,
    MetadataRequest,
    FindCoordinatorRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
)
