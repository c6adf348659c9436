"""Facts from Kafka's logs: those of a whole run, read at its end, and those that growing logs gain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    Brokers,
    Fact,
    HighWatermarkMoved,
    IsrChanged,
    LeaderElected,
    Observation,
    ProposalRefused,
    ReplicaRecovered,
    Truncated,
)
from harness.worlds.kafka.log_patterns import (
    Line,
    LogEvent,
    PartitionChanged,
    PartitionDescribed,
    ReplicasAssigned,
    RoleTaken,
    read_exception,
    read_line,
    understand,
)
from nemesis.cluster import CONTROLLER


def observations_in(logs: Mapping[int, Path], wall_begin_us: int) -> list[Observation]:
    """The facts in these logs, by node, in order of time; time 0 is ``wall_begin_us``. Missing files hold nothing.

    With ZooKeeper brokers log the elections that they hear of; such a fact is the controller's all the same.
    """
    facts = [
        Observation(
            line.wall_us - wall_begin_us, max(node, CONTROLLER) if isinstance(fact, LeaderElected) else node, fact
        )
        for node, path in logs.items()
        for line, fact in completed(events_in(path))
    ]
    return list(_once(sorted(facts, key=lambda seen: seen.time_us)))


def _once(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Every decision of a controller once, as it was first logged; other nodes log it too, and a restarted one again.

    A change of the in-sync replicas in a broker's log is the leader's own, and in no other log; the leader may log it
    twice, when it is accepted and when the metadata have it.
    """
    decisions: set[tuple[object, ...]] = set()
    decision: tuple[object, ...]
    for seen in observations:
        match seen.fact:
            case LeaderElected(partition=partition, leader_epoch=epoch):
                decision = (LeaderElected, partition, epoch)
            case IsrChanged(partition=partition, partition_epoch=epoch) if seen.node >= CONTROLLER:
                decision = (IsrChanged, partition, epoch)
            case IsrChanged(partition=partition, partition_epoch=int(epoch)):
                decision = (IsrChanged, partition, epoch, seen.node)
            case _:
                yield seen
                continue
        if decision not in decisions:
            decisions.add(decision)
            yield seen


def events_in(path: Path) -> Iterator[tuple[Line, LogEvent]]:
    """Every line of a log that matters, with its event."""
    if not path.exists():
        return
    entry: Line | None = None
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            line = read_line(text) or (None if entry is None else read_exception(text, entry))
            entry = line or entry
            if line is not None and (event := understand(line)) is not None:
                yield line, event


class _LastLogged(msgspec.Struct):
    """The last values that a node logged of a partition; later lines may leave them out."""

    leader: int | None = None
    leader_epoch: int | None = None
    end_offset: int | None = None
    isr: Brokers | None = None
    elr: Brokers = ()
    last_known_elr: Brokers = ()
    role_epoch: int | None = None  # of the leader epoch in which it took its role


def completed(events: Iterable[tuple[Line, LogEvent]]) -> Iterator[tuple[Line, Fact]]:
    """The facts of one node's log, each with what only an earlier line names.

    A truncation names only where the log ends now; where it ended was logged when the broker began to follow. A change
    at the controller names only what changed. An old broker logs its role without an epoch; a younger one has
    logged the rest before, in this epoch. High watermarks become facts of their own.
    """
    by_partition: dict[str | None, _LastLogged] = {}
    for line, event in events:
        last = by_partition.setdefault(getattr(event, "partition", None), _LastLogged())
        if isinstance(event, ReplicasAssigned):
            continue
        if isinstance(event, RoleTaken):
            if last.role_epoch == last.leader_epoch:
                continue
            last.end_offset = None  # from now on the log grows, and no line has how far
        fact = _whole(event, last)
        _remember(fact, last)
        yield line, fact
        if isinstance(fact, BecameLeader | ReplicaRecovered) and fact.high_watermark is not None:
            yield line, HighWatermarkMoved(partition=fact.partition, offset=fact.high_watermark)


def _remember(fact: Fact, last: _LastLogged) -> None:
    if isinstance(fact, BecameLeader | BecameFollower | ReplicaRecovered):
        last.role_epoch = getattr(fact, "leader_epoch", None)
    if isinstance(fact, LeaderElected | IsrChanged):
        last.elr, last.last_known_elr = fact.elr, fact.last_known_elr
    if isinstance(fact, ProposalRefused):
        return
    for name in ("leader", "leader_epoch", "end_offset", "isr"):
        if (value := getattr(fact, name, None)) is not None:
            setattr(last, name, value)
    if isinstance(fact, Truncated):
        last.end_offset = fact.to_offset


#: Fields that a fact of a broker's log may leave open, and that an earlier line of the same log has.
_OPEN: Final[Mapping[type, tuple[str, ...]]] = {
    BecameLeader: ("isr",),
    BecameFollower: ("leader",),
    IsrChanged: ("leader_epoch",),
    Truncated: ("leader", "leader_epoch"),
}


def _whole(event: Fact | PartitionChanged | PartitionDescribed | RoleTaken, last: _LastLogged) -> Fact:
    if isinstance(event, PartitionChanged):
        return _decision(event, last)
    if isinstance(event, PartitionDescribed):
        return LeaderElected(**event._asdict())
    if isinstance(event, RoleTaken):
        role = BecameLeader if event.role == "leader" else BecameFollower
        event = _filled(role(partition=event.partition), last, "leader_epoch")
    if isinstance(event, Truncated):
        event = msgspec.structs.replace(event, from_offset=last.end_offset)
    return _filled(event, last, *_OPEN.get(type(event), ()))


def _decision(change: PartitionChanged, last: _LastLogged) -> Fact:
    """A controller's decision: an election where it begins an epoch, else a change of the in-sync replicas."""
    elects = change.leader is not None or change.leader_epoch is not None
    listed = {"elr": last.elr, "last_known_elr": last.last_known_elr}
    named = listed | {name: value for name, value in change._asdict().items() if value is not None}
    unclean = named.pop("unclean")
    fact = LeaderElected(unclean=unclean, **named) if elects else IsrChanged(**named)
    return _filled(fact, last, "leader", "leader_epoch", "isr")


def _filled(fact: Fact, last: _LastLogged, *names: str) -> Fact:
    """The fact with the last values of those fields of ``names`` that it leaves open."""
    return msgspec.structs.replace(fact, **{name: getattr(last, name) for name in names if getattr(fact, name) is None})


#: Bytes of a growing log that are read at a time.
_READ_BYTES: Final = 1 << 20


class LogTail:
    """The whole lines that a node's growing log has gained since the last look, from byte ``begin`` on."""

    def __init__(self, path: Path, begin: int = 0) -> None:
        self._path = path
        self._offset = begin
        self._torn = b""

    def events(self) -> list[LogEvent]:
        """The events in the new lines."""
        return [event for text in self.lines() if (line := read_line(text)) and (event := understand(line))]

    def lines(self) -> list[str]:
        """New lines; what follows the last newline is kept for the next look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                gained = b"".join(iter(lambda: file.read(_READ_BYTES), b""))
        except FileNotFoundError:
            return []
        self._offset += len(gained)
        *whole, self._torn = (self._torn + gained).split(b"\n")
        return [line.decode(errors="replace") for line in whole]
