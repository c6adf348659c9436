"""Calls to the bridge and its answers, as bytes: the layout is at the top of Bridge.java."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from workloads import LogPartition

_LENGTH: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_HEAD: Final = struct.Struct(">ibiq")
_ANSWER: Final = struct.Struct(">qb")
#: Bytes of the method and the two numbers, which the length of a call counts too.
_HEAD_BYTES: Final = _HEAD.size - _LENGTH.size
_NULL: Final = _LENGTH.pack(-1)


class Method(IntEnum):
    """The methods of a call."""

    NEW_PRODUCER = 1
    NEW_CONSUMER = 2
    CLOSE = 3
    SEND = 10
    INIT_TRANSACTIONS = 11
    BEGIN_TRANSACTION = 12
    SEND_OFFSETS = 13
    COMMIT_TRANSACTION = 14
    ABORT_TRANSACTION = 15
    ASSIGN = 20
    SUBSCRIBE = 21
    POLL = 22
    COMMIT = 24
    COMMITTED = 25
    ENDS = 26
    MEMBERSHIP = 27
    WAKE_UP = 28


class End(IntEnum):
    """The end of a call, or an EVENT of it.

    A REFUSED record was never taken by the producer. After a FATAL error the producer can do nothing more, after an
    ABORTABLE one its transaction was not committed, and after a RETRIABLE one the call may be made again.
    """

    DONE = 0
    FAILED = 1
    REFUSED = 2
    EVENT = 3
    ABORTABLE = 4
    FATAL = 5
    RETRIABLE = 6


def call_frame(method: Method, client: int, number: int, arguments: bytes) -> bytes:
    """The bytes of a call."""
    return _HEAD.pack(_HEAD_BYTES + len(arguments), method, client, number) + arguments


def number(value: int) -> bytes:
    """A number of 4 bytes."""
    return _LENGTH.pack(value)


def text(value: str | bytes | None) -> bytes:
    """A text, bytes, or null."""
    if value is None:
        return _NULL
    written = value.encode() if isinstance(value, str) else value
    return _LENGTH.pack(len(written)) + written


def texts(values: Iterable[str]) -> bytes:
    """A list of texts."""
    written = [text(value) for value in values]
    return number(len(written)) + b"".join(written)


def partition(name: str) -> bytes:
    """A log partition, from "topic-number"."""
    topic, index = LogPartition.named(name)
    return text(topic) + _LENGTH.pack(index)


def partitions(names: Iterable[str]) -> bytes:
    """A list of log partitions."""
    written = [partition(name) for name in names]
    return number(len(written)) + b"".join(written)


def offsets(by_partition: Mapping[str, int]) -> bytes:
    """A table of offsets by log partition."""
    written = [partition(name) + _LONG.pack(offset) for name, offset in by_partition.items()]
    return number(len(written)) + b"".join(written)


def properties(configuration: Mapping[str, object]) -> bytes:
    """A table of Kafka's properties; those without a value are left out."""
    written = [text(name) + text(_property(value)) for name, value in configuration.items() if value is not None]
    return number(len(written)) + b"".join(written)


def _property(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Answer:
    """An answer that is being read: its head is read already, then each part in its order."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self.call, end = _ANSWER.unpack_from(frame)
        self.end = End(end)
        self._next = _ANSWER.size

    def number(self) -> int:
        """A number of 4 bytes."""
        (value,) = _LENGTH.unpack_from(self._frame, self._next)
        self._next += _LENGTH.size
        return int(value)

    def long(self) -> int:
        """A number of 8 bytes."""
        (value,) = _LONG.unpack_from(self._frame, self._next)
        self._next += _LONG.size
        return int(value)

    def bytes(self) -> bytes | None:
        """Bytes, or None for null."""
        length = self.number()
        if length < 0:
            return None
        self._next += length
        return self._frame[self._next - length : self._next]

    def text(self) -> str:
        """A text; null is empty."""
        return (self.bytes() or b"").decode()

    def partition(self) -> str:
        """A log partition, as "topic-number"."""
        topic = self.text()
        return str(LogPartition(topic, self.number()))

    def partitions(self) -> tuple[str, ...]:
        """A list of log partitions."""
        return tuple(self.partition() for _ in range(self.number()))

    def properties(self) -> dict[str, str]:
        """A table of properties, of those that have a value."""
        values = {self.text(): self.bytes() for _ in range(self.number())}
        return {name: value.decode() for name, value in values.items() if value is not None}

    def offsets(self) -> dict[str, int]:
        """A table of offsets by log partition."""
        return {self.partition(): self.long() for _ in range(self.number())}
