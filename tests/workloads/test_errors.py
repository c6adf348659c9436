import inspect

import pytest
from kafka import errors as kafka_errors

from workloads.errors import CLIENT_CLOSED, CLIENT_CRASHED, ERRORS, NEVER_SENT, TIME_LIMIT, classify
from workloads.operations import EventType

OWN_NAMES = {NEVER_SENT, CLIENT_CLOSED, CLIENT_CRASHED, TIME_LIMIT}


def test_an_error_nobody_thought_about_proves_nothing():
    assert classify("SomethingNewError") is EventType.INFO


def test_every_name_in_the_table_is_a_class_of_the_client():
    classes = {name for name, _ in inspect.getmembers(kafka_errors, inspect.isclass)}
    assert set(ERRORS) - OWN_NAMES <= classes


def test_every_classification_has_its_reason():
    assert all(entry.reason for entry in ERRORS.values())


@pytest.mark.parametrize("name", ["NotEnoughReplicasAfterAppendError", "RequestTimedOutError", "KafkaTimeoutError"])
def test_a_write_that_may_be_in_the_log_is_unknown(name):
    assert classify(name) is EventType.INFO


def test_no_error_that_the_client_retries_is_a_proof():
    """A retried error is the last attempt's; an earlier attempt may have been appended."""
    certain = {name for name, entry in ERRORS.items() if entry.type is EventType.FAIL} - OWN_NAMES
    assert certain
    assert not [name for name in certain if issubclass(getattr(kafka_errors, name), kafka_errors.RetriableError)]


def test_a_record_the_client_never_took_certainly_failed():
    assert classify(NEVER_SENT) is EventType.FAIL
    assert classify("MessageSizeTooLargeError") is EventType.FAIL
