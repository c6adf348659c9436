"""The meaning of single lines of Kafka's server logs: alike from 3.3 to 4.3, and in other forms back to 0.10.1.

Kafka's metadata and its brokers' roles can be asked for over the network, but the network is what is broken in a run.
The logs are on the nodes' own disks, and have facts that no protocol gives: elections, truncation, recovery.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from harness.ground import observations

_PREFIX: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}) [A-Z]+ (\S+) (.*)")


#: The loggers of what a node runs: until 4.3, and since 4.4.
VERSION_LOGGERS: Final = (
    "org.apache.kafka.common.utils.AppInfoParser",
    "org.apache.kafka.common.utils.internals.AppInfoParser",
)


class Line(NamedTuple):
    """One line of a log: microseconds since the epoch (in whole milliseconds), the class that logs, its words."""

    wall_us: int
    logger: str
    words: str


#: The logger of the second line of an entry with an exception: the class of that, which brokers name no thread with.
EXCEPTION: Final = re.compile(r"(org\.apache\.kafka\.common\.errors\.\w+): (.*)")


class PartitionChanged(NamedTuple):
    """A change at a controller, which names only what changed: the rest is as before, None here."""

    partition: str
    leader: int | None = None
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    isr: observations.Brokers | None = None
    elr: observations.Brokers | None = None
    last_known_elr: observations.Brokers | None = None
    replicas: observations.Brokers | None = None
    unclean: bool = False


class PartitionDescribed(NamedTuple):
    """A partition's whole state, as KRaft's controllers log a new one and ZooKeeper's brokers what they are sent."""

    partition: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: observations.Brokers
    replicas: observations.Brokers
    elr: observations.Brokers = ()
    last_known_elr: observations.Brokers = ()


class RoleTaken(NamedTuple):
    """A broker is a "leader" or a "follower" from now on; old brokers do not name the epoch with it."""

    partition: str
    role: str


class ReplicasAssigned(NamedTuple):
    """The replicas of a partition in the order of preference, which before 0.11 only the controller's log has."""

    partition: str
    replicas: observations.Brokers


#: The meaning of a line: a fact, whose optional fields other lines may have, or part of one.
LogEvent = observations.Fact | PartitionChanged | PartitionDescribed | RoleTaken | ReplicasAssigned


def read_line(text: str) -> Line | None:
    """A line of a log; None for the rest of a stack trace and the like."""
    prefix = _PREFIX.match(text)
    if prefix is None:
        return None
    moment = datetime.fromisoformat(prefix[1]).replace(tzinfo=UTC)
    return Line(round(moment.timestamp() * 1_000) * 1_000, prefix[2], prefix[3])


def read_exception(text: str, entry: Line) -> Line | None:
    """The line that names the exception of a log's ``entry``, as a line of its own; None for any other text."""
    named = EXCEPTION.match(text)
    return None if named is None else Line(entry.wall_us, named[1], named[2])


def understand(line: Line) -> LogEvent | None:
    """The event of the line; None where it does not matter."""
    for pattern, event_of in _PATTERNS.get(line.logger, ()):
        if match := pattern.search(line.words):
            texts = {name: text for name, text in match.groupdict().items() if text is not None}
            return event_of(**{name: _READ.get(name, int)(text) for name, text in texts.items()})
    return None


def _brokers(listed: str) -> observations.Brokers:
    """Broker numbers between commas; leaders before 2.4, and proposals, name replicas with more than that."""
    return tuple(
        int(part) for part in re.findall(r"(?:[Rr]eplica|broker)Id(?:: |=)(\d+)", listed) or re.findall(r"\d+", listed)
    )


def _name(partition: str) -> str:
    """ "foo-0", in whichever of Kafka's ways the partition is written."""
    return re.sub(_ANY_NAME, r"\1-\2", partition)


def _fields(java: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a partition's record by our names, of those that ``java`` has."""
    return {_JAVA[name]: _READ.get(name, int)(text) for name, text in java.items() if name in _JAVA}


def _created(partition: str, state: str) -> LogEvent:
    """A partition's registration as Java prints it."""
    return PartitionDescribed(partition, **_fields(dict(re.findall(r"(\w+)=(\[[^\]]*\]|-?\w+)", state))))


def _changed(partition: str, changes: str, unclean: bool = False) -> LogEvent:
    """Only what changes is named, each with its old value and its new one."""
    new = re.findall(r"(\w+): (?:\[[^\]]*\]|[\w-]+) -> (\[[^\]]*\]|[\w-]+)", changes)
    return PartitionChanged(partition, unclean=unclean, **_fields(dict(new)))


#: Fields of a partition's record as Java names them, and as we do.
_JAVA: Final = {
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "partitionEpoch": "partition_epoch",
    "isr": "isr",
    "elr": "elr",
    "lastKnownElr": "last_known_elr",
    "replicas": "replicas",
}
#: The errors of a refused proposal by its reason as Kafka's controller logs it.
_ERRORS: Final = {
    "leader epoch": "FENCED_LEADER_EPOCH",
    "leader": "INVALID_REQUEST",
    "partition epoch": "INVALID_UPDATE_VERSION",
    "ineligible": "INELIGIBLE_REPLICA",
}
#: Readers of the text of named groups; all other groups are numbers.
_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "partition": _name,
    **dict.fromkeys(("isr", "elr", "lastKnownElr", "replicas"), _brokers),
    **dict.fromkeys(("state", "changes", "role", "version"), str),
    **dict.fromkeys(("unclean", "appended"), bool),
    "error": lambda reason: _ERRORS[reason],
    "ineligible": lambda listed: tuple(map(int, re.findall(r"(\d+) \(", listed))),
    "earlier": lambda listed: tuple(map(int, re.findall(r"(\d+) \(broker epoch", listed))),
}
#: "foo-0", and how brokers before 1.0 write it at times.
_PLAIN: Final = r"[A-Za-z0-9._-]+-\d+"
_BRACKETED: Final = r"\[[A-Za-z0-9._-]+,\d+\]"
_ANY_NAME: Final = r"^(?:topic=|topicName=')?\[?([A-Za-z0-9._-]+?)(?:-|,|, partition=|', partitionIndex=)(\d+)\]?$"
_PARTITION: Final = rf"(?P<partition>{_PLAIN})"
_EITHER: Final = rf"(?P<partition>{_BRACKETED}|{_PLAIN})"
_CONTROLLER: Final = "org.apache.kafka.controller"
_BEGINS: Final = r"(?:with .*)?starts at leader epoch (?P<leader_epoch>\d+) from offset (?P<end_offset>\d+) with"
_REFUSED: Final = (
    rf"Rejecting AlterPartition request from node (?P<broker>\d+) for {_PARTITION} because "
    r"(?:the current|it specified) (?P<error>leader epoch|partition epoch|leader|ineligible)"
    r"(?: is \d+, not (?P<old_epoch>\d+)| is \d+"
    r"| replicas (?=\[(?P<earlier>[^\]]*)\])\[(?P<ineligible>[^\]]*)\] in the new ISR)\. Proposed ISR was "
    r"\[(?P<isr>[^\]]*)\] and .* partitionEpoch is (?P<partition_epoch>\d+)\. Current leaderEpoch is "
    r"(?P<leader_epoch>\d+)"
)
_LISTED: Final = r"\[[^\]]*\]|[\d,]*"
#: The controller's word as ZooKeeper's brokers log it; the version of the record is the partition epoch.
_STATE: Final = (
    r"controllerEpoch=\d+, leader=(?P<leader>-?\d+), leaderEpoch=(?P<leader_epoch>\d+), "
    rf"isr=(?P<isr>{_LISTED}), zkVersion=(?P<partition_epoch>\d+), replicas=(?P<replicas>{_LISTED})"
)
_SENT: Final = r"(?:[Cc]ached leader info|[Rr]eceived LeaderAndIsr request) \w*PartitionState\("
_TRUNCATES: Final = (
    rf"\[(?:Unified)?Log partition={_PARTITION}, dir=[^\]]*\] Truncating to offset (?P<to_offset>\d+)",
    observations.Truncated,
)
_LOADED: Final = r"with .* log end offset (?P<end_offset>[1-9]\d*) "
_EVENTS: Final[Mapping[str, Sequence[tuple[str, Callable[..., LogEvent]]]]] = {
    "state.change.logger": (
        (
            (
                rf"Leader {_PARTITION} {_BEGINS} (?:partition epoch \d+, )?high watermark (?P<high_watermark>\d+),? "
                r"ISR \[(?P<isr>[\d,]*)\]"
            ),
            observations.BecameLeader,
        ),
        # A leader that learns its ISR from the metadata, before it has the answer to its own proposal, logs only this.
        (
            (
                rf"Skipped the become-leader state change for {_PARTITION} .*partitionEpoch=(?P<partition_epoch>\d+)"
                r".* Current high watermark \d+, ISR \[(?P<isr>[\d,]*)\]"
            ),
            observations.IsrChanged,
        ),
        (  # before 3.0 the leader is not named
            (
                rf"Follower {_PARTITION} {_BEGINS} (?:partition epoch \d+ and )?high watermark \d+\."
                r"(?: Current leader is (?P<leader>-?\d+))?"
            ),
            observations.BecameFollower,
        ),
        (rf"{_SENT}(?P<partition>topicName='[^']+', partitionIndex=\d+), {_STATE}", PartitionDescribed),
        # Before 2.4 the partition is behind its state, and lists have no brackets now and then.
        (rf"{_SENT}{_STATE}.* for partition {_EITHER}", PartitionDescribed),
        # All that there is before 0.11 (leaders) and 2.6 (followers); younger brokers log it too.
        (
            rf"ompleted LeaderAndIsr request .* for the become-(?P<role>\w+) transition for partition {_EITHER}",
            RoleTaken,
        ),
    ),
    "kafka.server.KafkaServer": (
        (r"\[Kafka ?Server (?:id=)?(?P<broker>\d+)\],? started", observations.BrokerRegistered),
    ),
    "kafka.controller.KafkaController": (
        (
            rf"Updated assigned replicas for partition {_EITHER} being reassigned to (?P<replicas>[\d,]+)",
            ReplicasAssigned,
        ),
    ),
    "kafka.cluster.Partition": (
        (
            (
                rf"\[?Partition {_EITHER} (?:broker=\d+\]|on broker \d+:) ISR updated to (?P<isr>.*?) +and "
                r"(?:zkV|v)ersion updated to \[?(?P<partition_epoch>\d+)"
            ),
            observations.IsrChanged,
        ),
        # Before 2.6. Who is in sync was logged before, as the controller's word.
        (
            rf"{_PARTITION} starts at [Ll]eader [Ee]poch (?P<leader_epoch>\d+) from offset (?P<end_offset>\d+)[ .]",
            observations.BecameLeader,
        ),
    ),
    # The same class under its names before 3.1, since, and since 4.0.
    "kafka.log.Log": (
        _TRUNCATES,
        (rf"Truncating log {_PARTITION} to offset (?P<to_offset>\d+)", observations.Truncated),  # before 1.0
        # Before 2.6. It is logged of new logs too, which are empty.
        (rf"\[Log partition={_PARTITION}, dir=[^\]]*\] Completed load of log {_LOADED}", observations.ReplicaRecovered),
        (rf"Completed load of log {_PARTITION} {_LOADED}", observations.ReplicaRecovered),
    ),
    "kafka.log.UnifiedLog": (_TRUNCATES,),
    "org.apache.kafka.storage.internals.log.UnifiedLog": (_TRUNCATES,),
    "kafka.log.LogManager": (
        (
            (
                r"Completed load of Log\(.*(?P<partition>topic=[^,)]+, partition=\d+), "
                r"highWatermark=(?P<high_watermark>\d+),.* logEndOffset=(?P<end_offset>\d+)\)"
            ),
            observations.ReplicaRecovered,
        ),
    ),
    f"{_CONTROLLER}.ReplicationControlManager": (
        (rf"(?:for new partition|Created partition) {_PARTITION} with (?P<state>.*)", _created),
        (rf"(?P<unclean>UNCLEAN )?partition change for {_PARTITION} with topic ID \S+: (?P<changes>.*)", _changed),
        (r"Fencing broker (?P<broker>\d+) ", observations.BrokerFenced),
        (_REFUSED, observations.ProposalRefused),
    ),
    f"{_CONTROLLER}.QuorumController": (
        (r"Becoming the active controller at epoch (?P<epoch>\d+)", observations.ControllerActivated),
    ),
    # With KRaft a node registers its version last of all, when it is unfenced.
    **dict.fromkeys(VERSION_LOGGERS, ((r"Kafka version ?: (?P<version>\S+)", observations.NodeStarted),)),
    "kafka.server.ControllerServer": ((r"\] Starting controller", observations.ControllerStarted),),
    "org.apache.kafka.common.errors.OutOfOrderSequenceException": (
        (
            (  # what the log has is not said of a new epoch, nor of a transaction that goes wrong at its beginning
                r"(?:Out of order|Invalid) sequence number for (?:new epoch of )?producer (?P<producer_id>\d+) ?at "
                rf"offset \d+ in partition {_PARTITION}: (?:\d+ \(request epoch\), )?(?P<sequence>\d+) "
                r"\((?:incoming )?seq\. number\)(?:, (?P<last_sequence>-?\d+) \(current end)?"
            ),
            observations.SequenceRefused,
        ),
    ),
    "kafka.server.KafkaApis": (
        (
            (  # young brokers put the topic's id before its name
                rf"Produce request .* on partition (?:\S+:)?{_EITHER} failed due to "
                r"org\.apache\.kafka\.common\.errors\.NotEnoughReplicas(?P<appended>AfterAppend)?Exception"
            ),
            observations.NotEnoughReplicas,
        ),
    ),
    f"{_CONTROLLER}.BrokerHeartbeatManager": (
        (r"The request from broker (?P<broker>\d+) to unfence has been granted", observations.BrokerRegistered),
        # A broker that may stop in order is fenced with that. Since 4.0 the end of its session is logged too.
        (
            r"Unfenced broker (?P<broker>\d+) has requested and been granted an immediate shutdown",
            observations.BrokerFenced,
        ),
        (r"The request from broker (?P<broker>\d+) to shut down has been granted", observations.BrokerFenced),
    ),
}
#: By the class that logs: what its lines look like, with groups named as the fields of the event that each makes.
_PATTERNS: Final = {
    logger: tuple((re.compile(pattern), event_of) for pattern, event_of in events) for logger, events in _EVENTS.items()
}
