"""The one table of send outcomes: it says which of a client's errors prove that a write did not happen.

``FAIL`` is a proof, so an error earns it only if every attempt of the client must have ended the same way. A producer
retries by itself and reports the error of its last attempt; an earlier attempt may have ended with a lost connection
*after* the leader appended. So an error is ``FAIL`` only where the refusal depends on nothing but the record and the
fixed settings, or where the client refused the record before it took it. Everything else is ``INFO``, and so is every
name that is not listed here (KAFKA-13574: not even a leader's plain "I do not lead" is definite).

Names are kafka-python's classes; :data:`JAVA_NAMES` has those of Kafka's Java client. A client reports what it did not
send under the same class as what it sent and lost sight of (``KafkaTimeoutError`` for a full buffer, for missing
metadata, and for a batch that expired in flight), so an adapter that sees ``send`` itself raise reports
:data:`NEVER_SENT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from workloads.operations import EventType

#: Used by an adapter when the client refused a record before taking it: nothing ever left.
NEVER_SENT: Final = "NeverSent"
#: Reason of an adapter that refuses records after its client gave up all sends for good; the client's error follows.
GAVE_UP: Final = "the client had given up"
#: Used by an adapter when the client was closed with the send outstanding.
CLIENT_CLOSED: Final = "ClientClosed"
#: Used by an adapter when the client was made to crash with the send outstanding.
CLIENT_CRASHED: Final = "ClientCrashed"
#: Used by an adapter when its own time limit passed without an answer from the client.
TIME_LIMIT: Final = "TimeLimit"


#: Words in a refusal for which the client is not to blame: it waits for metadata, for room in its buffer or for answers
#: to other sends, or the record is too large.
_NO_FAULT_OF_THE_CLIENT: Final = (
    "KafkaTimeoutError", "BufferError", "are outstanding", "MessageSizeTooLargeError", "MSG_SIZE_TOO_LARGE",
    "TimeoutException", "BufferExhaustedException", "RecordTooLargeException",
)  # fmt: skip


class Classification(NamedTuple):
    """The outcome of a write that an error proves, and why."""

    type: EventType
    reason: str


_OK, _FAIL, _INFO = EventType.OK, EventType.FAIL, EventType.INFO

#: Every error that a send is known to end with.
ERRORS: Final[dict[str, Classification]] = {
    # The answer of the log when the record is there.
    "NoError": Classification(_OK, "the log took the record"),
    # Refusals that every attempt must have met.
    NEVER_SENT: Classification(_FAIL, "the client refused the record before taking it"),
    "MessageSizeTooLargeError": Classification(_FAIL, "the record's size does not change between attempts"),
    "RecordListTooLargeError": Classification(_FAIL, "the batch's size does not change between attempts"),
    "InvalidTopicError": Classification(_FAIL, "the topic's name is illegal for every broker"),
    "InvalidRequiredAcksError": Classification(
        _FAIL, "acks is fixed for the producer's life and checked before append"
    ),
    "InvalidRecordError": Classification(_FAIL, "the same bytes fail the same validation, before append"),
    "UnsupportedCodecError": Classification(_FAIL, "raised by the client's encoder, before a request exists"),
    # Refused at the last attempt, but an earlier one may have been appended and its answer lost.
    "NotEnoughReplicasError": Classification(_INFO, "min ISR was met at an earlier attempt, maybe"),
    "NotLeaderForPartitionError": Classification(
        _INFO, "also completes a parked write after an election (KAFKA-13574)"
    ),
    "LeaderNotAvailableError": Classification(_INFO, "an earlier attempt met a leader, maybe"),
    "FencedLeaderEpochError": Classification(_INFO, "an earlier attempt met an older epoch, maybe"),
    "UnknownLeaderEpochError": Classification(_INFO, "an earlier attempt met another broker, maybe"),
    "UnknownTopicOrPartitionError": Classification(_INFO, "a broker with old metadata answers so too"),
    "ReplicaNotAvailableError": Classification(_INFO, "an earlier attempt met a leader, maybe"),
    "KafkaStorageError": Classification(_INFO, "the disk failed before, during or after the append"),
    "CorruptRecordError": Classification(_INFO, "bytes broken on the way; an earlier attempt arrived whole, maybe"),
    "InvalidTimestampError": Classification(_INFO, "judged by the broker's clock, which differs between attempts"),
    "TopicAuthorizationFailedError": Classification(_INFO, "the right was withdrawn between attempts, maybe"),
    "ClusterAuthorizationFailedError": Classification(_INFO, "the right was withdrawn between attempts, maybe"),
    "UnsupportedForMessageFormatError": Classification(_INFO, "depends on the broker's version, maybe mixed"),
    "UnsupportedVersionError": Classification(_INFO, "depends on the broker's version, maybe mixed"),
    "ThrottlingQuotaExceededError": Classification(_INFO, "an earlier attempt was not throttled, maybe"),
    # Appended, or maybe appended.
    "NotEnoughReplicasAfterAppendError": Classification(_INFO, "the record is in the leader's log (rule 4)"),
    "RequestTimedOutError": Classification(_INFO, "appended, and not replicated in time (rule 5)"),
    "UnknownError": Classification(_INFO, "the broker failed somewhere"),
    # Sequence numbers: the broker's memory of this producer and the producer's own disagree.
    "DuplicateSequenceNumberError": Classification(_INFO, "a batch with this number is in the log; this one, maybe"),
    "OutOfOrderSequenceNumberError": Classification(_INFO, "state was lost on one side; earlier attempts unknown"),
    "UnknownProducerIdError": Classification(_INFO, "state was lost on the broker; earlier attempts unknown"),
    "InvalidProducerEpochError": Classification(_INFO, "fenced now; an earlier attempt was not, maybe"),
    "ProducerFencedError": Classification(_INFO, "fenced now; an earlier attempt was not, maybe"),
    # The client lost sight of the record.
    "KafkaTimeoutError": Classification(_INFO, "expired in the buffer or in flight: the class is the same"),
    "KafkaConnectionError": Classification(_INFO, "the connection broke with the request under way"),
    "NetworkExceptionError": Classification(_INFO, "the connection broke with the request under way"),
    "CorrelationIdError": Classification(_INFO, "the answer could not be matched"),
    "InvalidReceiveError": Classification(_INFO, "the answer could not be read"),
    "KafkaProtocolError": Classification(_INFO, "the answer could not be read"),
    "Cancelled": Classification(_INFO, "given up with the request under way, maybe"),
    "NodeNotReadyError": Classification(_INFO, "an earlier attempt met a ready node, maybe"),
    "TooManyInFlightRequests": Classification(_INFO, "an earlier attempt went out, maybe"),
    "StaleMetadata": Classification(_INFO, "an earlier attempt went out, maybe"),
    "IllegalStateError": Classification(_INFO, "closed by force: the batch was under way, maybe"),
    "KafkaError": Classification(_INFO, "too general to prove anything"),
    CLIENT_CLOSED: Classification(_INFO, "closed with the send outstanding"),
    CLIENT_CRASHED: Classification(_INFO, "gone with the send outstanding"),
    TIME_LIMIT: Classification(_INFO, "no answer in time"),
}

#: The classes of Kafka's Java client (org.apache.kafka.common.errors) and their names above; others prove nothing. A
#: record of a batch that was refused because of another record has a plain KafkaException (KIP-467).
JAVA_NAMES: Final[Mapping[str, str]] = {
    "RecordTooLargeException": "MessageSizeTooLargeError",
    "RecordBatchTooLargeException": "RecordListTooLargeError",
    "InvalidTopicException": "InvalidTopicError",
    "InvalidRequiredAcksException": "InvalidRequiredAcksError",
    "InvalidRecordException": "InvalidRecordError",
    "NotEnoughReplicasException": "NotEnoughReplicasError",
    "NotEnoughReplicasAfterAppendException": "NotEnoughReplicasAfterAppendError",
    "NotLeaderOrFollowerException": "NotLeaderForPartitionError",
    "NotLeaderForPartitionException": "NotLeaderForPartitionError",
    "KafkaStorageException": "KafkaStorageError",
    "CorruptRecordException": "CorruptRecordError",
    "UnknownTopicOrPartitionException": "UnknownTopicOrPartitionError",
    "DuplicateSequenceException": "DuplicateSequenceNumberError",
    "OutOfOrderSequenceException": "OutOfOrderSequenceNumberError",
    "UnknownProducerIdException": "UnknownProducerIdError",
    "InvalidProducerEpochException": "InvalidProducerEpochError",
    "ProducerFencedException": "ProducerFencedError",
    "TimeoutException": "KafkaTimeoutError",
    "NetworkException": "NetworkExceptionError",
    "DisconnectException": "NetworkExceptionError",
    "UnknownServerException": "UnknownError",
    "KafkaException": "KafkaError",
}


def classify(name: str) -> EventType:
    """The outcome of a send that the client reported under error ``name``; INFO for a name that is not in the table."""
    classification = ERRORS.get(JAVA_NAMES.get(name, name))
    return classification.type if classification else EventType.INFO


def refuses_for_good(error: str) -> bool:
    """True if a client refused a record before taking it, whatever the record and however long one waits."""
    passing = any(word in error for word in _NO_FAULT_OF_THE_CLIENT)
    return error.startswith(NEVER_SENT) and (GAVE_UP in error or not passing)


class Refusal(IntEnum):
    """The refusals that checkers count, and NONE for any other error.

    The first two are for want of in-sync replicas (rules 3 and 4); the third says that numbers are missing (rule 21).
    """

    NONE = 0
    BEFORE_APPEND = 1
    AFTER_APPEND = 2
    OUT_OF_ORDER = 3


#: The refusals for want of in-sync replicas.
FOR_WANT_OF_REPLICAS: Final = (Refusal.BEFORE_APPEND, Refusal.AFTER_APPEND)
#: By the names of the table and by librdkafka's. A client that retries until its time is over may report only that.
_REFUSALS: Final = {
    "NotEnoughReplicasError": Refusal.BEFORE_APPEND,
    "NOT_ENOUGH_REPLICAS": Refusal.BEFORE_APPEND,
    "NotEnoughReplicasAfterAppendError": Refusal.AFTER_APPEND,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": Refusal.AFTER_APPEND,
    "OutOfOrderSequenceNumberError": Refusal.OUT_OF_ORDER,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Refusal.OUT_OF_ORDER,
}


def refusal(error: str) -> Refusal:
    """Classify a send's error, a name and maybe words after a colon, as a refusal that checkers count."""
    name = error.partition(":")[0]
    return _REFUSALS.get(JAVA_NAMES.get(name, name), Refusal.NONE)


#: Errors after which a commit certainly has no effect, by the names of all three libraries: the group does not know the
#: member, or its generation.
_COMMIT_REFUSED: Final = frozenset({
    "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH",
    "UnknownMemberIdError", "IllegalGenerationError", "FencedInstanceIdError", "CommitFailedError",
    "UnknownMemberIdException", "IllegalGenerationException", "FencedInstanceIdException", "CommitFailedException",
    "FencedMemberEpochException", "StaleMemberEpochException",
})  # fmt: skip


def refuses_commit(error: str) -> bool:
    """True if a group certainly did not take a commit that ended with this error, a name and maybe words."""
    return error.partition(":")[0] in _COMMIT_REFUSED
