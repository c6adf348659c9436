"""The wire protocols: frames to requests and the fields of responses to frames.

Clients and followers use Kafka's protocol (this door, and :mod:`follower`), brokers and the controller one of their
own (:mod:`controller_frames`). A request is an object of kafka-python's class, a response a dictionary; both have the
fields of Kafka's own message schemas, which are its documentation (https://kafka.apache.org/protocol). A field that a
request's version does not have has the schema's default; one that a response's version does not have is left out.
Only this package and :mod:`harness.worlds.clients` (clients without a library) import ``kafka.protocol``.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import configs, groups, topics, transactions
from kafka.protocol.consumer import fetch, group, offsets
from kafka.protocol.metadata import api_versions, find_coordinator, metadata
from kafka.protocol.producer import produce, transaction

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey, Fields, Header, decode, parse_header, response_frame
from harness.broker.server.links import BadFrameError


class Api(NamedTuple):
    """One API: kafka-python's classes, and the versions (first and last) that are served."""

    request: Any
    response: Any
    versions: tuple[int, int]


_TABLE: Final = (
    Api(produce.ProduceRequest, produce.ProduceResponse, (3, 12)),
    Api(fetch.FetchRequest, fetch.FetchResponse, (4, 16)),
    Api(offsets.ListOffsetsRequest, offsets.ListOffsetsResponse, (1, 6)),
    Api(metadata.MetadataRequest, metadata.MetadataResponse, (0, 13)),
    Api(group.OffsetCommitRequest, group.OffsetCommitResponse, (2, 9)),
    Api(group.OffsetFetchRequest, group.OffsetFetchResponse, (1, 9)),
    Api(find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse, (0, 6)),
    Api(group.JoinGroupRequest, group.JoinGroupResponse, (0, 9)),
    Api(group.HeartbeatRequest, group.HeartbeatResponse, (0, 4)),
    Api(group.LeaveGroupRequest, group.LeaveGroupResponse, (0, 5)),
    Api(group.SyncGroupRequest, group.SyncGroupResponse, (0, 5)),
    Api(groups.DescribeGroupsRequest, groups.DescribeGroupsResponse, (0, 5)),
    Api(groups.ListGroupsRequest, groups.ListGroupsResponse, (0, 5)),
    Api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse, (0, 4)),
    Api(topics.CreateTopicsRequest, topics.CreateTopicsResponse, (2, 7)),
    Api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse, (1, 6)),
    Api(transaction.InitProducerIdRequest, transaction.InitProducerIdResponse, (0, 4)),
    Api(transaction.AddPartitionsToTxnRequest, transaction.AddPartitionsToTxnResponse, (0, 3)),
    Api(transaction.AddOffsetsToTxnRequest, transaction.AddOffsetsToTxnResponse, (0, 4)),
    Api(transaction.EndTxnRequest, transaction.EndTxnResponse, (0, 4)),
    Api(transaction.WriteTxnMarkersRequest, transaction.WriteTxnMarkersResponse, (1, 2)),
    Api(transaction.TxnOffsetCommitRequest, transaction.TxnOffsetCommitResponse, (0, 4)),
    Api(offsets.OffsetForLeaderEpochRequest, offsets.OffsetForLeaderEpochResponse, (2, 4)),
    Api(configs.DescribeConfigsRequest, configs.DescribeConfigsResponse, (1, 4)),
    Api(groups.DeleteGroupsRequest, groups.DeleteGroupsResponse, (0, 2)),
    Api(group.OffsetDeleteRequest, group.OffsetDeleteResponse, (0, 0)),
    Api(transactions.DescribeProducersRequest, transactions.DescribeProducersResponse, (0, 0)),
    Api(transactions.DescribeTransactionsRequest, transactions.DescribeTransactionsResponse, (0, 0)),
    Api(transactions.ListTransactionsRequest, transactions.ListTransactionsResponse, (0, 1)),
)
APIS: Final[dict[int, Api]] = {api.request.API_KEY: api for api in _TABLE}
#: By number, requests of programs and of their admin clients that are not served: name, and who sends it.
NOT_SERVED: Final[dict[int, tuple[str, str]]] = {
    21: ("DeleteRecords", "Kafka Streams with repartition topics, which tries again and goes on"),
    33: ("AlterConfigs", "admin clients"),
    37: ("CreatePartitions", "admin clients"),
    44: ("IncrementalAlterConfigs", "admin clients"),
    60: ("DescribeCluster", "admin clients, which ask for metadata instead where they can"),
    68: ("ConsumerGroupHeartbeat", "consumers with group.protocol=consumer (KIP-848)"),
    71: ("GetTelemetrySubscriptions", "Java clients, which go on without"),
    75: ("DescribeTopicPartitions", "admin clients of 3.8 and later, which ask for metadata instead"),
    76: ("ShareGroupHeartbeat", "share consumers (KIP-932)"),
    88: ("StreamsGroupHeartbeat", "Kafka Streams with group.protocol=streams (KIP-1071)"),
}
#: The versions that clients see. Produce is advertised from 0 though 0 to 2 are refused: with a minimum of 3 an old
#: librdkafka silently sends gzip batches uncompressed (KAFKA-18659).
ADVERTISED: Final = {key: (0, api.versions[1]) if key == ApiKey.PRODUCE else api.versions for key, api in APIS.items()}
#: The begin of a consumer's subscription: its version and the number of topics. Each has its length before it.
_SUBSCRIPTION: Final = struct.Struct(">hi")
_LENGTH: Final = struct.Struct(">h")
#: An API without flexible versions is not here.
_FLEXIBLE_FROM: Final = {
    key: first
    for key, api in APIS.items()
    if (first := api.request._flexible_versions[0]) >= 0  # noqa: SLF001
}


def decode_request(frame: memoryview) -> tuple[Header, Any]:
    """Header and request of one frame. An ApiVersions too new to read is None: it is answered all the same (KIP-511).

    Raises:
        BadFrameError: anything else that is not served or cannot be read.
    """
    header, body = parse_header(frame, _FLEXIBLE_FROM)
    api = APIS.get(header.api_key)
    if api is None:
        name = NOT_SERVED.get(header.api_key, ("an API of Kafka's", ""))[0]
        raise BadFrameError(f"{name} (API {header.api_key}) is not served")
    low, high = api.versions
    if low <= header.version <= high:
        return header, decode(api.request, body, header.version)
    if header.api_key == ApiKey.API_VERSIONS:
        return header, None
    raise BadFrameError(f"{api.request.__name__} is served in versions {low} to {high}, not {header.version}")


def encode_response(header: Header, fields: Fields) -> bytes:
    """The frame that answers ``header``. An ApiVersions with an error has version 0 (KIP-511)."""
    key, version = header.api_key, header.version
    if key == ApiKey.API_VERSIONS and fields["error_code"] != ErrorCode.NONE:
        version = 0
    tagged = key != ApiKey.API_VERSIONS and version >= _FLEXIBLE_FROM.get(key, version + 1)
    return response_frame(APIS[key].response, fields, version, header.correlation, tagged_header=tagged)


def subscribed_topics(metadata: bytes) -> set[str] | None:
    """The topics with which a consumer's part of a JoinGroup begins, any version; None where it is no such part."""
    try:
        _, count = _SUBSCRIPTION.unpack_from(metadata)
        position, topics = _SUBSCRIPTION.size, set()
        for _ in range(count):
            begin = position + _LENGTH.size
            position = begin + _LENGTH.unpack_from(metadata, position)[0]
            topics.add(str(metadata[begin:position], "utf-8"))
    except (struct.error, UnicodeDecodeError):
        return None
    return topics


def client_of(frame: memoryview) -> str | None:
    """The client id in a request's header.

    Raises:
        BadFrameError: there is no readable header.
    """
    return parse_header(frame, _FLEXIBLE_FROM)[0].client_id
