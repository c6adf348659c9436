"""Names what is risky in a configuration although no story shows a loss: rules of thumb, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.assess.client_settings import effective, excluded, idempotent_by_default, refused
from harness.assess.configuration import Client, Cluster
from harness.assess.grouping import TopicGroup, whole
from harness.assess.own_topics import risks_of_own_topics
from harness.assess.reckoning import LATEST
from harness.records.assessment_file import Concern
from harness.reference.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from workloads import NEVER

#: A group that reads nothing for this long is an outage that happens: a weekend.
OUTAGE_MS: Final = 3 * 86_400_000
#: A new leader needs a session to end, and clients need to hear of it.
_SPARE_MS: Final = 3_000
_MS_A_DAY: Final = 86_400_000


#: A topic of Kafka's own: the brokers' settings with which it is made, what is right for each, and what it holds.
_OFFSETS: Final = (OFFSETS_TOPIC, {"offsets.topic.replication.factor": 3}, "the commits of every group")
_TRANSACTIONS: Final = (
    TRANSACTIONS_TOPIC,
    {"transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2},
    "what was decided of every transaction",
)


def risks_of(group: TopicGroup, cluster: Cluster, producer: Client, consumers: Sequence[Client]) -> Iterator[Concern]:
    """The risks of one group with its clients."""
    yield from _of_topics(group, cluster)
    if not group.internal:
        yield from _of_producer(cluster, producer)
        yield from of_internal(cluster, [producer], consumers)
        yield from risks_of_own_topics([producer, *consumers])
        for consumer in consumers:
            yield from _of_consumer(consumer)


def of_internal(
    cluster: Cluster, producers: Sequence[Client], consumers: Sequence[Client], *, used: bool = True
) -> Iterator[Concern]:
    """The risks of Kafka's own topics where these are not among the topics, and are, or are not known to be, ``used``.

    A topic that is there was judged by its own settings; brokers read these only when they make it.
    """
    topics = {topic.name for topic in cluster.topics}
    transactions = any("transactional.id" in producer.settings for producer in producers)
    for (topic, right, holds), in_use in ((_OFFSETS, bool(consumers)), (_TRANSACTIONS, transactions)):
        if topic in topics or in_use is not used:
            continue
        for name, least in right.items():
            if 0 < (value := whole(cluster.broker_setting(name), least)) < least:
                yield _risk(
                    f"internal-{name}",
                    f"{name}={value} on the brokers: {topic} is made with it, and holds {holds}",
                    f"{name}={least} before {topic} is made; if it exists already, "
                    + ("its min.insync.replicas" if name.endswith("isr") else "kafka-reassign-partitions.sh"),
                    "disk space and traffic of small topics",
                )


def _of_topics(group: TopicGroup, cluster: Cluster) -> Iterator[Concern]:
    if group.racks is not None and 1 < group.racks < min(group.replicas, 3):
        yield _risk(
            "racks",
            f"{group.replicas} replicas are in {group.racks} racks: one rack that fails takes two copies or more, and "
            "with min.insync.replicas=2 no write is accepted until it is back",
            "brokers in a third rack, and a replica there",
            "traffic between racks",
        )
    if (retention := group.settings.get("retention.ms")) and 0 <= whole(retention, NEVER) < OUTAGE_MS:
        yield _risk(
            "retention",
            f"retention.ms={retention} ({whole(retention, 0) / _MS_A_DAY:.3g} days) is shorter than an outage of a "
            "weekend: records that no group has read by then are deleted",
            f"retention.ms of {OUTAGE_MS} or more",
            "disk space",
        )
    for name, values in cluster.differing.items():
        if name in group.settings or name in {"replica.lag.time.max.ms", "broker.session.timeout.ms"}:
            yield _risk(
                f"differing-{name}",
                f"brokers differ in {name}: {', '.join(values)}; all else here is about the first, the worst",
                f"the same {name} on every broker",
                "none",
            )


def _of_producer(cluster: Cluster, producer: Client) -> Iterator[Concern]:
    values = effective(producer)
    obstacle = excluded(values)
    if denied := " and ".join(refused(producer)):
        wanted = "transactional.id" if "transactional.id" in producer.settings else "enable.idempotence=true"
        yield _risk(
            "refused-idempotence",
            f"the client refuses to start with {wanted} and {denied}; all else here is about the producer without "
            f"{denied}",
            f"leave out {denied}",
            "none",
        )
    unasked = "enable.idempotence" not in producer.settings
    if unasked and obstacle and idempotent_by_default(producer) and values["acks"] != "0":
        yield _risk(
            "silent-idempotence",
            f"{obstacle} switches idempotence off without a warning, though it is the client's default",
            "enable.idempotence=true, so that the client refuses to start with a setting that excludes it",
            "none",
        )
    session_ms = whole(cluster.broker_setting("broker.session.timeout.ms"), 9_000)
    if (limit_ms := whole(values["delivery.timeout.ms"], NEVER)) < session_ms + _SPARE_MS:
        yield _risk(
            "delivery-timeout",
            f"delivery.timeout.ms={limit_ms} is shorter than an election, which begins after "
            f"broker.session.timeout.ms={session_ms}: when a leader dies, writes fail that could have been sent again",
            f"delivery.timeout.ms of {2 * session_ms + 2 * _SPARE_MS} or more",
            "an application hears of a failure later",
        )


def _of_consumer(consumer: Client) -> Iterator[Concern]:
    values = effective(consumer)
    if values["auto.offset.reset"] in LATEST:
        yield _risk(
            "offset-reset",
            f"auto.offset.reset=latest ({consumer.name}): records are skipped that were in a new log partition "
            "before a group read it, or that a group without a commit missed (KAFKA-20539)",
            "auto.offset.reset=earliest",
            "a new group begins at the start of the log",
        )
    if values["enable.auto.commit"] == "true":
        yield _risk(
            "auto-commit",
            f"enable.auto.commit=true ({consumer.name}): what a member hands to other threads may be committed "
            "before it is processed, and is skipped if the member dies",
            "enable.auto.commit=false, and a commit after the processing",
            "a few lines in the application",
        )


def _risk(name: str, sentence: str, change: str, price: str) -> Concern:
    return Concern(kind="risk", name=name, sentence=sentence, change=change, price=price)
