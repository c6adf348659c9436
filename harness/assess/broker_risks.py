"""Names what is risky in the settings of brokers, whatever their topics are: each with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from checkers import counted
from harness.assess.concerns import COPIES, brokers_needed, risk
from harness.assess.configuration import Client, Cluster
from harness.assess.grouping import whole
from harness.records.assessment_file import Concern

#: A group that reads nothing for this long is an outage that happens: a weekend.
OUTAGE_MS: Final = 3 * 86_400_000
#: Kafka's default since 2.0 (KIP-186).
_KEPT_MINUTES: Final = 10_080
_MS_A_MINUTE: Final = 60_000
_DAY_MS: Final = 86_400_000
#: Directories that a reboot or a service of the system empties, and names of file systems in memory.
_EMPTIED: Final = re.compile(r"/(tmp|var/tmp|dev/shm|run|var/run)(/|$)")
_IN_MEMORY: Final = re.compile(r"(^|[/_.-])(tmpfs|ramfs|ramdisk|shm)", re.IGNORECASE)
_DRIVE: Final = re.compile(r"^[A-Za-z]:")
_NULL: Final = ("", "null")


def of_brokers(cluster: Cluster, consumers: Sequence[Client]) -> Iterator[Concern]:
    """The risks of the brokers' settings, which every topic has."""
    yield from _of_directories(cluster)
    yield from _of_controllers(cluster)
    yield from _of_commits(cluster, grouped=any("group.id" in consumer.settings for consumer in consumers))
    yield from _of_new_topics(cluster)
    if cluster.broker_setting("controlled.shutdown.enable").lower() == "false":
        yield risk(
            "uncontrolled-shutdown",
            "controlled.shutdown.enable=false: a broker that is stopped hands over no leader, so each planned restart "
            "is as a crash, and takes writes of acks=1 along",
            "controlled.shutdown.enable=true",
            "a stop takes longer",
        )
    if (kept_ms := whole(cluster.broker_setting("producer.id.expiration.ms"), _DAY_MS)) < _DAY_MS:
        yield risk(
            "forgotten-producers",
            f"producer.id.expiration.ms={kept_ms}: brokers forget an idempotent producer that is silent for so long, "
            "and a batch that it sends again after that may be written twice",
            f"producer.id.expiration.ms of {_DAY_MS} or more",
            "memory of brokers for each producer",
        )


def unset_directories(cluster: Cluster) -> bool:
    """True if files of brokers name no directory of logs, so that Kafka's default may hold."""
    files = any(cluster.settings.get(name) for name in ("process.roles", "zookeeper.connect"))
    return files and not any(cluster.settings.get(name) for name in ("log.dirs", "log.dir"))


def _of_directories(cluster: Cluster) -> Iterator[Concern]:
    for name in ("log.dirs", "metadata.log.dir"):
        values = _values(cluster, name) or (_values(cluster, "log.dir") if name == "log.dirs" else ())
        emptied = [path for value in values for path in map(str.strip, value.split(",")) if _is_emptied(path)]
        if emptied:
            what = "copies" if name == "log.dirs" else "the cluster's metadata"
            yield risk(
                f"temporary-{name}",
                f"{name} has {', '.join(dict.fromkeys(emptied))}: a reboot or a cleaner of temporary files empties "
                f"such a directory, and takes {what} along",
                f"{name} on a disk that nothing empties; move one broker after the other, each after the last is in "
                "sync again",
                "a full copy of each broker's logs",
            )


def _values(cluster: Cluster, name: str) -> tuple[str, ...]:
    values = cluster.differing.get(name, (cluster.settings.get(name, ""),))
    return tuple(value for value in values if value not in _NULL)


def _is_emptied(path: str) -> bool:
    plain = _DRIVE.sub("", path.replace("\\", "/"))
    return bool(_EMPTIED.match(plain) or _IN_MEMORY.search(plain))


def _of_controllers(cluster: Cluster) -> Iterator[Concern]:
    voters = [voter for voter in cluster.settings.get("controller.quorum.voters", "").split(",") if "@" in voter]
    if 0 < len(voters) < COPIES:
        held = "its disk has" if len(voters) == 1 else "both must run, and their disks have"
        yield risk(
            "few-controllers",
            f"controller.quorum.voters names {counted(len(voters), 'controller')}: {held} all that is known of topics",
            "three controllers",
            "one or two more nodes",
        )


def _of_commits(cluster: Cluster, *, grouped: bool) -> Iterator[Concern]:
    """The settings of commits. A default is said of groups that are there: up to 1.1 it is a day (KIP-186)."""
    minutes = whole(cluster.broker_setting("offsets.retention.minutes"), _KEPT_MINUTES)
    said = grouped or "offsets.retention.minutes" in cluster.settings
    if said and 0 < minutes * _MS_A_MINUTE < OUTAGE_MS:
        yield risk(
            "offsets-retention",
            f"offsets.retention.minutes={minutes} is shorter than an outage of a weekend: a group that is away for "
            "longer has no commit any more, and begins where auto.offset.reset says",
            f"offsets.retention.minutes of {_KEPT_MINUTES} or more",
            "commits of groups that are gone are kept for longer",
        )
    if (acks := cluster.broker_setting("offsets.commit.required.acks")) not in {"-1", "all", *_NULL}:
        yield risk(
            "commit-acks",
            f"offsets.commit.required.acks={acks}: a commit of a group is acknowledged before other replicas have it",
            "offsets.commit.required.acks=-1",
            "each commit waits for the slowest replica in sync",
        )


def _of_new_topics(cluster: Cluster) -> Iterator[Concern]:
    """Topics that appear because a client named them. Where no setting of brokers was read, nothing is said."""
    said = any(cluster.settings.get(name) for name in ("default.replication.factor", "auto.create.topics.enable"))
    replicas = whole(cluster.broker_setting("default.replication.factor"), COPIES)
    automatic = cluster.broker_setting("auto.create.topics.enable").lower() == "true"
    if said and automatic and 0 < replicas < COPIES:
        yield risk(
            "automatic-topics",
            f"auto.create.topics.enable=true and default.replication.factor={replicas}: a topic that a client names "
            f"by mistake or too early is made with {counted(replicas, 'copy', 'copies')}",
            f"auto.create.topics.enable=false, or default.replication.factor={COPIES}"
            + brokers_needed(cluster.brokers),
            "someone has to make topics",
        )
