"""Properties of Kafka's clients, as a program gets them: those of the run's settings, under Kafka's own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.worlds.clients.configuration import (
    METADATA_MAX_AGE_MS,
    consumer_properties,
    fetch_wait_ms,
    producer_properties,
)
from workloads import IsolationLevel, Membership, Settings

#: The property that has the password.
PASSWORD: Final = "sasl.password"  # noqa: S105 - the name of a property


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


def _common_properties(settings: Settings, bootstrap: Sequence[str]) -> dict[str, object]:
    return {
        "bootstrap.servers": ",".join(bootstrap),
        "request.timeout.ms": settings.request_timeout_ms,
        # Kafka's default, which retry.backoff.ms must not exceed.
        "retry.backoff.max.ms": max(settings.retry_backoff_ms, 1_000),
        "metadata.max.age.ms": METADATA_MAX_AGE_MS,
        "enable.metrics.push": False,
    }
