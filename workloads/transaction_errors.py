"""The one table of errors of transactional producers: each has a class, and the class says what is done next.

The client's own word comes first (librdkafka's ``fatal``, ``txn_requires_abort`` and ``retriable``, the state of the
transaction manager of kafka-python and of Kafka's Java client). Where it has none, the name of the error decides:

* *fatal*: this producer can do nothing more. A new instance takes its place.
* *abortable*: nothing of the transaction was committed, and it can only be aborted. It is.
* *retriable*: the same call may be made again. It is, some times, except for a commit and an abort.
* *unknown*: nothing is known. It is recorded as ``info``, and a new instance takes the producer's place.

A commit or an abort that timed out may be under way, so no other call may follow (KafkaProducer): it is unknown. After
a send that failed nothing is done: an application need not look, and a commit must say it. Each name has its source:
the proposal (KIP), a client's documentation, or this harness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple

Call = Literal["init", "begin", "send", "send_offsets", "commit", "abort"]


class ErrorClass(StrEnum):
    """The class of an error of a transactional producer."""

    FATAL = "fatal"
    ABORTABLE = "abortable"
    RETRIABLE = "retriable"
    UNKNOWN = "unknown"


class KnownError(NamedTuple):
    """The class of an error, and the source that says so."""

    error_class: ErrorClass
    source: str


_FATAL, _ABORTABLE, _RETRIABLE = ErrorClass.FATAL, ErrorClass.ABORTABLE, ErrorClass.RETRIABLE
#: Errors that are "application-recoverable", or of the configuration, are fatal to a producer.
_KIP_1050: Final = "KIP-1050"
_OWN: Final = "this harness: the library may still be at work"

#: By the names of Kafka's protocol; librdkafka's own begin with a line, as it spells them.
TRANSACTION_ERRORS: Final[Mapping[str, KnownError]] = {
    # Another instance has taken over, or this one can never work.
    "PRODUCER_FENCED": KnownError(_FATAL, "KIP-98, KIP-1050"),
    "INVALID_PRODUCER_EPOCH": KnownError(_FATAL, _KIP_1050),
    "INVALID_PRODUCER_ID_MAPPING": KnownError(_FATAL, _KIP_1050),
    "INVALID_TXN_STATE": KnownError(_FATAL, "KIP-98"),
    "INVALID_TRANSACTION_TIMEOUT": KnownError(_FATAL, "KIP-98"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": KnownError(_FATAL, _KIP_1050),
    "CLUSTER_AUTHORIZATION_FAILED": KnownError(_FATAL, _KIP_1050),
    "SASL_AUTHENTICATION_FAILED": KnownError(_FATAL, _KIP_1050),
    "UNSUPPORTED_VERSION": KnownError(_FATAL, _KIP_1050),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": KnownError(_FATAL, _KIP_1050),
    "_FATAL": KnownError(_FATAL, "librdkafka"),
    # The broker's state of this transaction is of no use, or the offsets are not the member's any more.
    "TRANSACTION_ABORTABLE": KnownError(_ABORTABLE, "KIP-890"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": KnownError(_ABORTABLE, "KIP-360"),
    "UNKNOWN_PRODUCER_ID": KnownError(_ABORTABLE, "KIP-360"),
    "COMMIT_FAILED": KnownError(_ABORTABLE, "KafkaProducer.sendOffsetsToTransaction"),
    "UNKNOWN_MEMBER_ID": KnownError(_ABORTABLE, "KIP-447"),
    "ILLEGAL_GENERATION": KnownError(_ABORTABLE, "KIP-447"),
    "FENCED_INSTANCE_ID": KnownError(_ABORTABLE, "KIP-447"),
    # Nothing was done, or it is not known yet.
    "COORDINATOR_LOAD_IN_PROGRESS": KnownError(_RETRIABLE, _KIP_1050),
    "COORDINATOR_NOT_AVAILABLE": KnownError(_RETRIABLE, _KIP_1050),
    "NOT_COORDINATOR": KnownError(_RETRIABLE, _KIP_1050),
    "CONCURRENT_TRANSACTIONS": KnownError(_RETRIABLE, _KIP_1050),
    "UNSTABLE_OFFSET_COMMIT": KnownError(_RETRIABLE, _KIP_1050),
    "NETWORK_EXCEPTION": KnownError(_RETRIABLE, _KIP_1050),
    "REQUEST_TIMED_OUT": KnownError(_RETRIABLE, _KIP_1050),
    "TIMEOUT": KnownError(_RETRIABLE, "KIP-1050, librdkafka"),
    # Not the library's word.
    "TIME_LIMIT": KnownError(ErrorClass.UNKNOWN, _OWN),
    "CLIENT_CLOSED": KnownError(ErrorClass.UNKNOWN, _OWN),
    "CLIENT_CRASHED": KnownError(ErrorClass.UNKNOWN, _OWN),
}

#: Other names of the same errors: librdkafka's own, and those of classes that are not the protocol's name.
ALIASES: Final[Mapping[str, str]] = {
    "_FENCED": "PRODUCER_FENCED",
    "_TIMED_OUT": "TIMEOUT",
    "_MSG_TIMED_OUT": "TIMEOUT",
    "_TRANSPORT": "NETWORK_EXCEPTION",
    "_ALL_BROKERS_DOWN": "NETWORK_EXCEPTION",
    "KAFKA_TIMEOUT": "TIMEOUT",
    "KAFKA_CONNECTION": "NETWORK_EXCEPTION",
    "NETWORK": "NETWORK_EXCEPTION",
    "DISCONNECT": "NETWORK_EXCEPTION",
    "INVALID_PID_MAPPING": "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TXN_TIMEOUT": "INVALID_TRANSACTION_TIMEOUT",
    "OUT_OF_ORDER_SEQUENCE": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "TRANSACTIONAL_ID_AUTHORIZATION": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION": "CLUSTER_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION": "SASL_AUTHENTICATION_FAILED",
}
_NEXT_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kafka_name(error: str) -> str:
    """Kafka's name of an error that a client names, maybe with words after a colon: "ProducerFencedException: ..."."""
    name = error.partition(":")[0]
    if not name.isupper():
        name = _NEXT_WORD.sub("_", name.removesuffix("Exception").removesuffix("Error")).upper()
    return ALIASES.get(name, name)


def class_of(call: Call, error: str, own: ErrorClass | None = None) -> ErrorClass:
    """The class of the error with which a call ended; ``own`` is the class that the client itself gives it."""
    row = TRANSACTION_ERRORS.get(kafka_name(error))
    said = own or (row.error_class if row else None)
    if call == "send":
        # Whatever it was: the record was not acknowledged, and a commit needs all of them (KafkaProducer.send).
        return ErrorClass.ABORTABLE if said in (None, ErrorClass.RETRIABLE) else said
    if call in ("commit", "abort") and said is ErrorClass.RETRIABLE:
        return ErrorClass.UNKNOWN
    return said or ErrorClass.UNKNOWN
