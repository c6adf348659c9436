"""Settings that both client libraries get, under Kafka's names; each adapter spells them its way and adds its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from harness.plan import Security
from workloads import IsolationLevel, Membership, Settings

#: Kafka's default; those of the libraries are 30 s and 10 s, and runs last seconds.
RECONNECT_BACKOFF_MAX_MS: Final = 1_000
#: Kafka's default is 5 minutes; with acks=0 a client notices a deposed leader in no other way.
METADATA_MAX_AGE_MS: Final = 5_000
FETCH_WAIT_MAX_MS: Final = 500
#: Kafka's default is 50 MB. That much does not arrive within a request.timeout.ms of a second or two, and the client
#: would ask for the same again without an end.
FETCH_MAX_BYTES: Final = 4 * 1024 * 1024


def client_settings(settings: Settings) -> dict[str, object]:
    """The settings of a plan that belong to clients, ``acks`` as a number."""
    chosen = settings.to_mapping() | {"acks": settings.acks}
    return {name: chosen[name] for name in Settings.scoped("client")}


def producer_properties(settings: Settings, process: int, transactional_id: str | None = None) -> dict[str, object]:
    """The properties of a producer."""
    properties = _properties(settings, process) | client_settings(settings)
    if transactional_id is None:
        return properties
    return properties | {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": settings.transaction_timeout_ms,
    }


def consumer_properties(
    settings: Settings, process: int, membership: Membership | None, isolation: IsolationLevel
) -> dict[str, object]:
    """The properties of a consumer."""
    properties = _properties(settings, process) | {
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
        "check.crcs": True,
        "fetch.max.bytes": FETCH_MAX_BYTES,
    }
    return properties if membership is None else properties | group_properties(membership)


def group_properties(membership: Membership) -> dict[str, object]:
    """The properties of a member; with the protocol of KIP-848 the times of a session are the broker's.

    A member that does not poll for a whole session is taken for dead, too.
    """
    properties: dict[str, object] = {
        "group.id": membership.group,
        "auto.offset.reset": membership.reset,
        "max.poll.interval.ms": membership.session_timeout_ms,
    }
    if membership.instance_id is not None:
        properties["group.instance.id"] = membership.instance_id
    if membership.auto_commit_ms is not None:
        properties |= {"enable.auto.commit": True, "auto.commit.interval.ms": membership.auto_commit_ms}
    if membership.protocol == "consumer":
        return properties | {"group.protocol": "consumer"}
    session_ms = membership.session_timeout_ms
    return properties | {"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 3}


def login_properties(security: Security) -> dict[str, object]:
    """The properties that log a client in, as librdkafka spells them, without the password: files may have them."""
    properties: dict[str, object] = {"security.protocol": security.protocol}
    if security.encrypts:
        properties |= {"enable.ssl.certificate.verification": True, "ssl.endpoint.identification.algorithm": "https"}
    if security.ca:
        properties["ssl.ca.location"] = security.ca
    if security.certificate:
        properties["ssl.certificate.location"] = security.certificate
        properties["ssl.key.location"] = security.key or security.certificate
    if security.authenticates:
        properties |= {"sasl.mechanism": security.mechanism, "sasl.username": security.username}
    return properties


def fetch_wait_ms(settings: Settings) -> int:
    """The time that a broker may wait for records; kafka-python demands that it is shorter than the request's limit."""
    return min(FETCH_WAIT_MAX_MS, settings.request_timeout_ms // 2)


def milliseconds(configuration: Mapping[str, object], *names: str) -> int:
    """The sum of the times that a client's configuration has under ``names``."""
    return sum(msgspec.convert(configuration[name], int) for name in names)


def _properties(settings: Settings, process: int) -> dict[str, object]:
    return {
        "client.id": f"ackproof-client-{process}",
        "retry.backoff.ms": settings.retry_backoff_ms,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "allow.auto.create.topics": False,
    }
