"""Kafka's wire protocol: frames to plain requests and plain responses to frames.

This package is the only one that imports ``kafka.protocol``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from harness.reference.server import requests as plain
from harness.reference.server.codec import cluster, data, groups
from harness.reference.server.codec.wire import TopicIds, decode, parse_header, response_frame
from harness.reference.server.links import BadFrameError
from harness.reference.server.requests import Header, Request

API_VERSIONS: Final = 18
PRODUCE: Final = 0


class Api(NamedTuple):
    """One API: its schema class, the versions that are served, and the two translations."""

    request: Any
    versions: tuple[int, int]
    decode: Callable[[Any, int, TopicIds], Any]
    encode: Callable[[Any, int, TopicIds], Any]


def _api_versions(answer: plain.ApiVersionsAnswer, version: int, ids: TopicIds) -> Any:
    del ids
    return cluster.encode_api_versions(ADVERTISED, answer.error, version)


def _table() -> dict[int, Api]:
    produce, fetch, offsets, epochs, init = data.REQUESTS
    versions, metadata, find, create, delete, configs = cluster.REQUESTS
    join, sync, beat, leave, commit, committed = groups.REQUESTS
    apis = (
        Api(produce, (3, 12), data.decode_produce, data.encode_produced),
        Api(fetch, (4, 16), data.decode_fetch, data.encode_fetched),
        Api(offsets, (1, 6), data.decode_list_offsets, data.encode_offsets_found),
        Api(metadata, (0, 13), cluster.decode_metadata, cluster.encode_metadata),
        Api(commit, (2, 9), groups.decode_commit, groups.encode_committed),
        Api(committed, (1, 9), groups.decode_fetch_offsets, groups.encode_offsets_fetched),
        Api(find, (0, 6), cluster.decode_find_coordinator, cluster.encode_coordinators),
        Api(join, (0, 9), groups.decode_join, groups.encode_joined),
        Api(beat, (0, 4), groups.decode_heartbeat, groups.encode_heartbeat),
        Api(leave, (0, 5), groups.decode_leave, groups.encode_left),
        Api(sync, (0, 5), groups.decode_sync, groups.encode_synced),
        Api(versions, (0, 4), cluster.decode_api_versions, _api_versions),
        Api(create, (2, 7), cluster.decode_create_topics, cluster.encode_topics_created),
        Api(delete, (1, 6), cluster.decode_delete_topics, cluster.encode_topics_deleted),
        Api(init, (0, 4), data.decode_init_producer, data.encode_producer_id),
        Api(epochs, (2, 4), data.decode_epochs_wanted, data.encode_epochs_found),
        Api(configs, (1, 4), cluster.decode_describe_configs, cluster.encode_configs),
    )
    return {api.request.API_KEY: api for api in apis}


APIS: Final = _table()
#: What clients are told. Produce is advertised from 0 though 0 to 2 are refused: with a minimum of 3 an old librdkafka
#: silently sends gzip batches uncompressed (KAFKA-18659).
ADVERTISED: Final = {key: (0, api.versions[1]) if key == PRODUCE else api.versions for key, api in APIS.items()}
_FLEXIBLE_FROM: Final = {key: api.request._flexible_versions[0] for key, api in APIS.items()}  # noqa: SLF001


def decode_request(frame: memoryview, ids: TopicIds) -> tuple[Header, Request]:
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
            return header, plain.ApiVersions(supported=False)
        raise BadFrameError(f"{api.request.__name__} is served in versions {low} to {high}, not {header.version}")
    decoded = decode(api.request, body, header.version)
    try:
        return header, api.decode(decoded, header.version, ids)
    except (TypeError, AttributeError) as error:
        raise BadFrameError(f"{api.request.__name__} lacks something: {error}") from error


def encode_response(header: Header, response: Any, ids: TopicIds) -> bytes:
    """The frame that answers ``header``."""
    api = APIS[header.api_key]
    message = api.encode(response, header.version, ids)
    tagged = header.api_key != API_VERSIONS and header.version >= _FLEXIBLE_FROM[header.api_key]
    return response_frame(message, header.correlation, tagged_header=tagged)


def client_of(frame: memoryview) -> str | None:
    """The client id in a request's header.

    Raises:
        BadFrameError: there is no readable header.
    """
    return parse_header(frame, _FLEXIBLE_FROM)[0].client_id
