"""Names what is risky in the settings with which brokers make Kafka's own topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from checkers import counted
from harness.assess.concerns import COPIES, brokers_needed, risk
from harness.assess.configuration import Client, Cluster
from harness.assess.grouping import TopicGroup, whole
from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from harness.records.assessment_file import Concern


class _Made(NamedTuple):
    """One of Kafka's own topics: the brokers' settings with which it is made, the least that is right, its contents.

    ``inherited`` are settings of brokers for every topic, which this one has, too, each with a wrong and a right value.
    """

    topic: str
    least: Mapping[str, int]
    holds: str
    inherited: Sequence[tuple[str, str, str]] = ()

    @property
    def factor(self) -> str:
        """The setting that says how many replicas it has."""
        return next(name for name in self.least if name.endswith("replication.factor"))


_OFFSETS: Final = _Made(
    OFFSETS_TOPIC,
    {"offsets.topic.replication.factor": 3},
    "the commits of every group",
    (("min.insync.replicas", "1", "2"), ("unclean.leader.election.enable", "true", "false")),
)
_TRANSACTIONS: Final = _Made(
    TRANSACTIONS_TOPIC,
    {"transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2},
    "what was decided of every transaction",
)
#: The condition of two in sync: with fewer replicas one broker away refuses writes.
_WITH_COPIES: Final = f", with {COPIES} replicas"
_SHARES: Final = _Made(
    "__share_group_state",
    {"share.coordinator.state.topic.replication.factor": 3, "share.coordinator.state.topic.min.isr": 2},
    "what share groups have read",
)


def of_internal(
    cluster: Cluster, producers: Sequence[Client], consumers: Sequence[Client], *, used: bool = True
) -> Iterator[Concern]:
    """The risks of Kafka's own topics where these are not among the topics, and are, or are not known to be, ``used``.

    A topic that is there was judged by its own settings; brokers read these only when they make it.
    """
    topics = {topic.name for topic in cluster.topics}
    transactions = any("transactional.id" in producer.settings for producer in producers)
    shares = any(consumer.settings.get("group.protocol") == "share" for consumer in consumers)
    for made, in_use in ((_OFFSETS, bool(consumers)), (_TRANSACTIONS, transactions), (_SHARES, shares)):
        if made.topic not in topics and in_use is used:
            yield from _of_making(made, cluster)


def of_unmakeable(cluster: Cluster) -> Iterator[Concern]:
    """The risk that a topic cannot be made at all: a replica needs a broker of its own (KIP-115)."""
    brokers, topics = cluster.brokers, {topic.name for topic in cluster.topics}
    for made, harm in ((_OFFSETS, "no group can commit"), (_TRANSACTIONS, "no transaction can begin")):
        wanted = whole(cluster.settings.get(made.factor, ""), 0)
        if brokers is not None and wanted > brokers and made.topic not in topics:
            yield risk(
                f"unmakeable-{made.topic}",
                f"{made.factor}={wanted} is more than the {counted(brokers, 'broker')} known: {made.topic} cannot be "
                f"made, so {harm}",
                f"{made.factor}={wanted}{brokers_needed(brokers, wanted)}",
                "machines",
            )


def of_own_settings(group: TopicGroup) -> Iterator[Concern]:
    """The risk of a topic of Kafka's own, which is there, that only it can have."""
    policy = group.settings["cleanup.policy"]
    if group.internal and "delete" in policy and group.topics[0] in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}:
        yield risk(
            "internal-cleanup",
            f"cleanup.policy={policy} on {group.topics[0]}: the last word on a group or a transaction is deleted at an "
            "age, though it still holds",
            "cleanup.policy=compact on it",
            "none",
        )


def _of_making(made: _Made, cluster: Cluster) -> Iterator[Concern]:
    for name, least in made.least.items():
        value = whole(cluster.settings.get(name, ""), least)
        if 0 < value < least:
            of_copies = name == made.factor
            later = "kafka-reassign-partitions.sh" if of_copies else "its min.insync.replicas"
            yield _few(
                made,
                f"{name}={value}",
                f"{name}={least} before {made.topic} is made; if it exists already, {later}"
                + (brokers_needed(cluster.brokers, least) if of_copies else _WITH_COPIES),
            )
    for name, wrong, right in made.inherited:
        condition = _WITH_COPIES if right == "2" else ""
        if cluster.settings.get(name, "").lower() == wrong:
            yield _few(
                made, f"{name}={wrong}", f"{name}={right} on {made.topic}, or on the brokers, for all topics{condition}"
            )


def _few(made: _Made, setting: str, change: str) -> Concern:
    return risk(
        f"internal-{setting.partition('=')[0]}",
        f"{setting} on the brokers: {made.topic} is made with it, and holds {made.holds}",
        change,
        "disk space and traffic of small topics",
    )
