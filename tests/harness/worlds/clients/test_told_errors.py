"""The class that each client library itself gives an error of a transaction, where it gives it one."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.errors import KafkaTimeoutError, ProducerFencedError

from harness.worlds.clients import confluent, kafka_python
from harness.worlds.clients.java import client as java
from harness.worlds.clients.java.bridge import JavaExceptionError
from harness.worlds.clients.java.frames import End
from harness.worlds.clients.transactions import ToldError
from workloads.transaction_errors import ErrorClass


def of_librdkafka(**flags):
    return KafkaException(
        KafkaError(
            KafkaError._STATE, "words", **{"fatal": False, "retriable": False, "txn_requires_abort": False} | flags
        )
    )


@pytest.mark.parametrize(
    ("flags", "own"),
    [
        ({"fatal": True, "txn_requires_abort": True}, ErrorClass.FATAL),
        ({"txn_requires_abort": True, "retriable": True}, ErrorClass.ABORTABLE),
        ({"retriable": True}, ErrorClass.RETRIABLE),
        ({}, None),
    ],
)
def test_librdkafka_says_it_of_the_error(flags, own):
    assert confluent._Transactions(1.0).told(None, of_librdkafka(**flags)) == ToldError("_STATE: words", own)


def test_an_error_of_the_binding_has_no_class():
    assert confluent._Transactions(1.0).told(None, ValueError("no group")) == ToldError("ValueError: no group", None)


@pytest.mark.parametrize(
    ("state", "error", "own"),
    [
        ("fatal", ProducerFencedError(), ErrorClass.FATAL),
        ("fatal", KafkaTimeoutError(), ErrorClass.FATAL),
        ("abortable", KafkaTimeoutError(), ErrorClass.ABORTABLE),
        ("", KafkaTimeoutError(), ErrorClass.RETRIABLE),
        ("", ProducerFencedError(), None),
        ("", ValueError(), None),
    ],
)
def test_the_state_of_kafka_python_s_manager_comes_before_the_class_of_the_error(state, error, own):
    manager = SimpleNamespace(
        has_fatal_error=lambda: state == "fatal", has_abortable_error=lambda: state == "abortable"
    )
    told = kafka_python._Transactions(1_000).told(SimpleNamespace(_transaction_manager=manager), error)
    assert told == ToldError(type(error).__name__, own)


@pytest.mark.parametrize(
    ("end", "own"),
    [
        (End.FATAL, ErrorClass.FATAL),
        (End.ABORTABLE, ErrorClass.ABORTABLE),
        (End.RETRIABLE, ErrorClass.RETRIABLE),
        (End.FAILED, None),
    ],
)
def test_java_s_producer_says_it_with_the_end_of_the_call(end, own):
    told = java._Transactions(1.0).told(None, JavaExceptionError("KafkaException", "words", end))
    assert told == ToldError("KafkaException: words", own)
    assert java._Transactions(1.0).told(None, TimeoutError("no answer")).own is None
