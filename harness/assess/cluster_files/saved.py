"""Reads what ``ackproof assess --save`` wrote: this version, and older ones, which had fewer fields."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.assess.configuration import Cluster, NotUnderstood, Topic
from harness.assess.values import understood
from workloads import shown


def checked(content: Mapping[str, object]) -> Cluster:
    """The cluster that was saved. Values that Kafka does not take are not understood: someone wrote them.

    Raises:
        ValueError: it has another form, or fields of a newer version.
    """
    if newer := content.keys() - set(Cluster.__struct_fields__):
        raise ValueError(f"it has {', '.join(sorted(newer))}, which this version of ackproof does not know")
    try:
        cluster = msgspec.convert(content, Cluster)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    settings, unclear = taken(cluster.settings, "the saved brokers")
    return msgspec.structs.replace(
        cluster,
        topics=tuple(map(_topic, cluster.topics)),
        settings=settings,
        not_understood=(*cluster.not_understood, *unclear),
    )


def taken(settings: Mapping[str, str], where: str) -> tuple[dict[str, str], list[NotUnderstood]]:
    """The values of settings as Kafka takes them, and those that it does not take."""
    values: dict[str, str] = {}
    unclear: list[NotUnderstood] = []
    for name, text in settings.items():
        try:
            value = understood(name, text)
        except ValueError as error:
            unclear.append(NotUnderstood(where=where, text=shown(f"{name}={text}"), why=str(error), name=name))
            continue
        if value is not None:
            values[name] = value
    return values, unclear


def _topic(topic: Topic) -> Topic:
    settings, unclear = taken(topic.settings, topic.name)
    return msgspec.structs.replace(topic, settings=settings, not_understood=(*topic.not_understood, *unclear))
