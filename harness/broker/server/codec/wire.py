"""Frames, headers, and the way into and out of the classes that kafka-python generates from Kafka's message schemas.

kafka.protocol is internal API of a pinned release: only this package and clients without a library import it. Its
decoder slices past the end of what it was given without complaint, so a body counts as understood only if it was used
up exactly. Its objects are made from nested dictionaries of fields under the schemas' names; the encoder leaves out
what a version does not have.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from harness.broker.core.types import TopicPartition, TopicState
from harness.broker.server.links import BadFrameError

_FIXED: Final = struct.Struct(">hhih")
_NAMESPACE: Final = uuid.UUID("5c2f3f4e-2f5e-4d0e-9d0e-0d6b5f6b8f11")
_NO_TOPIC: Final = uuid.UUID(int=0)
#: Begins the stand-in for the name of a topic that is known only by an id. A colon is impossible in real names.
_UNNAMED: Final = "id:"
#: The simple types of Kafka's schemas whose encoding has a null.
_NULLABLE_TYPES: Final = ("string", "bytes", "records")

#: The fields of a schema's struct; a nested struct is such a dictionary again, an array of structs a list of them.
Fields = dict[str, Any]


class TopicIds:
    """Topic ids and names (KIP-516). An id is computed from the controller's image of a topic, everywhere alike."""

    def __init__(self) -> None:
        self._names: dict[uuid.UUID, str] = {}
        self._ids: dict[str, uuid.UUID] = {}

    def learn(self, topics: Mapping[str, TopicState]) -> None:
        """These are all topics there are."""
        self._ids = {name: uuid.uuid5(_NAMESPACE, f"{topic.identity} {name}") for name, topic in topics.items()}
        self._names = {identity: name for name, identity in self._ids.items()}

    def name(self, identity: uuid.UUID | None) -> str:
        """The topic's name, or a stand-in that no topic has and :meth:`identity` turns back."""
        return self._names.get(identity) or f"{_UNNAMED}{identity}" if identity else f"{_UNNAMED}{_NO_TOPIC}"

    def identity(self, name: str) -> uuid.UUID:
        """The topic's id, the one without meaning (zero) for a topic that does not exist."""
        if name.startswith(_UNNAMED):
            return uuid.UUID(name.removeprefix(_UNNAMED))
        return self._ids.get(name, _NO_TOPIC)


class ApiKey(IntEnum):
    """Kafka's numbers of the requests that are served."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66


class Header(NamedTuple):
    """The begin of every request. ``client_id`` is None where the client gave none."""

    api_key: int
    version: int
    correlation: int
    client_id: str | None


def parse_header(frame: memoryview, flexible_from: dict[int, int]) -> tuple[Header, memoryview]:
    """The request header and the body after it; ``flexible_from`` is the version from which an API's header has tags.

    Raises:
        BadFrameError: the frame is too short or the client id is not text.
    """
    try:
        key, version, correlation, length = _FIXED.unpack_from(frame)
        position = _FIXED.size + max(length, 0)
        client = str(frame[_FIXED.size : position], "utf-8") if length >= 0 else None
        if position > len(frame):
            raise BadFrameError("the header is longer than the request")
        if version >= flexible_from.get(key, version + 1):
            position = _skip_tags(frame, position)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise BadFrameError(f"the header cannot be read: {error}") from error
    return Header(key, version, correlation, client), frame[position:]


def _skip_tags(frame: memoryview, position: int) -> int:
    count, position = _varint(frame, position)
    for _ in range(count):
        _, position = _varint(frame, position)
        size, position = _varint(frame, position)
        position += size
    return position


def _varint(frame: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35:
        byte = frame[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise BadFrameError("a variable-length number has more than five bytes")


#: Requests that may go on after their end, where Kafka stops reading. librdkafka, 2.12.1 among its versions, writes the
#: length of no topics in four bytes for one (https://github.com/confluentinc/librdkafka/issues/5049).
TOO_LONG: Final = frozenset({"MetadataRequest"})


def decode(message: Any, body: memoryview, version: int) -> Any:
    """``body`` as an object of the kafka-python class ``message``, with a value in every field that may not be null.

    Raises:
        BadFrameError: the body is of another kind, ends early, goes on after its end, or lacks a field.
    """
    flexible = message.flexible_version_q(version)
    reader = message._struct.compiled_decode_from(  # noqa: SLF001 - the public decode() does not say where it stopped
        version, compact=flexible, tagged=flexible, data_class=message[None]
    )
    try:
        decoded, end = reader(body, 0)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BadFrameError(f"{message.__name__} version {version} cannot be read: {reason}") from error
    if end > len(body) or (end < len(body) and message.__name__ not in TOO_LONG):
        raise BadFrameError(f"{message.__name__} version {version} takes {end} bytes and has {len(body)}")
    _check_nulls(message, decoded, version)
    return decoded


def _check_nulls(schema: Any, decoded: Any, version: int) -> None:
    """Refuse a null where Kafka's schema allows none: the decoder accepts it."""
    for name, nullable, inner in _references(schema, version):
        value = getattr(decoded, name)
        if value is None and not nullable:
            raise BadFrameError(f"{schema.__name__} version {version} lacks {name}")
        if value is not None and inner is not None:
            for each in value if isinstance(value, list) else (value,):
                _check_nulls(inner, each, version)


@cache
def _references(schema: Any, version: int) -> list[tuple[str, bool, Any]]:
    """Every field of ``version`` that is not a number, with its name, may it be null, and the struct in it."""
    structs = _structs(schema)
    return [
        (name, field.nullable_for_version_q(version) or field.tagged_field_q(version), structs.get(name))
        for name, field in schema.fields.items()
        if field.for_version_q(version) and (field.is_array() or name in structs or field.type_str in _NULLABLE_TYPES)
    ]


def by_partition(
    topics: Iterable[Any], *, name: str = "name", partitions: str = "partitions", index: str = "partition_index"
) -> Iterator[tuple[TopicPartition, Any]]:
    """Every partition's part of a decoded message that has topics with partitions in them, in its order."""
    for topic in topics:
        for part in getattr(topic, partitions):
            yield TopicPartition(getattr(topic, name), getattr(part, index)), part


def by_topic(
    parts: Iterable[tuple[TopicPartition, Fields]],
    *,
    name: str = "name",
    partitions: str = "partitions",
    index: str = "partition_index",
) -> list[Fields]:
    """The opposite of :func:`by_partition`: neighbouring partitions of one topic together, order kept."""
    return [
        {name: topic, partitions: [{index: partition.partition, **fields} for partition, fields in group]}
        for topic, group in groupby(parts, key=lambda part: part[0].topic)
    ]


def fields_of(parts: Iterable[Any], **attributes: str) -> Iterator[tuple[TopicPartition, Fields]]:
    """For :func:`by_topic`: of every part its ``partition``, and its ``attributes`` by the field that each fills."""
    getters = {field: attrgetter(attribute) for field, attribute in attributes.items()}
    return ((part.partition, {field: get(part) for field, get in getters.items()}) for part in parts)


@cache
def _structs(schema: Any) -> dict[str, Any]:
    """The classes of those fields that are structs or arrays of them."""
    return {
        name: field.data_class for name, field in schema.fields.items() if field.is_struct() or field.is_struct_array()
    }


def made(schema: Any, version: int, fields: Fields) -> Any:
    """``fields`` as the kafka-python class ``schema``, nested structs included. What is not given has its default."""
    values = fields.copy()
    for name, inner in _structs(schema).items():
        if value := fields.get(name):
            nested = isinstance(value, dict)
            values[name] = made(inner, version, value) if nested else [made(inner, version, each) for each in value]
    return schema(version=version, **values)


def request_frame(schema: Any, fields: Fields, version: int, correlation: int, client_id: str) -> bytes:
    """A whole request frame."""
    name = client_id.encode()
    header = _FIXED.pack(schema.API_KEY, version, correlation, len(name)) + name
    return _frame(header, schema, fields, version, tagged_header=schema.flexible_version_q(version))


def response_frame(schema: Any, fields: Fields, version: int, correlation: int, *, tagged_header: bool) -> bytes:
    """A whole response frame. The header has tags in flexible versions, but never for ApiVersions (KIP-511)."""
    header = correlation.to_bytes(4, "big", signed=True)
    return _frame(header, schema, fields, version, tagged_header=tagged_header)


def _frame(header: bytes, schema: Any, fields: Fields, version: int, *, tagged_header: bool) -> bytes:
    body = made(schema, version, fields).encode(version=version)
    tags = b"\0" if tagged_header else b""
    return b"".join(((len(header) + len(tags) + len(body)).to_bytes(4, "big"), header, tags, body))
