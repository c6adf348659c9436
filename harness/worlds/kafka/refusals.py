"""Finds the reason of a cluster that refuses us: kafka-python knows only silence, librdkafka each broker's reply."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import time
from collections.abc import Sequence
from logging.handlers import BufferingHandler
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.ground.errors import AccessError
from harness.plan import Security
from harness.worlds.clients import CONFLUENT

_TRY_S: Final = 0.5
#: "FAIL [client] [thrd:...]: sasl_ssl://kafka-1.example:9093/bootstrap: what happened (after 3ms in state CONNECT)".
_LINE: Final = re.compile(r".*\]: (?:\w+://)?(?P<broker>\S+)/\w+: (?P<words>.*?)(?: \(after .*\))?")
_NOISE: Final = re.compile(r"error:[0-9A-F]{8}:SSL routines::")
_ACCESS: Final = re.compile("SASL|SSL handshake|SSL alert|certificate")
#: A broker of another protocol hangs up every time, one that dies does so once.
_HANGS_UP_MIN: Final = 3


def refusal(brokers: Sequence[str], security: Security, limit_s: float) -> str:
    """The reason of the first of ``brokers`` that refuses, as a sentence that says what to correct.

    Empty if one of them accepts us, or none answers within ``limit_s``.

    Raises:
        AccessError: a file that ``security`` names is missing now.
    """
    log, kept = logging.Logger("refusal"), BufferingHandler(sys.maxsize)
    log.addHandler(kept)
    try:
        admin = AdminClient({"bootstrap.servers": ",".join(brokers), **CONFLUENT.login(security)}, logger=log)
    except KafkaException as error:
        raise AccessError(f"{error.args[0].str()} (worlds.kafka.security)") from error
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and not _refusals(kept.buffer):
        with contextlib.suppress(KafkaException):
            admin.list_topics(timeout=_TRY_S)
            return ""
        admin.poll(0)
    return next((_sentence(broker, words, security) for broker, words in _refusals(kept.buffer)), "")


def _refusals(logged: list[logging.LogRecord]) -> list[tuple[str, str]]:
    """The lines of librdkafka that are about rights and not about the network: pairs of a broker and words."""
    lines = filter(None, (_LINE.fullmatch(record.getMessage()) for record in logged))
    failures = [(line["broker"], _NOISE.sub("", line["words"])) for line in lines]
    hang_ups = [
        line for line in failures if line[1].startswith("Disconnected") and failures.count(line) >= _HANGS_UP_MIN
    ]
    return [line for line in failures if _ACCESS.search(line[1])] or hang_ups


def _sentence(broker: str, words: str, security: Security) -> str:
    if words.startswith("Disconnected"):
        advice = f"it hangs up, as on a wrong protocol; is it {security.protocol}?"
    elif "SASL" in words:
        advice = "correct protocol, mechanism, username or the password"
    else:
        advice = "correct protocol, ca, certificate or the name of the server"
    return f"{broker} refuses this client ({words}); {advice} (worlds.kafka.security)"
