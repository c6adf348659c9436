"""Around one lost write: what clients saw of its log partition, which faults were in effect, and what the brokers did.

Clients' side comes from the run's history, faults from the receipts, the brokers' side from ``cluster.jsonl``. The
last may be missing: a simulated run has none until it is replayed. Then the story is told without it, and says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from harness.records.run_record import CLUSTER_FILE, HISTORY
from harness.report.brokers import answering, led_in, reigns
from harness.run.unexplained_elections import UNASKED
from harness.worlds.contract import Observation
from nemesis.receipts import Receipt
from workloads.history.reader import read_events
from workloads.operations import Event, EventType, Function, Poll, Send

#: A story longer than this does not fit one axis: a fault, an election and a return take a few seconds each.
WINDOW_MAX_US: Final = 20_000_000
#: Room at both ends of the axis.
MARGIN_US: Final = 400_000
#: A fault that begins this long after the acknowledgement can still be what lost the write (lag and session times).
AFTERMATH_US: Final = 5_000_000
#: Points of one kind in a chart: one for every eight pixels of its width can still be told apart.
POINTS_MAX: Final = 100

PointKind = Literal["acknowledged", "also lost", "the lost write", "at its offset now"]


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One write as its producer saw it.

    ``node`` is the broker that answered: as the client says (``told``), or the one that must have been, or None.
    """

    value: int
    invoked_us: int
    acknowledged_us: int
    offset: int | None
    node: int | None
    process: int
    told: bool = True


class Point(msgspec.Struct, frozen=True):
    """An acknowledged write on the plane of time and offset."""

    time_us: int
    offset: int
    value: int
    node: int | None
    kind: PointKind


class ClientSide(msgspec.Struct):
    """What clients saw of one log partition.

    ``acknowledged`` is by value; ``reads`` holds for each offset the time and value of the last read there;
    ``end_offset`` is as in :class:`Timeline`.
    """

    acknowledged: dict[int, Write] = {}
    reads: dict[int, tuple[int, int]] = {}
    end_offset: int | None = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a story is told from.

    Attributes:
        partition, write: the log partition and the write that is gone.
        begin_us, end_us: the stretch of the run's clock that is told.
        faults: receipts of faults in effect within it, the earliest first.
        points: acknowledged writes of the partition within it.
        successor, reader_us: what the last read found at the write's offset, and when; None if nothing was read there.
        successor_write: that value's own acknowledgement, where it had one.
        end_offset: the log end offset that the final readers reached, None if they did not.
        cluster: observations of the partition, and of brokers, up to the end of the window.
    """

    partition: str
    write: Write
    begin_us: int
    end_us: int
    faults: tuple[Receipt, ...]
    points: tuple[Point, ...]
    successor: int | None
    reader_us: int | None
    successor_write: Write | None
    end_offset: int | None
    cluster: tuple[Observation, ...]


def read_timeline(
    run: Path, partition: str, value: int, receipts: Sequence[Receipt], lost: frozenset[int]
) -> Timeline | None:
    """The timeline of the write ``value``; None where the history does not hold its acknowledgement.

    ``receipts`` are the run's faults; ``lost`` the values of the partition that checkers found lost.

    Raises:
        HistoryError: the history cannot be read.
    """
    side = _client_side(read_events(run / HISTORY), partition)
    write = side.acknowledged.get(value)
    if write is None:
        return None
    told = [seen for seen in read_observations(run) if seen.partition in {partition, None}]
    cluster = sorted(told, key=lambda seen: seen.time_us)
    effective = [receipt for receipt in receipts if receipt.took_effect]
    begin_us, end_us = _window(write, effective, cluster)
    _name_brokers(side.acknowledged, lost, cluster, effective)
    write = side.acknowledged[value]
    read_us, successor = (None, None) if write.offset is None else side.reads.get(write.offset, (None, None))
    return Timeline(
        partition=partition,
        write=write,
        begin_us=begin_us,
        end_us=end_us,
        faults=tuple(f for f in effective if f.begun_us <= end_us and _end_us(f, end_us) >= begin_us),
        points=_points(write, side.acknowledged.values(), lost, successor, (begin_us, end_us)),
        successor=successor,
        reader_us=read_us,
        successor_write=None if successor is None else side.acknowledged.get(successor),
        end_offset=side.end_offset,
        cluster=tuple(seen for seen in cluster if seen.time_us <= end_us),
    )


def read_observations(run: Path) -> Iterator[Observation]:
    """The lines of ``cluster.jsonl``, if there is such a file; without a last line that a killed harness tore."""
    path = run / CLUSTER_FILE
    if not path.is_file():
        return
    decoder = msgspec.json.Decoder(Observation)
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decoder.decode(line)


def _client_side(events: Iterable[Event], partition: str) -> ClientSide:
    invoked: dict[int, int] = {}
    side = ClientSide()
    for event in events:
        if event.function is Function.DRAIN and event.type is EventType.OK and partition in event.partitions:
            side.end_offset = event.offset
        for micro in event.micro:
            if isinstance(micro, Poll):
                for record in micro.records.get(partition, ()):
                    side.reads[record.offset] = (event.time_us, record.value)
            elif micro.partition == partition:
                _note_send(event, micro, invoked, side.acknowledged)
    return side


def _note_send(event: Event, send: Send, invoked: dict[int, int], acknowledged: dict[int, Write]) -> None:
    if event.function not in {Function.SEND, Function.TXN}:
        return
    if event.type is EventType.INVOKE:
        invoked[send.value] = event.time_us
    elif event.type is EventType.OK:
        acknowledged[send.value] = Write(
            value=send.value,
            invoked_us=invoked.get(send.value, event.time_us),
            acknowledged_us=event.time_us,
            offset=send.offset,
            node=event.node,
            process=event.process,
        )


def _name_brokers(
    acknowledged: dict[int, Write], lost: frozenset[int], cluster: Sequence[Observation], faults: Sequence[Receipt]
) -> None:
    """Where clients do not know who answered, ask the brokers' own words."""
    led = reigns(cluster, faults, max((write.acknowledged_us for write in acknowledged.values()), default=0))
    for value, write in acknowledged.items():
        if write.node is None and led:
            removers = [seen.node for seen in cluster if removes(seen, write)] if value in lost else None
            node = answering(led, write.acknowledged_us, removers)
            acknowledged[value] = msgspec.structs.replace(write, node=node, told=False)


def _end_us(receipt: Receipt, otherwise_us: int) -> int:
    return otherwise_us if receipt.ended_us is None else receipt.ended_us


def _window(write: Write, faults: Sequence[Receipt], cluster: Sequence[Observation]) -> tuple[int, int]:
    """From the faults around the write to the moment when the log went on without it."""
    last_us = write.acknowledged_us + AFTERMATH_US
    told = [f for f in faults if f.fault != UNASKED]  # spans the run: when in it is not known
    near = [f for f in told if f.begun_us <= last_us and _end_us(f, last_us) >= write.invoked_us - MARGIN_US]
    ends = [_end_us(fault, last_us) for fault in near]
    after = [seen.time_us for seen in cluster if removes(seen, write)][:1]
    after += [seen.time_us for seen in cluster if _leads_without(seen, write)][:1]
    begin_us = min([write.invoked_us, *(fault.begun_us for fault in near)]) - MARGIN_US
    begin_us = max(0, begin_us, write.acknowledged_us - WINDOW_MAX_US // 2)
    end_us = max([write.acknowledged_us, *ends, *after]) + MARGIN_US
    return begin_us, min(end_us, begin_us + WINDOW_MAX_US)


def removes(seen: Observation, write: Write) -> bool:
    """Whether this is a truncation that takes the write's offset, after the write was acknowledged."""
    if seen.what != "truncated" or write.offset is None or seen.time_us < write.invoked_us:
        return False
    to_offset, from_offset = seen.facts.get("to_offset"), seen.facts.get("from_offset")
    return to_offset is not None and to_offset <= write.offset and (from_offset is None or from_offset > write.offset)


def lacks(seen: Observation, write: Write) -> bool:
    """Whether the log that this speaks of ends before the write's place."""
    end = seen.facts.get("end_offset")
    return write.offset is not None and end is not None and end <= write.offset


def is_newer_leader(seen: Observation, timeline: Timeline) -> bool:
    """Whether somebody began to lead after the write was acknowledged, or in a newer epoch than the one who did."""
    if seen.what != "leader":
        return False
    epoch = led_in(timeline.cluster, timeline.write.node, timeline.write.acknowledged_us).get("leader_epoch")
    newer = epoch is not None and seen.facts.get("leader_epoch", -1) > epoch
    return newer or seen.time_us > timeline.write.acknowledged_us


def gone_at_us(timeline: Timeline) -> int | None:
    """When the write could be read no more: a leader without it, or a truncation of it; None if neither was seen."""
    write = timeline.write
    ends = [
        seen.time_us
        for seen in timeline.cluster
        if removes(seen, write) or (is_newer_leader(seen, timeline) and lacks(seen, write))
    ]
    return max(min(ends), write.acknowledged_us) if ends else None


def _leads_without(seen: Observation, write: Write) -> bool:
    """The same as far as the window is concerned; a write without an offset may be missed by any new leader."""
    if seen.what != "leader" or seen.time_us <= write.acknowledged_us:
        return False
    return lacks(seen, write) or write.offset is None


def _points(
    write: Write, acknowledged: Iterable[Write], lost: frozenset[int], successor: int | None, window: tuple[int, int]
) -> tuple[Point, ...]:
    by_kind: dict[PointKind, list[Point]] = defaultdict(list)
    for other in acknowledged:
        if other.offset is not None and window[0] <= other.acknowledged_us <= window[1]:
            kind = _kind(other, write, lost, successor)
            by_kind[kind].append(Point(other.acknowledged_us, other.offset, other.value, other.node, kind))
    return tuple(point for points in by_kind.values() for point in nearest(points, write.acknowledged_us))


def _kind(other: Write, write: Write, lost: frozenset[int], successor: int | None) -> PointKind:
    if other.value == write.value:
        return "the lost write"
    if other.value == successor:
        return "at its offset now"
    return "also lost" if other.value in lost else "acknowledged"


def nearest(points: Sequence[Point], time_us: int) -> list[Point]:
    """At most POINTS_MAX of the points, those nearest in time, in order of time."""
    kept = sorted(points, key=lambda point: abs(point.time_us - time_us))[:POINTS_MAX]
    return sorted(kept, key=lambda point: point.time_us)
