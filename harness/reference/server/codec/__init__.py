"""The wire protocols: frames to plain requests and plain responses to frames.

Clients and followers speak Kafka's protocol (this door, and :mod:`follower`), brokers and the controller one of their
own (:mod:`controller`). This package is the only one that imports ``kafka.protocol``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import configs, topics
from kafka.protocol.consumer import fetch, group, offsets
from kafka.protocol.metadata import api_versions, find_coordinator, metadata
from kafka.protocol.producer import produce, transaction

from harness.reference.core import messages as core
from harness.reference.core.types import ErrorCode
from harness.reference.server import requests as plain
from harness.reference.server.codec import cluster, data, groups
from harness.reference.server.codec.follower import FollowerRequest, decode_response, encode_request
from harness.reference.server.codec.wire import Context, Fields, TopicIds, decode, parse_header, response_frame
from harness.reference.server.links import BadFrameError

__all__ = [
    "ADVERTISED",
    "APIS",
    "Api",
    "FollowerRequest",
    "TopicIds",
    "client_of",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

API_VERSIONS: Final = 18
PRODUCE: Final = 0


class Api(NamedTuple):
    """One API: its schema classes, the versions (first, last) that are served, and the two translations."""

    request: Any
    response: Any
    versions: tuple[int, int]
    decode: Callable[[Any, Context], plain.Request | core.Fetch]
    encode: Callable[[Any, Context], Fields]


def _api_versions(answer: plain.ApiVersionsResponse, _: Context) -> Fields:
    """The table of what is served is this module's own."""
    rows = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in ADVERTISED.items()]
    return {"error_code": answer.error, "api_keys": rows}


_TABLE: Final = (
    Api(produce.ProduceRequest, produce.ProduceResponse, (3, 12), data.decode_produce, data.encode_produce),
    Api(fetch.FetchRequest, fetch.FetchResponse, (4, 16), data.decode_fetch, data.encode_fetch),
    Api(offsets.ListOffsetsRequest, offsets.ListOffsetsResponse, (1, 6),
        data.decode_list_offsets, data.encode_list_offsets),
    Api(metadata.MetadataRequest, metadata.MetadataResponse, (0, 13), cluster.decode_metadata, cluster.encode_metadata),
    Api(group.OffsetCommitRequest, group.OffsetCommitResponse, (2, 9),
        groups.decode_offset_commit, groups.encode_offset_commit),
    Api(group.OffsetFetchRequest, group.OffsetFetchResponse, (1, 9),
        groups.decode_offset_fetch, groups.encode_offset_fetch),
    Api(find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse, (0, 6),
        cluster.decode_find_coordinator, cluster.encode_find_coordinator),
    Api(group.JoinGroupRequest, group.JoinGroupResponse, (0, 9), groups.decode_join, groups.encode_join),
    Api(group.HeartbeatRequest, group.HeartbeatResponse, (0, 4), groups.decode_heartbeat, groups.encode_heartbeat),
    Api(group.LeaveGroupRequest, group.LeaveGroupResponse, (0, 5), groups.decode_leave, groups.encode_leave),
    Api(group.SyncGroupRequest, group.SyncGroupResponse, (0, 5), groups.decode_sync, groups.encode_sync),
    Api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse, (0, 4),
        cluster.decode_api_versions, _api_versions),
    Api(topics.CreateTopicsRequest, topics.CreateTopicsResponse, (2, 7),
        cluster.decode_create_topics, cluster.encode_create_topics),
    Api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse, (1, 6),
        cluster.decode_delete_topics, cluster.encode_delete_topics),
    Api(transaction.InitProducerIdRequest, transaction.InitProducerIdResponse, (0, 4),
        data.decode_init_producer_id, data.encode_init_producer_id),
    Api(offsets.OffsetForLeaderEpochRequest, offsets.OffsetForLeaderEpochResponse, (2, 4),
        data.decode_offset_for_leader_epoch, data.encode_offset_for_leader_epoch),
    Api(configs.DescribeConfigsRequest, configs.DescribeConfigsResponse, (1, 4),
        cluster.decode_describe_configs, cluster.encode_describe_configs),
)  # fmt: skip
APIS: Final[dict[int, Api]] = {api.request.API_KEY: api for api in _TABLE}
#: What clients are told. Produce is advertised from 0 though 0 to 2 are refused: with a minimum of 3 an old librdkafka
#: silently sends gzip batches uncompressed (KAFKA-18659).
ADVERTISED: Final = {key: (0, api.versions[1]) if key == PRODUCE else api.versions for key, api in APIS.items()}
_FLEXIBLE_FROM: Final = {key: api.request._flexible_versions[0] for key, api in APIS.items()}  # noqa: SLF001


def decode_request(frame: memoryview, ids: TopicIds) -> tuple[plain.Header, plain.Request | core.Fetch]:
    """Header and request of one frame. An ApiVersions too new to read is answered, not refused (KIP-511).

    Raises:
        BadFrameError: anything else that is not served or cannot be read.
    """
    header, body = parse_header(frame, _FLEXIBLE_FROM)
    api = APIS.get(header.api_key)
    if api is None:
        raise BadFrameError(f"API {header.api_key} is not served")
    low, high = api.versions
    if not low <= header.version <= high:
        if header.api_key == API_VERSIONS:
            return header, plain.ApiVersionsRequest(supported=False)
        raise BadFrameError(f"{api.request.__name__} is served in versions {low} to {high}, not {header.version}")
    decoded = decode(api.request, body, header.version)
    try:
        return header, api.decode(decoded, Context(header.version, ids, header.client_id or ""))
    except (TypeError, AttributeError) as error:
        raise BadFrameError(f"{api.request.__name__} lacks something: {error}") from error


def encode_response(header: plain.Header, response: plain.Response | core.Message, ids: TopicIds) -> bytes:
    """The frame that answers ``header``. An ApiVersions with an error has version 0 (KIP-511)."""
    api, version = APIS[header.api_key], header.version
    if isinstance(response, plain.ApiVersionsResponse) and response.error != ErrorCode.NONE:
        version = 0
    fields = api.encode(response, Context(version, ids))
    tagged = header.api_key != API_VERSIONS and version >= _FLEXIBLE_FROM[header.api_key]
    return response_frame(api.response, fields, version, header.correlation, tagged_header=tagged)


def client_of(frame: memoryview) -> str | None:
    """The client id in a request's header.

    Raises:
        BadFrameError: there is no readable header.
    """
    return parse_header(frame, _FLEXIBLE_FROM)[0].client_id
