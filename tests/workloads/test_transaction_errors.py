"""The table of errors of transactional producers: one class for each client's name of an error."""

import pytest
from confluent_kafka import KafkaError
from kafka import errors as kafka_errors

from workloads.client import SendOutcome
from workloads.errors import CLIENT_CLOSED, CLIENT_CRASHED, NEVER_SENT, TIME_LIMIT
from workloads.operations import EventType
from workloads.transaction_errors import ALIASES, TRANSACTION_ERRORS, ErrorClass, class_of, kafka_name

FATAL, ABORTABLE, RETRIABLE, UNKNOWN = ErrorClass
#: One error in the names of kafka-python, librdkafka and Kafka's Java client, and its class.
NAMES = (
    ("ProducerFencedError", "PRODUCER_FENCED", "ProducerFencedException", FATAL),
    ("ProducerFencedError", "_FENCED", "ProducerFencedException", FATAL),
    ("InvalidProducerEpochError", "INVALID_PRODUCER_EPOCH", "InvalidProducerEpochException", FATAL),
    ("InvalidProducerIdMappingError", "INVALID_PRODUCER_ID_MAPPING", "InvalidPidMappingException", FATAL),
    ("InvalidTxnStateError", "INVALID_TXN_STATE", "InvalidTxnStateException", FATAL),
    ("InvalidTransactionTimeoutError", "INVALID_TRANSACTION_TIMEOUT", "InvalidTxnTimeoutException", FATAL),
    (
        "TransactionalIdAuthorizationFailedError",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TransactionalIdAuthorizationException",
        FATAL,
    ),
    ("ClusterAuthorizationFailedError", "CLUSTER_AUTHORIZATION_FAILED", "ClusterAuthorizationException", FATAL),
    ("SaslAuthenticationFailedError", "SASL_AUTHENTICATION_FAILED", "SaslAuthenticationException", FATAL),
    ("UnsupportedVersionError", "UNSUPPORTED_VERSION", "UnsupportedVersionException", FATAL),
    ("TransactionAbortableError", "TRANSACTION_ABORTABLE", "TransactionAbortableException", ABORTABLE),
    ("OutOfOrderSequenceNumberError", "OUT_OF_ORDER_SEQUENCE_NUMBER", "OutOfOrderSequenceException", ABORTABLE),
    ("UnknownProducerIdError", "UNKNOWN_PRODUCER_ID", "UnknownProducerIdException", ABORTABLE),
    ("UnknownMemberIdError", "UNKNOWN_MEMBER_ID", "UnknownMemberIdException", ABORTABLE),
    ("IllegalGenerationError", "ILLEGAL_GENERATION", "IllegalGenerationException", ABORTABLE),
    ("FencedInstanceIdError", "FENCED_INSTANCE_ID", "FencedInstanceIdException", ABORTABLE),
    ("ConcurrentTransactionsError", "CONCURRENT_TRANSACTIONS", "ConcurrentTransactionsException", RETRIABLE),
    ("CoordinatorLoadInProgressError", "COORDINATOR_LOAD_IN_PROGRESS", "CoordinatorLoadInProgressException", RETRIABLE),
    ("CoordinatorNotAvailableError", "COORDINATOR_NOT_AVAILABLE", "CoordinatorNotAvailableException", RETRIABLE),
    ("NotCoordinatorError", "NOT_COORDINATOR", "NotCoordinatorException", RETRIABLE),
    ("KafkaTimeoutError", "_TIMED_OUT", "TimeoutException", RETRIABLE),
    ("KafkaConnectionError", "_TRANSPORT", "DisconnectException", RETRIABLE),
    ("NetworkExceptionError", "NETWORK_EXCEPTION", "NetworkException", RETRIABLE),
    ("UnstableOffsetCommitError", "UNSTABLE_OFFSET_COMMIT", "UnstableOffsetCommitException", RETRIABLE),
)


@pytest.mark.parametrize(("of_kafka_python", "of_librdkafka", "of_java", "expected"), NAMES)
def test_each_client_s_name_of_an_error_has_the_same_class(of_kafka_python, of_librdkafka, of_java, expected):
    assert hasattr(kafka_errors, of_kafka_python)
    assert hasattr(KafkaError, of_librdkafka)
    classes = {class_of("send_offsets", f"{name}: words") for name in (of_kafka_python, of_librdkafka, of_java)}
    assert classes == {expected}


def test_every_row_has_a_source_and_every_other_name_leads_to_a_row():
    assert all(row.source for row in TRANSACTION_ERRORS.values())
    assert set(ALIASES.values()) <= set(TRANSACTION_ERRORS)
    assert not set(ALIASES) & set(TRANSACTION_ERRORS)


def test_no_row_is_without_a_name_of_some_client():
    ours = {kafka_name(name) for name in (TIME_LIMIT, CLIENT_CLOSED, CLIENT_CRASHED)}
    theirs = {kafka_name(name) for name in dir(kafka_errors)} | {kafka_name(name) for name in dir(KafkaError)}
    assert set(TRANSACTION_ERRORS) <= ours | theirs | {"COMMIT_FAILED"}


@pytest.mark.parametrize("call", ["commit", "abort"])
@pytest.mark.parametrize(
    "error", ["_TIMED_OUT", "KafkaTimeoutError", "TimeoutException", "REQUEST_TIMED_OUT", TIME_LIMIT]
)
def test_a_commit_or_abort_that_timed_out_is_info(call, error):
    for own in (None, RETRIABLE):
        assert SendOutcome.of_call(call, error, own) == SendOutcome(EventType.INFO, error=error, error_class=UNKNOWN)


@pytest.mark.parametrize(
    ("own", "expected"), [(FATAL, EventType.INFO), (ABORTABLE, EventType.FAIL), (RETRIABLE, EventType.INFO)]
)
def test_the_client_s_own_word_comes_before_the_name(own, expected):
    for error in ("ProducerFencedException", "TRANSACTION_ABORTABLE", "Unheard"):
        assert SendOutcome.of_call("send_offsets", error, own) == SendOutcome(expected, error=error, error_class=own)


def test_an_error_without_a_name_that_is_known_is_unknown():
    assert {class_of(call, "KafkaError: too general") for call in ("init", "begin", "commit", "abort")} == {UNKNOWN}
    assert class_of("init", TIME_LIMIT) is UNKNOWN


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("_MSG_TIMED_OUT", ABORTABLE),
        ("TimeoutException", ABORTABLE),
        (f"{NEVER_SENT}: too large", ABORTABLE),
        ("MessageSizeTooLargeError", ABORTABLE),
        ("ProducerFencedError", FATAL),
        ("_FATAL", FATAL),
        (CLIENT_CLOSED, UNKNOWN),
    ],
)
def test_a_transaction_with_a_failed_send_can_only_be_aborted(error, expected):
    assert class_of("send", error) is expected
