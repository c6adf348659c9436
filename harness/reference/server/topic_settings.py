"""Settings under Kafka's names, as strings, from and to the structs of the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from harness.reference.core.types import BrokerConfig, TopicConfig

#: Names of settings that every Kafka client may send and that mean nothing here: this log keeps everything, in order.
IGNORED: Final = frozenset(
    {"cleanup.policy", "compression.type", "max.message.bytes", "retention.bytes", "retention.ms", "segment.bytes"}
)


class SettingError(ValueError):
    """A setting is unknown or has an impossible value; the text says which."""


def kafka_name(field: str) -> str:
    """``min_insync_replicas`` as Kafka writes it."""
    return field.replace("_", ".")


_TOPIC_FIELDS: Final = {kafka_name(field): field for field in TopicConfig.__struct_fields__}


def parse_topic_config(configs: Mapping[str, str | None]) -> TopicConfig:
    """A topic's settings from what a client wrote, defaults for the rest.

    Raises:
        SettingError: unknown name or impossible value.
    """
    chosen: dict[str, Any] = {}
    for name, value in configs.items():
        if name in _TOPIC_FIELDS and value is not None:
            chosen[_TOPIC_FIELDS[name]] = value
        elif name not in IGNORED and name not in _TOPIC_FIELDS:
            raise SettingError(f"unknown topic setting {name}; known are {', '.join(sorted(_TOPIC_FIELDS))}")
    try:
        config = msgspec.convert(chosen, TopicConfig, strict=False)
    except msgspec.ValidationError as error:
        raise SettingError(f"a topic setting has an impossible value: {error}") from error
    if min(config.min_insync_replicas, config.flush_messages, config.flush_ms) < 1:
        raise SettingError("min.insync.replicas, flush.messages and flush.ms are at least 1")
    return config


def written(config: TopicConfig | BrokerConfig) -> dict[str, str]:
    """Every setting of ``config`` under Kafka's name."""
    return {kafka_name(field): _text(getattr(config, field)) for field in config.__struct_fields__}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
