"""Reports of librdkafka about brokers that let nobody in, as one sentence."""

import logging
from typing import ClassVar

import pytest
from confluent_kafka import KafkaException

from harness.ground.errors import HostError
from harness.plan import OPEN, Security
from harness.worlds.kafka import refusals as module
from harness.worlds.kafka.refusals import refusal

BROKERS = ["kafka-1.example:9093", "kafka-2.example:9093"]
ABOUT = "[thrd:sasl_ssl://kafka-1.example:9093/bootstrap]: sasl_ssl://kafka-1.example:9093/bootstrap"
DOWN = f"FAIL [client] {ABOUT}: Connect to ipv4#192.0.2.1:9093 failed: Connection refused (after 0ms in state CONNECT)"
HUNG_UP = (
    "FAIL [client] [thrd:kafka-2.example:9093/bootstrap]: kafka-2.example:9093/1: "
    "Disconnected: connection closed by peer (after 3ms in state UP, 1 identical error(s) suppressed)"
)
WRONG = (
    f"FAIL [client] {ABOUT}: SASL authentication error: Invalid username or password (after 302ms in state AUTH_REQ)"
)
UNTRUSTED = (
    f"FAIL [client] {ABOUT}: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: "
    "broker certificate could not be verified (after 5ms in state SSL_HANDSHAKE)"
)


class Library:
    """Reports a line for every question, and answers when there are none left."""

    lines: ClassVar[list[str]] = []

    def __init__(self, configuration: dict[str, str], logger: logging.Logger) -> None:
        assert configuration["bootstrap.servers"] == "kafka-1.example:9093,kafka-2.example:9093"
        self._log = logger

    def list_topics(self, timeout: float) -> None:
        if self.lines:
            self._log.error(self.lines.pop(0))
            raise KafkaException("nobody")

    def poll(self, timeout: float) -> None:
        pass


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], ""),
        ([DOWN, DOWN], ""),
        ([HUNG_UP, DOWN, HUNG_UP], ""),
        (
            [DOWN, WRONG],
            (
                "kafka-1.example:9093 refuses this client (SASL authentication error: Invalid username or password); "
                "correct protocol, mechanism, username or the password (worlds.kafka.security)"
            ),
        ),
        (
            [HUNG_UP, UNTRUSTED],
            (
                "kafka-1.example:9093 refuses this client (SSL handshake failed: certificate verify failed: broker "
                "certificate could not be verified); correct protocol, ca, certificate or the name of the server "
                "(worlds.kafka.security)"
            ),
        ),
        (
            [HUNG_UP, HUNG_UP, HUNG_UP],
            (
                "kafka-2.example:9093 refuses this client (Disconnected: connection closed by peer); it hangs up, "
                "as on a wrong protocol; is it PLAINTEXT? (worlds.kafka.security)"
            ),
        ),
    ],
    ids=["let in", "down at first", "dying", "wrong password", "untrusted", "another protocol"],
)
def test_the_first_refusal_is_told_and_a_mishap_is_none(monkeypatch, lines, sentence):
    monkeypatch.setattr(module, "AdminClient", Library)
    monkeypatch.setattr(Library, "lines", list(lines))
    assert refusal(BROKERS, OPEN, 60.0) == sentence


def test_nobody_says_anything_in_time(monkeypatch):
    monkeypatch.setattr(module, "AdminClient", Library)
    monkeypatch.setattr(Library, "lines", [DOWN] * 10**6)
    assert refusal(BROKERS, Security(protocol="SSL"), 0.05) == ""


def test_a_file_that_vanishes_while_the_cluster_is_asked_is_named():
    with pytest.raises(HostError, match=r"ssl\.ca\.location failed.*worlds\.kafka\.security"):
        refusal(BROKERS, Security(protocol="SSL", ca="/no/such/ca.pem"), 60.0)
