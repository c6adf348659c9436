"""The topics that Kafka Connect, MirrorMaker 2 and Kafka Streams make for themselves, and the risk of one copy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.assess.configuration import Client
from harness.records.assessment_file import Concern

#: The content of the topics whose replication factor a setting is; MirrorMaker may have a cluster's name before it.
_HOLD: Final[Mapping[str, str]] = {
    "config.storage.replication.factor": "the configuration of every connector",
    "offset.storage.replication.factor": "the positions in every source: without them records are doubled or lost",
    "status.storage.replication.factor": "the state of connectors",
    "offset-syncs.topic.replication.factor": "which offset of the one cluster is which of the other",
    "checkpoints.topic.replication.factor": "the translated commits of groups",
    "heartbeats.topic.replication.factor": "heartbeats",
    "replication.factor": "the state of the application: its changelogs and repartitioned records",
}
_SETTING: Final = re.compile(rf"(?:[^.]+\.)?({'|'.join(map(re.escape, _HOLD))})")


def factors_of(values: Mapping[str, str]) -> dict[str, str]:
    """The settings among ``values`` with which a framework makes topics of its own."""
    return {name: value.strip() for name, value in values.items() if _SETTING.fullmatch(name)}


def risks_of_own_topics(clients: Sequence[Client]) -> Iterator[Concern]:
    """A risk for each such setting that asks for one copy."""
    seen: set[str] = set()
    for client in clients:
        for name, value in client.topics.items():
            match = _SETTING.fullmatch(name)
            if value == "1" and match and name not in seen:
                seen.add(name)
                yield Concern(
                    kind="risk",
                    name=f"own-topic-{name}",
                    sentence=f"{name}=1 ({client.name}): there is one copy of {_HOLD[match[1]]}",
                    change=f"{name}=3 before the topic is made; if it exists already, kafka-reassign-partitions.sh",
                    price="disk space and traffic of small topics",
                )
