"""Properties of Kafka's Java client: those of the run's settings, and those that log it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.plan import Security
from harness.worlds.clients.configuration import (
    METADATA_MAX_AGE_MS,
    consumer_properties,
    fetch_wait_ms,
    producer_properties,
)
from workloads import IsolationLevel, Membership, Settings

#: Names of the harness's own, from which :func:`for_java` makes ``sasl.jaas.config``.
USERNAME: Final = "sasl.username"
PASSWORD: Final = "sasl.password"  # noqa: S105 - the name of a property
#: The same of a certificate whose private key is in another file; Java takes both as one text.
_CERTIFICATE: Final = "ssl.certificate.location"
_KEY: Final = "ssl.key.location"


def producer_configuration(
    settings: Settings, bootstrap: Sequence[str], process: int, transactional_id: str | None = None
) -> dict[str, object]:
    """The properties of a producer. By default the client chooses acks=all with idempotence (KIP-679).

    A commit waits for all sends of its transaction, within ``max.block.ms``.
    """
    block_ms = settings.request_timeout_ms if transactional_id is None else settings.delivery_timeout_ms
    common = _common_properties(settings, bootstrap) | {"max.block.ms": block_ms}
    properties = producer_properties(settings, process, transactional_id) | common
    # A property of Java's consumers only.
    return {name: value for name, value in properties.items() if name != "allow.auto.create.topics"}


def consumer_configuration(
    settings: Settings,
    bootstrap: Sequence[str],
    process: int,
    membership: Membership | None = None,
    isolation: IsolationLevel = "read_uncommitted",
) -> dict[str, object]:
    """The properties of a consumer."""
    own = {
        "fetch.max.wait.ms": fetch_wait_ms(settings),
        "max.poll.records": 500,
        "default.api.timeout.ms": settings.request_timeout_ms,
    }
    common = _common_properties(settings, bootstrap) | own
    return consumer_properties(settings, process, membership, isolation) | common


def security_properties(security: Security) -> dict[str, object]:
    """The properties that log a client in, without the password, so that files may have them."""
    properties: dict[str, object] = {"security.protocol": security.protocol}
    if security.encrypts:
        properties["ssl.endpoint.identification.algorithm"] = "https"
    if security.ca:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca}
    if security.certificate:
        properties |= {
            "ssl.keystore.type": "PEM",
            _CERTIFICATE: security.certificate,
            _KEY: security.key or security.certificate,
        }
    if security.authenticates:
        properties |= {"sasl.mechanism": security.mechanism, USERNAME: security.username}
    return properties


def for_java(configured: Mapping[str, object]) -> dict[str, object]:
    """Put the names of the harness's own into Java's form; the result has secrets."""
    properties = dict(configured)
    if certificate := properties.pop(_CERTIFICATE, None):
        chain, key = (Path(str(file)).read_text(encoding="utf-8") for file in (certificate, properties.pop(_KEY)))
        properties |= {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    if username := properties.pop(USERNAME, None):
        properties["sasl.jaas.config"] = _jaas(
            *map(str, (properties["sasl.mechanism"], username, properties.pop(PASSWORD, "")))
        )
    return properties


def _jaas(mechanism: str, username: str, password: str) -> str:
    """The login module of a mechanism, as Java's configuration of logins spells it (JAAS)."""
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    module = f"org.apache.kafka.common.security.{kind}LoginModule"
    return f'{module} required username="{_quoted(username)}" password="{_quoted(password)}";'


def _quoted(value: str) -> str:
    """A text within quotes; Java reads it with a StreamTokenizer, to which a backslash means what follows."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")


def _common_properties(settings: Settings, bootstrap: Sequence[str]) -> dict[str, object]:
    return {
        "bootstrap.servers": ",".join(bootstrap),
        "request.timeout.ms": settings.request_timeout_ms,
        # Kafka's default, which retry.backoff.ms must not exceed.
        "retry.backoff.max.ms": max(settings.retry_backoff_ms, 1_000),
        "metadata.max.age.ms": METADATA_MAX_AGE_MS,
        "enable.metrics.push": False,
    }
