"""Around one write of a finding: what clients saw of its log partition, which faults there were, what brokers did.

Clients' side comes from the run's history, faults from the receipts, the brokers' side from ``cluster.jsonl``. The
last may be missing: a simulated run has none until it is replayed. Then the account does without it, and says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from harness.campaigns.report.client_side import AcknowledgedWrite, ClientSide, client_side
from harness.campaigns.report.leadership import (
    LeaderInterval,
    LeaderState,
    answering_broker,
    comparable_epoch,
    leader_state,
    leaderships,
)
from harness.campaigns.report.record_positions import RecordPosition, positions_of
from harness.ground.observations import (
    BecameLeader,
    Observation,
    ReplicaRecovered,
    Seen,
    SequenceRefused,
    Truncated,
    of_kind,
)
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from nemesis.faults import UnexplainedElection
from nemesis.receipts import Receipt

#: An account longer than this does not fit one axis: a fault, an election and a return take a few seconds each.
WINDOW_MAX_US: Final = 20_000_000
#: Room at both ends of the axis.
MARGIN_US: Final = 400_000
#: A fault that begins this long after the acknowledgement can still be what lost the write (lag and session times).
AFTERMATH_US: Final = 5_000_000
#: Points of one kind in a chart: one for every eight pixels of its width are still apart.
POINTS_MAX: Final = 100

PointKind = Literal[
    "acknowledged",
    "also lost",
    "the lost write",
    "at its offset now",
    "the write",
    "the write, again",
    "sent earlier",
    "sent later",
]
#: Findings of acknowledged writes that are gone.
LOSSES: Final = frozenset({"lost-write", "unseen"})
REORDERED: Final = "reordered"


class Point(NamedTuple):
    """An acknowledged write with an offset, and what it is to the one that the finding is about."""

    write: AcknowledgedWrite
    offset: int
    kind: PointKind


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Everything that narrative and chart of one write are made from.

    Attributes:
        anomaly: what was found about it.
        partition, write: the log partition, and the write that is gone, stands more than once, or was overtaken.
        positions: where it stands, if that is more than one place.
        overtaking: the write that stands before it although it was sent later.
        begin_us, end_us: the stretch of the run's clock that is shown.
        faults: receipts of faults in effect within it, the earliest first.
        points: acknowledged writes of the partition within it.
        successor: the value that the last read found at the write's offset; None if nothing was read there.
        successor_write: that value's own acknowledgement, where it had one.
        end_offset: the log end offset that the final readers reached, None if they did not.
        observations: of the partition, and of brokers, up to the end of the stretch, in order of time.
        refusals: batches that do not continue what the log has of their producer, refused after the write.
        out_of_order: writes to the partition that ended with this error at their client.
        leaderships: who believed to lead the partition, in the whole run.
    """

    anomaly: str = "lost-write"
    partition: str
    write: AcknowledgedWrite
    positions: tuple[RecordPosition, ...] = ()
    overtaking: AcknowledgedWrite | None = None
    begin_us: int
    end_us: int
    faults: tuple[Receipt, ...] = ()
    points: tuple[Point, ...] = ()
    successor: int | None = None
    successor_write: AcknowledgedWrite | None = None
    end_offset: int | None = None
    observations: tuple[Observation, ...] = ()
    refusals: tuple[Seen[SequenceRefused], ...] = ()
    out_of_order: int = 0
    leaderships: tuple[LeaderInterval, ...] = ()

    @cached_property
    def leader_state(self) -> LeaderState:
        """Give what the broker that answered had last reported of its leading by then."""
        return leader_state(self.observations, self.write.node, self.write.acknowledged_us)

    @cached_property
    def later_leaders(self) -> list[Seen[BecameLeader]]:
        """List who began to lead after the write was acknowledged, or in a newer epoch than the one who answered."""
        answered_us, epoch = self.write.acknowledged_us, self.leader_state.epoch
        return [
            seen
            for seen in of_kind(self.observations, BecameLeader)
            if seen.time_us > answered_us or (epoch is not None and comparable_epoch(seen.fact.leader_epoch) > epoch)
        ]

    @cached_property
    def removals(self) -> list[Seen[Truncated]]:
        """Truncations that took the write's offset."""
        return removals(self.observations, self.write)

    @cached_property
    def gone_us(self) -> int | None:
        """Tell when the write could be read no more: a leader without it, or its truncation; None without either."""
        ends = [seen.time_us for seen in self.removals]
        ends += [seen.time_us for seen in self.later_leaders if lacks(seen.fact, self.write)]
        return max(min(ends), self.write.acknowledged_us) if ends else None


class Subject(NamedTuple):
    """The subject of a finding: the written ``values`` that it names, the first one before all, and its ``offsets``."""

    anomaly: str
    partition: str
    values: Sequence[int]
    offsets: Sequence[int] = ()


def read_timeline(run: Path, subject: Subject, receipts: Sequence[Receipt], lost: frozenset[int]) -> Timeline | None:
    """The timeline of the first of the subject's values; None where the history does not hold its acknowledgement.

    ``receipts`` are the run's faults; ``lost`` the values of the partition that checkers found lost.

    Raises:
        HistoryError: the history cannot be read.
    """
    partition, value = subject.partition, subject.values[0]
    side = client_side(run / HISTORY, partition)
    if value not in side.acknowledged:
        return None
    here = {partition, None}
    of_partition = [seen for seen in read_observations(run) if seen.partition in here]
    observations = sorted(of_partition, key=lambda seen: seen.time_us)
    effective = [receipt for receipt in receipts if receipt.took_effect]
    several = len(subject.offsets) > 1
    positions = positions_of(run, partition, value, subject.offsets, side.acknowledged.values()) if several else ()
    begin_us, end_us = _window(side.acknowledged[value], effective, observations, positions)
    last_us = max(end_us, *(write.acknowledged_us for write in side.acknowledged.values()))
    led = leaderships(observations, effective, last_us)
    answering = _Answering(lost, [seen for seen in observations if isinstance(seen.fact, Truncated)], led)
    write = answering.named(side.acknowledged[value])
    overtaking = side.acknowledged.get(subject.values[1]) if subject.anomaly == REORDERED else None
    successor = _successor(subject, write, side)
    successor_write = None if successor is None else side.acknowledged.get(successor)
    kinds = _Kinds(subject, write, lost, successor, positions)
    return Timeline(
        anomaly=subject.anomaly,
        partition=partition,
        write=write,
        positions=positions,
        overtaking=overtaking and answering.named(overtaking),
        begin_us=begin_us,
        end_us=end_us,
        faults=tuple(f for f in effective if f.begun_us <= end_us and end_of(f, end_us) >= begin_us),
        points=tuple(
            point._replace(write=answering.named(point.write))
            for point in _points(side.acknowledged.values(), kinds, (begin_us, end_us))
        ),
        successor=successor,
        successor_write=successor_write and answering.named(successor_write),
        end_offset=side.end_offset,
        observations=tuple(seen for seen in observations if seen.time_us <= end_us),
        refusals=_refusals(observations, write),
        out_of_order=side.out_of_order,
        leaderships=tuple(leadership for leadership in led if leadership.begin_us <= end_us),
    )


def _refusals(observations: Sequence[Observation], write: AcknowledgedWrite) -> tuple[Seen[SequenceRefused], ...]:
    """The first refusal of each batch; its producer repeats it until it starts its numbers again, or gives up."""
    first: dict[tuple[int, SequenceRefused], Seen[SequenceRefused]] = {}
    for seen in of_kind(observations, SequenceRefused):
        if seen.time_us >= write.invoked_us:
            first.setdefault((seen.node, seen.fact), seen)
    return tuple(first.values())


def _successor(subject: Subject, write: AcknowledgedWrite, side: ClientSide) -> int | None:
    """Give the value that is now at the offset of a lost write."""
    return side.reads.get(write.offset) if subject.anomaly in LOSSES and write.offset is not None else None


class _Answering(NamedTuple):
    """The brokers that answered, where clients do not know it, by what the brokers reported."""

    lost: frozenset[int]
    truncations: Sequence[Observation]
    led: Sequence[LeaderInterval]

    def named(self, write: AcknowledgedWrite) -> AcknowledgedWrite:
        """The write with the broker that answered, as far as one is known. Few of millions are shown."""
        if write.node is not None or not self.led:
            return write
        removers = [seen.node for seen in removals(self.truncations, write)] if write.value in self.lost else None
        node = answering_broker(self.led, write.acknowledged_us, removers)
        return msgspec.structs.replace(write, node=node, node_certain=False)


def end_of(receipt: Receipt, otherwise_us: int) -> int:
    """The end of a fault; ``otherwise_us`` while it lasts."""
    return otherwise_us if receipt.ended_us is None else receipt.ended_us


def _window(
    write: AcknowledgedWrite,
    faults: Sequence[Receipt],
    observations: Sequence[Observation],
    positions: Sequence[RecordPosition],
) -> tuple[int, int]:
    """From the faults around the write to the moment when the log went on without it, with all its positions."""
    last_us = write.acknowledged_us + AFTERMATH_US
    timed = [f for f in faults if f.fault != UnexplainedElection.kind]  # spans the run: when in it is not known
    near = [f for f in timed if f.begun_us <= last_us and end_of(f, last_us) >= write.invoked_us - MARGIN_US]
    ends = [end_of(fault, last_us) for fault in near]
    ends += [seen.time_us for seen in removals(observations, write)][:1]
    # A write without an offset may be lacked by any new leader.
    led = [seen for seen in of_kind(observations, BecameLeader) if seen.time_us > write.acknowledged_us]
    ends += [seen.time_us for seen in led if write.offset is None or lacks(seen.fact, write)][:1]
    appended = [position.near_us for position in positions if position.near_us is not None]
    ends += appended
    begin_us = min([write.invoked_us, *appended, *(fault.begun_us for fault in near)]) - MARGIN_US
    begin_us = max(0, begin_us, write.acknowledged_us - WINDOW_MAX_US // 2)
    end_us = max([write.acknowledged_us, *ends]) + MARGIN_US
    return begin_us, min(end_us, begin_us + WINDOW_MAX_US)


def removals(observations: Iterable[Observation], write: AcknowledgedWrite) -> list[Seen[Truncated]]:
    """Truncations that took the write's offset after the write was sent."""
    if write.offset is None:
        return []
    return [
        seen
        for seen in of_kind(observations, Truncated)
        if seen.time_us >= write.invoked_us and seen.fact.to_offset <= write.offset
        if seen.fact.from_offset is None or seen.fact.from_offset > write.offset
    ]


def lacks(fact: BecameLeader | ReplicaRecovered, write: AcknowledgedWrite) -> bool:
    """True where the log that this reports of ends before the write's place."""
    return write.offset is not None and fact.end_offset is not None and fact.end_offset <= write.offset


class _Kinds(NamedTuple):
    """The kinds of other writes, as the subject sees them."""

    subject: Subject
    write: AcknowledgedWrite
    lost: frozenset[int]
    successor: int | None
    positions: Sequence[RecordPosition]

    def of(self, other: AcknowledgedWrite) -> PointKind:
        """The kind of the point of ``other``."""
        if self.subject.anomaly == REORDERED and other.value in self.subject.values:
            return "sent earlier" if other.value == self.write.value else "sent later"
        if other.value == self.write.value:
            return "the lost write" if self.subject.anomaly in LOSSES else "the write"
        if other.value == self.successor:
            return "at its offset now"
        return "also lost" if other.value in self.lost else "acknowledged"

    def again(self) -> list[Point]:
        """The positions of the write beside the one that it was acknowledged at."""
        return [
            Point(
                msgspec.structs.replace(self.write, acknowledged_us=position.near_us),
                position.offset,
                "the write, again",
            )
            for position in self.positions
            if position.near_us is not None and position.offset != self.write.offset
        ]


def _points(acknowledged: Iterable[AcknowledgedWrite], kinds: _Kinds, window: tuple[int, int]) -> tuple[Point, ...]:
    """Writes within the window: of each kind at most POINTS_MAX, those nearest in time, in order of time."""
    by_kind: dict[PointKind, list[Point]] = defaultdict(list)
    begin_us, end_us = window
    points = [
        Point(other, other.offset, kinds.of(other))
        for other in acknowledged
        if other.offset is not None and begin_us <= other.acknowledged_us <= end_us
    ]
    points += [point for point in kinds.again() if begin_us <= _acknowledged_us(point) <= end_us]
    for point in sorted(points, key=lambda point: abs(_acknowledged_us(point) - kinds.write.acknowledged_us)):
        by_kind[point.kind].append(point)
    kept = [point for points in by_kind.values() for point in points[:POINTS_MAX]]
    return tuple(sorted(kept, key=_acknowledged_us))


def _acknowledged_us(point: Point) -> int:
    return point.write.acknowledged_us
