"""The class that each client library itself gives an error of a transaction, where it gives it one."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.errors import KafkaTimeoutError, ProducerFencedError

from harness.worlds.clients import confluent, kafka_python
from harness.worlds.clients.programs import client as programs
from harness.worlds.clients.programs.messages import ToldClass
from harness.worlds.clients.programs.process import ClientError
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
    ("told_class", "own"),
    [
        (ToldClass.FATAL, ErrorClass.FATAL),
        (ToldClass.ABORTABLE, ErrorClass.ABORTABLE),
        (ToldClass.RETRIABLE, ErrorClass.RETRIABLE),
        (ToldClass.FAILED, None),
    ],
)
def test_a_program_says_it_with_the_answer(told_class, own):
    told = programs._Transactions(1.0).told(None, ClientError("KafkaException", "words", told_class))
    assert told == ToldError("KafkaException: words", own)
    assert programs._Transactions(1.0).told(None, TimeoutError("no answer")).own is None
