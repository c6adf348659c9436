"""Messages of a client that is a program: a JSON object a line, calls to its standard input, answers from its output.

Bytes are base64. A key that is left out is null. The page for those who write such a program is
docs/guides/client-programs.md; :data:`PROTOCOL` counts its changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal, TypeVar

import msgspec

from workloads import ClientCapability, GroupProtocol, LogPartition

#: The version of the protocol, which a program says in its first line.
PROTOCOL: Final = 1
#: The capabilities that a program can have.
CAPABILITIES: Final = (
    ClientCapability.TRANSACTIONS,
    ClientCapability.TOMBSTONES,
    ClientCapability.SUBSCRIPTION,
    ClientCapability.COMMITS,
)


class Method(StrEnum):
    """The methods of a call."""

    NEW_PRODUCER = "new_producer"
    NEW_CONSUMER = "new_consumer"
    CLOSE = "close"
    CRASH = "crash"
    SEND = "send"
    INIT_TRANSACTIONS = "init_transactions"
    BEGIN_TRANSACTION = "begin_transaction"
    SEND_OFFSETS = "send_offsets"
    COMMIT_TRANSACTION = "commit_transaction"
    ABORT_TRANSACTION = "abort_transaction"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    POLL = "poll"
    COMMIT = "commit"
    COMMITTED = "committed"
    ENDS = "ends"
    MEMBERSHIP = "membership"
    WAKE_UP = "wake_up"


class End(StrEnum):
    """The end of a call: it was done, it certainly had no effect, or neither is certain."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class ToldClass(StrEnum):
    """The class of an error.

    A REFUSED record was never taken by the library. After a FATAL error the client can do nothing more, after an
    ABORTABLE one its transaction was not committed, and after a RETRIABLE one the call may be made again.
    """

    REFUSED = "refused"
    FAILED = "failed"
    ABORTABLE = "abortable"
    FATAL = "fatal"
    RETRIABLE = "retriable"


class ToldPartition(msgspec.Struct, frozen=True, gc=False):
    """A log partition."""

    topic: str
    partition: int

    @property
    def name(self) -> str:
        """The name that the harness gives it: "topic-number"."""
        return str(LogPartition(self.topic, self.partition))


class Offset(ToldPartition, frozen=True, gc=False):
    """An offset of a log partition; None is its start."""

    offset: int | None


class ToldRecord(ToldPartition, frozen=True, kw_only=True, gc=False):
    """A record that a poll handed over. A tombstone has no value."""

    offset: int
    key: bytes | None = None
    value: bytes | None = None
    headers: dict[str, bytes] | None = None


class ProgramCall(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A call: its ``method``, the numbers of the client and of the call, and what the method takes."""

    method: Method
    client: int
    call: int = 0
    properties: dict[str, str] | None = None
    topic: str | None = None
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: dict[str, bytes] | None = None
    topics: tuple[str, ...] | None = None
    partitions: list[ToldPartition] | None = None
    offsets: list[Offset] | None = None
    member: dict[str, object] | None = None
    timeout_ms: int | None = None


class Answer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The answer to a call, which has an ``end``, or news of it, which has an ``event``."""

    call: int
    end: End | None = None
    event: Literal["assigned"] | None = None
    told_class: ToldClass | None = msgspec.field(default=None, name="class")
    error: str | None = None
    words: str | None = None
    offset: int | None = None
    records: list[ToldRecord] | None = None
    offsets: list[Offset] | None = None
    member: dict[str, object] | None = None
    partitions: list[ToldPartition] | None = None
    generation: int | None = None


class ProgramHello(msgspec.Struct, kw_only=True, frozen=True):
    """The first line of a program: the version of the protocol, its library, and what that can do and does by itself.

    ``defaults`` are the library's own properties by role, "producer" and "consumer", as far as it tells them.
    """

    hello: int
    name: str
    version: str
    capabilities: tuple[ClientCapability, ...] = ()
    protocols: tuple[GroupProtocol, ...] = ("classic",)
    defaults: dict[Literal["producer", "consumer"], dict[str, str]] = {}


#: The longest part of a line that a sentence shows.
_SHOWN_MAX: Final = 120
_ENCODER: Final = msgspec.json.Encoder()
_ANSWERS: Final = msgspec.json.Decoder(Answer)
_HELLOS: Final = msgspec.json.Decoder(ProgramHello)
#: The key that the answer to a call must have where it ended well.
_NEEDED: Final[Mapping[Method, str]] = {
    Method.POLL: "records",
    Method.ENDS: "offsets",
    Method.COMMITTED: "offsets",
    Method.MEMBERSHIP: "member",
}


class ProtocolError(Exception):
    """The program does not keep to the protocol; the text says what it did, and what to mend."""


def line_of(call: ProgramCall) -> bytes:
    """The line of a call."""
    return _ENCODER.encode(call) + b"\n"


def hello_in(line: bytes) -> ProgramHello:
    """The first line of a program.

    Raises:
        ProtocolError: it does not say hello, or is of another version.
    """
    hello = _read(_HELLOS, line, "begins with")
    if strange := [each for each in hello.capabilities if each not in CAPABILITIES]:
        raise ProtocolError(f"says that it has {strange[0]}; the protocol knows {', '.join(CAPABILITIES)}")
    if hello.hello != PROTOCOL:
        raise ProtocolError(f'speaks version {hello.hello} of the protocol, and ackproof {PROTOCOL}; say "hello": 1')
    return hello


def answer_in(line: bytes) -> Answer:
    """A later line of a program.

    Raises:
        ProtocolError: it is no answer and no event.
    """
    answer = _read(_ANSWERS, line, "answers")
    if (answer.end is None) == (answer.event is None):
        raise ProtocolError(f'answers call {answer.call} with {_shown(line)}; write an "end" or an "event"')
    return answer


def refuse_incomplete(answer: Answer, method: Method) -> None:
    """Refuse an answer or event without a key that it must have (ProtocolError)."""
    needed = _NEEDED.get(method, "")
    if answer.event is not None:
        needed = "partitions"
    elif answer.end is not End.OK:
        needed = "error"
    if needed and getattr(answer, needed) in (None, ""):
        raise ProtocolError(f'answers call {answer.call} ({method}) without "{needed}"')


def partitions_of(names: Iterable[str]) -> list[ToldPartition]:
    """Log partitions, from "topic-number"."""
    return [ToldPartition(*LogPartition.named(name)) for name in names]


def offsets_of(by_partition: Mapping[str, int | None]) -> list[Offset]:
    """Offsets of log partitions, from "topic-number"."""
    return [Offset(*LogPartition.named(name), offset) for name, offset in by_partition.items()]


def properties_of(configuration: Mapping[str, object]) -> dict[str, str]:
    """Kafka's properties as texts; those without a value are left out."""
    return {name: _property(value) for name, value in configuration.items() if value is not None}


def _property(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


Message = TypeVar("Message", Answer, ProgramHello)


def _read(decoder: msgspec.json.Decoder[Message], line: bytes, does: str) -> Message:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"{does} {_shown(line)}: {error}") from error
    except msgspec.DecodeError as error:
        raise ProtocolError(
            f"wrote {_shown(line)} to standard output, which is for answers; write such lines to standard error"
        ) from error


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}...")
