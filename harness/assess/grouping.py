"""Groups topics by what decides: topics of a group have the same answer, so each group is looked at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from harness.assess.configuration import INTERNAL, OF_TOPICS, Cluster, NotUnderstood, Now, Topic
from workloads import NEVER

_DAY_MS: Final = 86_400_000
#: A retention that no outage reaches is not told from another: a weekend, and the holiday after it.
LONG_MS: Final = 4 * _DAY_MS
#: Less than the segment that is written to by default: a log partition keeps little more than that.
SMALL_BYTES: Final = 2**30


class TopicGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Topics with the same answer, by name, and what decides it. ``settings`` are effective, under Kafka's names.

    ``now`` has the numbers of all of them together, and the least number of replicas in sync.
    """

    topics: tuple[str, ...]
    partitions: int
    replicas: int
    racks: int | None
    settings: Mapping[str, str]
    internal: bool
    now: Now = Now()
    not_understood: tuple[NotUnderstood, ...] = ()

    @property
    def refuses_writes(self) -> bool:
        """True if a log partition has fewer replicas in sync at this moment than its settings demand."""
        return refuses_writes(self.now, self.settings["min.insync.replicas"], self.replicas)

    @property
    def compacted(self) -> bool:
        """True if the topics keep the last record of each key."""
        return "compact" in self.settings["cleanup.policy"]


def groups_of(cluster: Cluster) -> list[TopicGroup]:
    """The groups, the largest first."""
    by_key: dict[tuple[object, ...], list[Topic]] = defaultdict(list)
    for topic in cluster.topics:
        values = {name: cluster.setting_of(topic, name) for name in OF_TOPICS}
        now = topic.now
        broken = (
            now.leaderless > 0,
            now.behind > 0,
            now.absent,
            refuses_writes(now, values["min.insync.replicas"], topic.replicas) and now.in_sync,
        )
        own = topic.name in INTERNAL and topic.name
        key = (topic.replicas, topic.racks, own, broken, topic.not_understood, tuple(_deciding(values).items()))
        by_key[key].append(topic)
    groups = [
        TopicGroup(
            topics=tuple(sorted(topic.name for topic in topics)),
            partitions=sum(topic.partitions for topic in topics),
            replicas=topics[0].replicas,
            racks=topics[0].racks,
            settings=_deciding({name: cluster.setting_of(topics[0], name) for name in OF_TOPICS}),
            internal=topics[0].name in INTERNAL,
            now=_together([topic.now for topic in topics]),
            not_understood=topics[0].not_understood,
        )
        for topics in by_key.values()
    ]
    return sorted(groups, key=lambda group: (-len(group.topics), group.topics[0]))


def refuses_writes(now: Now, min_in_sync: str, replicas: int) -> bool:
    """True if fewer replicas are in sync than are demanded, and than there are: a demand beyond them is a weakness."""
    return now.in_sync is not None and now.in_sync < min(whole(min_in_sync, 1), replicas)


def _together(each: Sequence[Now]) -> Now:
    in_sync = [now.in_sync for now in each if now.in_sync is not None]
    return Now(
        leaderless=sum(now.leaderless for now in each),
        behind=sum(now.behind for now in each),
        in_sync=min(in_sync, default=None),
        absent=each[0].absent,
        eligible=tuple(sorted({broker for now in each for broker in now.eligible})),
    )


def _deciding(values: Mapping[str, str]) -> dict[str, str]:
    """The values as far as they decide: those that change no answer are left out."""
    kept = {name: value for name, value in values.items() if value}
    if kept["flush.messages"] != "1":
        kept["flush.messages"] = str(NEVER)
    if kept["flush.messages"] == "1" or not 0 <= whole(kept["flush.ms"], NEVER) < NEVER:
        del kept["flush.ms"]
    if "delete" not in kept["cleanup.policy"] or not 0 <= whole(kept["retention.bytes"], -1) < SMALL_BYTES:
        del kept["retention.bytes"]
    retention = kept["retention.ms"]
    if "delete" not in kept["cleanup.policy"] or not 0 <= whole(retention, NEVER) < LONG_MS:
        del kept["retention.ms"]
    if "compact" not in kept["cleanup.policy"]:
        del kept["delete.retention.ms"]
    return kept


def whole(text: str, otherwise: int) -> int:
    """The whole number in a text, which was held against Kafka's rules when it was read; ``otherwise`` for none at all.

    Raises:
        ValueError: it is no whole number, so that its reader let something pass.
    """
    return int(text) if text else otherwise


def whole_ms(text: str, otherwise: int) -> int:
    """The whole milliseconds of a time, which librdkafka takes with a fraction."""
    return whole(text.partition(".")[0], otherwise)
