"""Names what is risky in a configuration although no story shows a loss: rules of thumb, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from checkers import counted
from harness.assess.broker_risks import OUTAGE_MS, of_brokers
from harness.assess.client_settings import effective, excluded, idempotent_by_default, refused
from harness.assess.concerns import COPIES, risk
from harness.assess.configuration import Client, Cluster
from harness.assess.grouping import SMALL_BYTES, TopicGroup, whole, whole_ms
from harness.assess.internal_topics import of_internal, of_own_settings, of_unmakeable
from harness.assess.own_topics import risks_of_own_topics
from harness.assess.reckoning import LATEST
from harness.records.assessment_file import Concern
from workloads import NEVER

#: A new leader needs a session to end, and clients need to hear of it.
_SPARE_MS: Final = 3_000
_MS_A_DAY: Final = 86_400_000
#: Units of time that people use, the longest first, in milliseconds.
_UNITS_MS: Final = {"day": _MS_A_DAY, "hour": 3_600_000, "minute": 60_000, "second": 1_000, "millisecond": 1}


def risks_of(group: TopicGroup, cluster: Cluster, producer: Client, consumers: Sequence[Client]) -> Iterator[Concern]:
    """The risks of one group with its clients."""
    yield from _of_topics(group, cluster)
    yield from of_own_settings(group)
    yield from of_brokers(cluster, consumers)
    if not group.internal:
        yield from _of_producer(cluster, producer)
        yield from of_internal(cluster, [producer], consumers)
        yield from of_unmakeable(cluster)
        yield from risks_of_own_topics([producer, *consumers])
        for consumer in consumers:
            yield from _of_consumer(consumer, producer)


def _of_topics(group: TopicGroup, cluster: Cluster) -> Iterator[Concern]:
    yield from _of_racks(group)
    if (retention := group.settings.get("retention.ms")) and 0 <= whole(retention, NEVER) < OUTAGE_MS:
        yield risk(
            "retention",
            f"retention.ms={retention} ({_span(whole(retention, 0))}) is shorter than an outage of a "
            "weekend: records that no group has read by then are deleted",
            f"retention.ms of {OUTAGE_MS} or more",
            "disk space",
        )
    if kept := group.settings.get("retention.bytes"):
        yield risk(
            "retention-bytes",
            f"retention.bytes={kept} is less than a segment of {SMALL_BYTES} bytes: records go by the amount that is "
            "written after them, however young they are, and though no group has read them",
            f"retention.bytes of more than is written in {OUTAGE_MS // _MS_A_DAY} days, or -1, and retention.ms",
            "disk space",
        )
    if flush_ms := group.settings.get("flush.ms"):
        yield risk(
            "flush-ms",
            f"flush.ms={flush_ms} makes no write wait for a disk: what was acknowledged since the last flush is in "
            "memory alone, and gone where the power of all replicas fails",
            "flush.messages=1 for topics that must outlive it; else leave it out",
            "with flush.messages=1 every write waits for the disks of the replicas in sync",
        )
    for name, values in cluster.differing.items():
        if name in group.settings or name in {"replica.lag.time.max.ms", "broker.session.timeout.ms"}:
            yield risk(
                f"differing-{name}",
                f"brokers differ in {name}: {', '.join(values)}; all else here is about the first, the worst",
                f"the same {name} on every broker",
                "none",
            )


def _of_racks(group: TopicGroup) -> Iterator[Concern]:
    racks, replicas = group.racks, group.replicas
    if racks is None or racks >= min(replicas, COPIES):
        return
    takes = (
        "a rack that fails takes every copy"
        if racks == 1
        else "one rack that fails takes two copies or more, and with min.insync.replicas=2 no write is accepted until "
        "it is back"
    )
    yield risk(
        "racks",
        f"{counted(replicas, 'replica')} are in {counted(racks, 'rack')}: {takes}",
        f"brokers in {counted(COPIES, 'rack')}, and a replica in each: `kafka-reassign-partitions.sh`",
        "traffic between racks",
    )


def _of_producer(cluster: Cluster, producer: Client) -> Iterator[Concern]:
    values = effective(producer)
    obstacle = excluded(values)
    if denied := " and ".join(refused(producer)):
        wanted = "transactional.id" if "transactional.id" in producer.settings else "enable.idempotence=true"
        yield risk(
            "refused-idempotence",
            f"the client refuses to start with {wanted} and {denied}; all else here is about the producer without "
            f"{denied}",
            f"leave out {denied}",
            "none",
        )
    unasked = "enable.idempotence" not in producer.settings
    if unasked and obstacle and idempotent_by_default(producer) and values["acks"] != "0":
        yield risk(
            "silent-idempotence",
            f"{obstacle} switches idempotence off without a warning, though it is the client's default",
            "enable.idempotence=true, so that the client refuses to start with a setting that excludes it",
            "none",
        )
    yield from _of_limits(cluster, values)


def _of_limits(cluster: Cluster, values: Mapping[str, str]) -> Iterator[Concern]:
    """The time of a write. Kafka's own client refuses less than linger.ms and request.timeout.ms together."""
    session_ms = whole(cluster.broker_setting("broker.session.timeout.ms"), 9_000)
    spent_ms = whole(values["request.timeout.ms"], 0) + whole_ms(values["linger.ms"], 0)
    if (limit_ms := whole(values["delivery.timeout.ms"], NEVER)) < session_ms + _SPARE_MS:
        yield risk(
            "delivery-timeout",
            f"delivery.timeout.ms={limit_ms} is shorter than an election, which begins after "
            f"broker.session.timeout.ms={session_ms}: when a leader dies, writes fail that could have been sent again",
            f"delivery.timeout.ms of {max(2 * session_ms + 2 * _SPARE_MS, spent_ms)} or more",
            "an application hears of a failure later",
        )


def _of_consumer(consumer: Client, producer: Client) -> Iterator[Concern]:
    values = effective(consumer)
    if values["isolation.level"] == "read_uncommitted" and "transactional.id" in producer.settings:
        yield risk(
            "aborted-reads",
            f"isolation.level=read_uncommitted ({consumer.name}): it reads records of transactions that are open, and "
            "that are aborted later",
            "isolation.level=read_committed",
            "records of open transactions are waited for",
        )
    if values["auto.offset.reset"] in LATEST:
        yield risk(
            "offset-reset",
            f"auto.offset.reset=latest ({consumer.name}): records are skipped that were in a new log partition "
            "before a group read it, or that a group without a commit missed (KAFKA-20539)",
            "auto.offset.reset=earliest",
            "a new group begins at the start of the log",
        )
    if values["enable.auto.commit"] == "true":
        yield risk(
            "auto-commit",
            f"enable.auto.commit=true ({consumer.name}): what a member hands to other threads may be committed "
            "before it is processed, and is skipped if the member dies",
            "enable.auto.commit=false, and a commit after the processing",
            "a few lines in the application",
        )


def _span(span_ms: int) -> str:
    """A time in the longest unit that fits."""
    unit, unit_ms = next(((name, ms) for name, ms in _UNITS_MS.items() if span_ms >= ms), ("millisecond", 1))
    number = f"{span_ms / unit_ms:.3g}"
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"
