"""What single lines of Kafka's server logs say: from 3.3 to 4.3 in the same words, before in others, back to 0.10.2.

Kafka's metadata and its brokers' roles can be asked for over the network, but the network is what is broken in a run.
The logs stand on the nodes' own disks, and say besides what no protocol tells: elections, truncation, recovery.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from harness.observations import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    Brokers,
    ControllerActivated,
    ControllerStarted,
    Fact,
    IsrChanged,
    ReplicaRecovered,
    Truncated,
)

_PREFIX: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}) [A-Z]+ (\S+) (.*)")


class Line(NamedTuple):
    """One line of a log: microseconds since the epoch (in whole milliseconds), the class that speaks, its words."""

    wall_us: int
    speaker: str
    words: str


class PartitionChanged(NamedTuple):
    """A change at a controller, which names only what changed: the rest stands, None here."""

    partition: str
    leader: int | None = None
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    isr: Brokers | None = None
    elr: Brokers | None = None
    replicas: Brokers | None = None
    unclean: bool = False


class PartitionDescribed(NamedTuple):
    """A partition's whole state, as KRaft's controllers log a new one and ZooKeeper's brokers what they are sent."""

    partition: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: Brokers
    replicas: Brokers
    elr: Brokers = ()


class RoleTaken(NamedTuple):
    """A broker leads or follows from now on; which epoch, old brokers do not say with it."""

    partition: str
    leads: bool


class ReplicasAssigned(NamedTuple):
    """The replicas of a partition in the order of preference, which before 0.11 only the controller's log has."""

    partition: str
    replicas: Brokers


#: What a line says: a fact, whose optional fields other lines may have, or part of one.
LogEvent = Fact | PartitionChanged | PartitionDescribed | RoleTaken | ReplicasAssigned


def read_line(text: str) -> Line | None:
    """A line of a log; None for the rest of a stack trace and the like."""
    found = _PREFIX.match(text)
    if found is None:
        return None
    moment = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return Line(round(moment.timestamp() * 1_000) * 1_000, found[2], found[3])


def understand(line: Line) -> LogEvent | None:
    """What the line says, if it is one of those that matter."""
    for pattern, event_of in _PATTERNS.get(line.speaker, ()):
        if found := pattern.search(line.words):
            return event_of(found)
    return None


def _numbers(listed: str) -> Brokers:
    """Broker numbers between commas."""
    return tuple(int(part) for part in re.findall(r"\d+", listed))


def _name(partition: str) -> str:
    """ "foo-0" of "foo-0", or of "[foo,0]" as older brokers write it."""
    topic, number = re.split(r"[-,](?=\d+\]?$)", partition)
    return f"{topic.removeprefix('[')}-{number.removesuffix(']')}"


def _leader(found: re.Match[str]) -> LogEvent:
    return BecameLeader(
        partition=found[1],
        leader_epoch=int(found[2]),
        end_offset=int(found[3]),
        high_watermark=int(found[4]),
        isr=_numbers(found[5]),
    )


def _old_leader(found: re.Match[str]) -> LogEvent:
    """Who is in sync was said before, as the controller's word."""
    return BecameLeader(partition=found[1], leader_epoch=int(found[2]), end_offset=int(found[3]))


def _follower(found: re.Match[str]) -> LogEvent:
    leader = int(found[4]) if found[4] else None
    return BecameFollower(partition=found[1], leader=leader, leader_epoch=int(found[2]), end_offset=int(found[3]))


def _loaded(found: re.Match[str]) -> LogEvent:
    name = f"{found[1]}-{found[2]}"
    return ReplicaRecovered(partition=name, high_watermark=int(found[3]), end_offset=int(found[4]))


def _old_isr(found: re.Match[str]) -> LogEvent:
    """Before 2.4 the leader names the replicas with all that it knows of them."""
    described = re.findall(r"[Rr]eplicaId(?:: |=)(\d+)", found[3])
    isr = tuple(int(node) for node in described) or _numbers(found[3])
    return IsrChanged(partition=found[1] or _name(found[2]), isr=isr, partition_epoch=int(found[4]))


def _heard(found: re.Match[str]) -> LogEvent:
    """The controller's word as ZooKeeper's brokers log it; the version of the record is the partition epoch."""
    return PartitionDescribed(
        partition=f"{found['topic']}-{found['number']}" if found["topic"] else _name(found["partition"]),
        leader=int(found["leader"]),
        leader_epoch=int(found["epoch"]),
        partition_epoch=int(found["version"]),
        isr=_numbers(found["isr"]),
        replicas=_numbers(found["replicas"]),
    )


def _created(found: re.Match[str]) -> LogEvent:
    """A partition's registration as Java prints it."""
    fields = dict(re.findall(r"(\w+)=(\[[^\]]*\]|-?\w+)", found[3]))
    return PartitionDescribed(
        partition=found[1],
        leader=int(fields["leader"]),
        leader_epoch=int(fields["leaderEpoch"]),
        partition_epoch=int(fields["partitionEpoch"]),
        isr=_numbers(fields["isr"]),
        elr=_numbers(fields.get("elr", "")),
        replicas=_numbers(found[2]),
    )


def _changed(found: re.Match[str]) -> LogEvent:
    """Only what changes is named, each with its old value and its new one."""
    new = dict(re.findall(r"(\w+): (?:\[[^\]]*\]|[\w-]+) -> (\[[^\]]*\]|[\w-]+)", found[3]))

    def number(name: str) -> int | None:
        return int(new[name]) if name in new else None

    def brokers(name: str) -> Brokers | None:
        return _numbers(new[name]) if name in new else None

    return PartitionChanged(
        found[2],
        leader=number("leader"),
        leader_epoch=number("leaderEpoch"),
        partition_epoch=number("partitionEpoch"),
        isr=brokers("isr"),
        elr=brokers("elr"),
        replicas=brokers("replicas"),
        unclean=bool(found[1]),
    )


_PARTITION: Final = r"([A-Za-z0-9._-]+-\d+)"
#: As brokers before 1.0 write it, at times.
_BRACKETED: Final = r"\[[A-Za-z0-9._-]+,\d+\]"
_CONTROLLER: Final = "org.apache.kafka.controller"
_LOADED: Final = re.compile(
    r"Completed load of Log\(.*topic=([^,)]+), partition=(\d+), highWatermark=(\d+),.* logEndOffset=(\d+)\)"
)
_TRUNCATED: Final = re.compile(rf"\[(?:Unified)?Log partition={_PARTITION}, dir=[^\]]*\] Truncating to offset (\d+)")
#: Before 1.0.
_OLD_TRUNCATED: Final = re.compile(rf"Truncating log {_PARTITION} to offset (\d+)")
#: Before 2.6. It is said of new logs too, which are empty.
_OLD_LOADED: Final = re.compile(
    rf"(?:\[Log partition={_PARTITION}, dir=[^\]]*\] )?Completed load of log (?:{_PARTITION} )?with .* "
    r"log end offset ([1-9]\d*) "
)
#: Before 2.6.
_OLD_LEADS: Final = re.compile(rf"{_PARTITION} starts at [Ll]eader [Ee]poch (\d+) from offset (\d+)[ .]")
#: The only word of it before 0.11 (leaders) and 2.6 (followers); younger brokers say it besides.
_BECAME: Final = re.compile(
    rf"ompleted LeaderAndIsr request .* for the become-(\w+) transition for partition ({_BRACKETED}|{_PARTITION})"
)
_OLD_ISR: Final = re.compile(
    rf"(?:\[Partition {_PARTITION} broker=\d+\]|Partition ({_BRACKETED}) on broker \d+:) "
    r"ISR updated to (.*) and (?:zkV|v)ersion updated to \[(\d+)\]"
)
_MADE: Final = re.compile(rf"(?:for new partition|Created partition) {_PARTITION} with .*?replicas=(\[[^\]]*\])(.*)")
_BEGINS: Final = r"(?:with .*)?starts at leader epoch (\d+) from offset (\d+) with"
_LEADS: Final = re.compile(
    rf"Leader {_PARTITION} {_BEGINS} (?:partition epoch \d+, )?high watermark (\d+),? ISR \[([\d,]*)\]"
)
#: Before 3.0 the leader is not named.
_FOLLOWS: Final = re.compile(
    rf"Follower {_PARTITION} {_BEGINS} (?:partition epoch \d+ and )?high watermark \d+\.(?: Current leader is (-?\d+))?"
)
#: Before 2.4 the partition stands behind its state, and lists have no brackets now and then.
_HEARD: Final = re.compile(
    r"(?:[Cc]ached leader info|[Rr]eceived LeaderAndIsr request) \w*PartitionState\("
    r"(?:topicName='(?P<topic>[^']+)', partitionIndex=(?P<number>\d+), )?controllerEpoch=\d+, "
    r"leader=(?P<leader>-?\d+), leaderEpoch=(?P<epoch>\d+), isr=(?P<isr>\[[^\]]*\]|[\d,]*), "
    rf"zkVersion=(?P<version>\d+), replicas=(?P<replicas>\[[^\]]*\]|[\d,]*)(?(topic)|.* for partition "
    rf"(?P<partition>{_BRACKETED}|{_PARTITION}))"
)
Pattern = tuple[re.Pattern[str], Callable[[re.Match[str]], LogEvent]]


def _old_loaded(found: re.Match[str]) -> LogEvent:
    return ReplicaRecovered(partition=found[1] or found[2], end_offset=int(found[3]))


def _truncated(found: re.Match[str]) -> LogEvent:
    return Truncated(partition=found[1], to_offset=int(found[2]))


_LOG: Final[tuple[Pattern, ...]] = ((_TRUNCATED, _truncated),)
#: By the class that speaks.
_PATTERNS: Final[Mapping[str, tuple[Pattern, ...]]] = {
    "state.change.logger": (
        (_LEADS, _leader),
        (_FOLLOWS, _follower),
        (_HEARD, _heard),
        (_BECAME, lambda found: RoleTaken(_name(found[2]), found[1] == "leader")),
    ),
    "kafka.server.KafkaServer": (
        (
            re.compile(r"\[Kafka ?Server (?:id=)?(\d+)\],? started"),
            lambda found: BrokerRegistered(broker=int(found[1])),
        ),
    ),
    "kafka.controller.KafkaController": (
        (
            re.compile(rf"Updated assigned replicas for partition ({_BRACKETED}) being reassigned to ([\d,]+)"),
            lambda found: ReplicasAssigned(_name(found[1]), _numbers(found[2])),
        ),
    ),
    "kafka.cluster.Partition": (
        (
            re.compile(rf"\[Partition {_PARTITION} broker=\d+\] ISR updated to ([\d,]*) .*version updated to (\d+)"),
            lambda found: IsrChanged(partition=found[1], isr=_numbers(found[2]), partition_epoch=int(found[3])),
        ),
        (_OLD_ISR, _old_isr),
        (_OLD_LEADS, _old_leader),
    ),
    # The same class under its names before 3.1, since, and since 4.0.
    "kafka.log.Log": (*_LOG, (_OLD_TRUNCATED, _truncated), (_OLD_LOADED, _old_loaded)),
    "kafka.log.UnifiedLog": _LOG,
    "org.apache.kafka.storage.internals.log.UnifiedLog": _LOG,
    "kafka.log.LogManager": ((_LOADED, _loaded),),
    f"{_CONTROLLER}.ReplicationControlManager": (
        (_MADE, _created),
        (re.compile(rf"(UNCLEAN )?partition change for {_PARTITION} with topic ID \S+: (.*)"), _changed),
        (
            re.compile(r"Fencing broker (\d+) "),
            lambda found: BrokerFenced(broker=int(found[1])),
        ),
    ),
    f"{_CONTROLLER}.QuorumController": (
        (
            re.compile(r"Becoming the active controller at epoch (\d+)"),
            lambda found: ControllerActivated(epoch=int(found[1])),
        ),
    ),
    "kafka.server.ControllerServer": ((re.compile(r"\] Starting controller"), lambda _: ControllerStarted()),),
    f"{_CONTROLLER}.BrokerHeartbeatManager": (
        (
            re.compile(r"The request from broker (\d+) to unfence has been granted"),
            lambda found: BrokerRegistered(broker=int(found[1])),
        ),
    ),
}
