"""Around one lost write: what clients saw of its log partition, which faults were in effect, and what the brokers did.

Clients' side comes from the run's history, faults from the receipts, the brokers' side from ``cluster.jsonl``. The
last may be missing: a simulated run has none until it is replayed. Then the story does without it, and says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from harness.observations import BecameLeader, Observation, ReplicaRecovered, Seen, Truncated, of_kind
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from harness.report.brokers import Leadership, LeaderState, answering_broker, known, leader_state, leaderships
from harness.report.client_side import Write, client_side
from nemesis.faults import UnexplainedElection
from nemesis.receipts import Receipt
from workloads.history import read_events

#: A story longer than this does not fit one axis: a fault, an election and a return take a few seconds each.
WINDOW_MAX_US: Final = 20_000_000
#: Room at both ends of the axis.
MARGIN_US: Final = 400_000
#: A fault that begins this long after the acknowledgement can still be what lost the write (lag and session times).
AFTERMATH_US: Final = 5_000_000
#: Points of one kind in a chart: one for every eight pixels of its width are still apart.
POINTS_MAX: Final = 100

PointKind = Literal["acknowledged", "also lost", "the lost write", "at its offset now"]


class Point(NamedTuple):
    """An acknowledged write with an offset, and what it is to the lost one."""

    write: Write
    offset: int
    kind: PointKind


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Everything that narrative and chart of one lost write are made from.

    Attributes:
        partition, write: the log partition and the write that is gone.
        begin_us, end_us: the stretch of the run's clock that is shown.
        faults: receipts of faults in effect within it, the earliest first.
        points: acknowledged writes of the partition within it.
        successor: the value that the last read found at the write's offset; None if nothing was read there.
        successor_write: that value's own acknowledgement, where it had one.
        end_offset: the log end offset that the final readers reached, None if they did not.
        observations: of the partition, and of brokers, up to the end of the stretch, in order of time.
        leaderships: who believed to lead the partition, in the whole run.
    """

    partition: str
    write: Write
    begin_us: int
    end_us: int
    faults: tuple[Receipt, ...] = ()
    points: tuple[Point, ...] = ()
    successor: int | None = None
    successor_write: Write | None = None
    end_offset: int | None = None
    observations: tuple[Observation, ...] = ()
    leaderships: tuple[Leadership, ...] = ()

    @cached_property
    def leader_state(self) -> LeaderState:
        """What the broker that answered had last reported of its leading by then."""
        return leader_state(self.observations, self.write.node, self.write.acknowledged_us)

    @cached_property
    def later_leaders(self) -> list[Seen[BecameLeader]]:
        """Who began to lead after the write was acknowledged, or in a newer epoch than the one who answered."""
        answered_us, epoch = self.write.acknowledged_us, self.leader_state.epoch
        return [
            seen
            for seen in of_kind(self.observations, BecameLeader)
            if seen.time_us > answered_us or (epoch is not None and known(seen.fact.leader_epoch) > epoch)
        ]

    @cached_property
    def removals(self) -> list[Seen[Truncated]]:
        """Truncations that took the write's offset."""
        return removals(self.observations, self.write)

    @cached_property
    def gone_us(self) -> int | None:
        """When the write could be read no more: a leader without it, a truncation of it; None if neither was seen."""
        ends = [seen.time_us for seen in self.removals]
        ends += [seen.time_us for seen in self.later_leaders if lacks(seen.fact, self.write)]
        return max(min(ends), self.write.acknowledged_us) if ends else None


def read_timeline(
    run: Path, partition: str, value: int, receipts: Sequence[Receipt], lost: frozenset[int]
) -> Timeline | None:
    """The timeline of the write ``value``; None where the history does not hold its acknowledgement.

    ``receipts`` are the run's faults; ``lost`` the values of the partition that checkers found lost.

    Raises:
        HistoryError: the history cannot be read.
    """
    side = client_side(read_events(run / HISTORY), partition)
    if value not in side.acknowledged:
        return None
    of_partition = [seen for seen in read_observations(run) if seen.partition in {partition, None}]
    observations = sorted(of_partition, key=lambda seen: seen.time_us)
    effective = [receipt for receipt in receipts if receipt.took_effect]
    begin_us, end_us = _window(side.acknowledged[value], effective, observations)
    last_us = max(end_us, *(write.acknowledged_us for write in side.acknowledged.values()))
    led = leaderships(observations, effective, last_us)
    _name_brokers(side.acknowledged, lost, observations, led)
    write = side.acknowledged[value]
    successor = None if write.offset is None else side.reads.get(write.offset)
    return Timeline(
        partition=partition,
        write=write,
        begin_us=begin_us,
        end_us=end_us,
        faults=tuple(f for f in effective if f.begun_us <= end_us and _end_us(f, end_us) >= begin_us),
        points=_points(write, side.acknowledged.values(), lost, successor, (begin_us, end_us)),
        successor=successor,
        successor_write=None if successor is None else side.acknowledged.get(successor),
        end_offset=side.end_offset,
        observations=tuple(seen for seen in observations if seen.time_us <= end_us),
        leaderships=tuple(one for one in led if one.begin_us <= end_us),
    )


def _name_brokers(
    acknowledged: dict[int, Write], lost: frozenset[int], observations: Sequence[Observation], led: Sequence[Leadership]
) -> None:
    """Where clients do not know who answered, take it from what the brokers reported."""
    for value, write in acknowledged.items():
        if write.node is None and led:
            removers = [seen.node for seen in removals(observations, write)] if value in lost else None
            node = answering_broker(led, write.acknowledged_us, removers)
            acknowledged[value] = msgspec.structs.replace(write, node=node, node_certain=False)


def _end_us(receipt: Receipt, otherwise_us: int) -> int:
    return otherwise_us if receipt.ended_us is None else receipt.ended_us


def _window(write: Write, faults: Sequence[Receipt], observations: Sequence[Observation]) -> tuple[int, int]:
    """From the faults around the write to the moment when the log went on without it."""
    last_us = write.acknowledged_us + AFTERMATH_US
    timed = [f for f in faults if f.fault != UnexplainedElection.kind]  # spans the run: when in it is not known
    near = [f for f in timed if f.begun_us <= last_us and _end_us(f, last_us) >= write.invoked_us - MARGIN_US]
    ends = [_end_us(fault, last_us) for fault in near]
    ends += [seen.time_us for seen in removals(observations, write)][:1]
    # A write without an offset may be lacked by any new leader.
    led = [seen for seen in of_kind(observations, BecameLeader) if seen.time_us > write.acknowledged_us]
    ends += [seen.time_us for seen in led if write.offset is None or lacks(seen.fact, write)][:1]
    begin_us = min([write.invoked_us, *(fault.begun_us for fault in near)]) - MARGIN_US
    begin_us = max(0, begin_us, write.acknowledged_us - WINDOW_MAX_US // 2)
    end_us = max([write.acknowledged_us, *ends]) + MARGIN_US
    return begin_us, min(end_us, begin_us + WINDOW_MAX_US)


def removals(observations: Iterable[Observation], write: Write) -> list[Seen[Truncated]]:
    """Truncations that took the write's offset after the write was sent."""
    if write.offset is None:
        return []
    return [
        seen
        for seen in of_kind(observations, Truncated)
        if seen.time_us >= write.invoked_us and seen.fact.to_offset <= write.offset
        if seen.fact.from_offset is None or seen.fact.from_offset > write.offset
    ]


def lacks(fact: BecameLeader | ReplicaRecovered, write: Write) -> bool:
    """True where the log that this reports of ends before the write's place."""
    return write.offset is not None and fact.end_offset is not None and fact.end_offset <= write.offset


def _points(
    write: Write, acknowledged: Iterable[Write], lost: frozenset[int], successor: int | None, window: tuple[int, int]
) -> tuple[Point, ...]:
    """Writes within the window: of each kind at most POINTS_MAX, those nearest in time, in order of time."""
    by_kind: dict[PointKind, list[Point]] = defaultdict(list)
    for other in sorted(acknowledged, key=lambda other: abs(other.acknowledged_us - write.acknowledged_us)):
        if other.offset is not None and window[0] <= other.acknowledged_us <= window[1]:
            kind = _kind(other, write, lost, successor)
            by_kind[kind].append(Point(other, other.offset, kind))
    kept = [point for points in by_kind.values() for point in points[:POINTS_MAX]]
    return tuple(sorted(kept, key=lambda point: point.write.acknowledged_us))


def _kind(other: Write, write: Write, lost: frozenset[int], successor: int | None) -> PointKind:
    if other.value == write.value:
        return "the lost write"
    if other.value == successor:
        return "at its offset now"
    return "also lost" if other.value in lost else "acknowledged"
