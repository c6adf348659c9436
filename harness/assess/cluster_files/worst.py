"""Orders the values of brokers that differ: the worst for acknowledged writes is that of some leader, so it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

Key = Callable[[str], tuple[object, ...]]


def _least(value: str) -> tuple[object, ...]:
    return (int(value),)


def _most(value: str) -> tuple[object, ...]:
    return (-int(value),)


def _shortest_time(value: str) -> tuple[object, ...]:
    """A time below zero is without end."""
    return (int(value) < 0, int(value))


def _oldest(value: str) -> tuple[object, ...]:
    numbers = [int(part) for part in value.partition("-")[0].split(".")]
    return (*numbers, value)


def _true_first(value: str) -> tuple[object, ...]:
    return (value != "true",)


def _false_first(value: str) -> tuple[object, ...]:
    return (value != "false",)


def _in_tmp_first(value: str) -> tuple[object, ...]:
    directories = [directory.strip() for directory in value.split(",")]
    return (not any(directory.startswith("/tmp") for directory in directories), -len(directories))  # noqa: S108 - a value of Kafka's


def _set_first(value: str) -> tuple[object, ...]:
    return (not value,)


_WORST: Final[Mapping[str, Key]] = {
    "min.insync.replicas": _least,
    "unclean.leader.election.enable": _true_first,
    "flush.messages": _most,
    "retention.ms": _shortest_time,
    "delete.retention.ms": _shortest_time,
    "message.format.version": _oldest,
    "inter.broker.protocol.version": _oldest,
    "replica.lag.time.max.ms": _most,
    "replica.fetch.wait.max.ms": _most,
    "replica.fetch.backoff.ms": _most,
    "broker.session.timeout.ms": _most,
    "broker.heartbeat.interval.ms": _most,
    "unclean.leader.election.interval.ms": _most,
    "auto.create.topics.enable": _true_first,
    "default.replication.factor": _least,
    "offsets.topic.replication.factor": _least,
    "transaction.state.log.replication.factor": _least,
    "transaction.state.log.min.isr": _least,
    "transaction.partition.verification.enable": _false_first,
    "offsets.retention.minutes": _least,
    "retention.bytes": _shortest_time,
    "flush.ms": _most,
    "share.coordinator.state.topic.replication.factor": _least,
    "share.coordinator.state.topic.min.isr": _least,
    "offsets.commit.required.acks": _shortest_time,
    "controlled.shutdown.enable": _false_first,
    "producer.id.expiration.ms": _least,
    "remote.log.storage.system.enable": _true_first,
    "replica.selector.class": _set_first,
    "log.dirs": _in_tmp_first,
    "log.dir": _in_tmp_first,
    "metadata.log.dir": _in_tmp_first,
}


def _as_text(value: str) -> tuple[object, ...]:
    return (value,)


def has_worst(name: str) -> bool:
    """True if one value of this setting is worse than another."""
    return name in _WORST


def worst_first(name: str, values: Iterable[str]) -> list[str]:
    """The values, each once, the worst first; those of a setting without an order as texts. None at all is the best."""
    order = _WORST.get(name, _as_text)
    return sorted(set(values), key=lambda value: (not value, *(order(value) if value else ()), value))
