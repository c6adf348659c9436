"""Synthetic histories of any length, clean or with a stated number of anomalies, for measuring the checkers.

Half sends, half polls, by eight processes that overlap; ten log partitions are active at a time, each for 1,024
writes; an assign about every 64 operations, and one of every process when the partitions change. A *block* is ten
partitions' life, about 20,000 operations. A few blocks are made event by event, through the same code that stores
real histories; a long history is these blocks again and again with other partitions, indexes and times, so that 10^8
operations are written in minutes and in little memory.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import msgspec
import numpy as np
from typing_extensions import Unpack

from bench.event_sequence import LATENCY_US, STEP_US, EventSequence
from bench.plant_parts import EventRest
from bench.plants import PLANTS
from workloads import EventType, Function, MicroOperation, Poll, Record, Send, TransactionEnd
from workloads.history import (
    CLUSTERED,
    META_COMPLETE,
    META_EVENTS,
    META_JOINED,
    META_RUN,
    META_SPREAD,
    META_SUBJECTS,
    NONE,
    ROWS_A_GROUP,
    Columns,
    Rows,
    Subjects,
    cluster,
    joined,
    open_writer,
    subjects,
    to_table,
)

KEYS: Final = 10
WRITES: Final = 1024
PROCESSES: Final = 8
#: One in this number of operations is an assign.
ASSIGN_EVERY: Final = 64


class SyntheticHistory(NamedTuple):
    """A synthetic history: its directory, its completed operations and events, and the expected counts of a check."""

    directory: Path
    operations: int
    events: int
    rows: int
    expected: dict[str, int]


class Block(NamedTuple):
    """Clustered rows of one block: those of its partitions, and those of no partition. Indexes count from 0.

    ``details`` and ``errors`` are the texts of these columns; ``operations`` counts the completions that the history is
    measured by.
    """

    rows: Columns
    rest: Columns
    events: int
    operations: int
    end_us: int
    joined: bool
    subjects: Subjects
    details: tuple[str, ...]
    errors: tuple[str, ...]


class BlockBuilder:
    """Builds one block, and knows the owner of each log partition and how far it was written and read."""

    #: Functions of operations that do not count in the size of a history.
    uncounted: ClassVar[frozenset[Function]] = frozenset()
    #: Planted in turn, each at the end of a block.
    plants: ClassVar[Sequence[str]] = tuple(PLANTS)

    def __init__(self, sequence: EventSequence, number: int, plant: str | None) -> None:
        self.sequence, self.plant = sequence, plant
        self.keys = [f"b{number}-{key}" for key in range(KEYS)]
        self.owned = [[key for key in range(KEYS) if key % PROCESSES == process] for process in range(PROCESSES)]
        self.acknowledged: list[list[tuple[int, int]]] = [[] for _ in range(KEYS)]
        self.read_to = [0] * KEYS
        self.seen_to = [0] * KEYS
        self.end = WRITES

    def build(self) -> None:
        """Build the block, and what is planted in it."""
        for process in range(PROCESSES):
            self.assign(process)
            self.sequence.quiet()
        writes = [key for key in range(KEYS) for _ in range(WRITES)]
        self.sequence.chance.shuffle(writes)
        written = [0] * KEYS
        for turn in range(2 * len(writes)):
            process = turn % PROCESSES
            if turn % ASSIGN_EVERY == ASSIGN_EVERY - 1:
                self.assign((turn // ASSIGN_EVERY) % PROCESSES)
                self.sequence.quiet()
            if self.sequence.chance.random() < 0.5 and writes:
                self.send(process, writes, written)
            else:
                self.poll(process)
        while writes:
            self.send(0, writes, written)
            self.sequence.quiet()
        self.sequence.quiet()
        for process in range(PROCESSES):
            self.poll(process)
        self.spoil()

    def spoil(self) -> None:
        """Plant the block's anomaly, after everything has ended."""
        self.sequence.quiet()
        if self.plant is not None:
            PLANTS[self.plant].build(self)

    def assign(self, process: int) -> None:
        """Assign its log partitions to a process again."""
        keys = tuple(self.keys[key] for key in self.owned[process])
        self.sequence.operation(process, Function.ASSIGN, partitions=keys)

    def send(self, process: int, writes: list[int], written: list[int]) -> None:
        """Send the next of ``writes``, log partitions in order; ``written`` counts the values of each."""
        key = writes.pop()
        value, written[key] = written[key], written[key] + 1
        end = self.sequence.operation(process, Function.SEND, self.sent(key, value))
        self.acknowledged[key].append((end, value))

    def sent(self, key: int, value: int) -> tuple[MicroOperation, ...]:
        """A send of a value, whose offset is the value."""
        return (Send(self.keys[key], value, value),)

    def poll(self, process: int) -> None:
        """Read what was acknowledged since the process's last poll."""
        now, records = self.sequence.time_us, {}
        for key in self.owned[process]:
            waiting = self.acknowledged[key]
            self.seen_to[key] = max([self.seen_to[key], *(value + 1 for end, value in waiting if end < now)])
            self.acknowledged[key] = [(end, value) for end, value in waiting if end >= now]
            unread = range(self.read_to[key], self.seen_to[key])
            if self.plant == "lost-write" and len(unread) == 1 and unread[0] > WRITES // 4:
                self.plant = None
            elif unread:
                records[self.keys[key]] = tuple(Record(value, value) for value in unread)
            self.read_to[key] = self.seen_to[key]
        self.sequence.operation(process, Function.POLL, (Poll(records),))

    def together(self, *operations: tuple[int, tuple[MicroOperation, ...]], kind: EventType = EventType.OK) -> None:
        """Perform operations that overlap, as plants ask for (HistoryBuilder)."""
        for process, micro in operations:
            alike = {type(part) for part in micro}
            function = Function.TXN if len(alike) > 1 else Function.SEND if alike == {Send} else Function.POLL
            self.sequence.operation(process, function, micro, kind=kind, latency_us=LATENCY_US[1])
        self.sequence.quiet()

    def event(self, process: int, kind: EventType, function: Function, **rest: Unpack[EventRest]) -> None:
        """Let one event happen after all before it, as plants ask for (HistoryBuilder)."""
        self.sequence.event(self.sequence.time_us, process, kind, function, **rest)
        self.sequence.time_us += STEP_US

    @property
    def time_us(self) -> int:
        """The time of the next event (HistoryBuilder)."""
        return self.sequence.time_us

    def wait(self, wait_us: int) -> None:
        """Let nothing happen for a while (HistoryBuilder)."""
        self.sequence.time_us += wait_us


def make_block(seed: int, plant: str | None = None, builder: type[BlockBuilder] = BlockBuilder) -> Block:
    """One block, taken from the middle of three so that it begins and ends as in a long history."""
    sequence, bounds = EventSequence(seed), [0]
    for number in range(3):
        builder(sequence, number, plant if number == 1 else None).build()
        bounds.append(sequence.time_us)
    sequence.events.sort(key=lambda event: event.time_us)
    rows = Rows()
    for event in sequence.events:
        rows.add(event)
    keys = rows.names["key"]
    clustered = cluster(rows.take())
    first, last = (sum(event.time_us < bound for event in sequence.events) for bound in bounds[1:3])
    mine = np.array([name.startswith("b1-") for name in keys])[clustered["key"]]
    rest = (clustered["key"] == 0) & (clustered["index"] >= first) & (clustered["index"] < last)
    counted = [event for event in sequence.events[first:last] if event.function not in builder.uncounted]
    own = {name: column[mine] for name, column in clustered.items()}
    names = {keys[code]: _name(0, rank) for rank, code in enumerate(np.unique(own["key"]).tolist())}
    return Block(
        _moved(clustered, mine, -first, -bounds[1]),
        _moved(clustered, rest, -first, -bounds[1]),
        last - first,
        sum(event.type != EventType.INVOKE for event in counted),
        bounds[2] - bounds[1],
        joined(own),
        subjects(own),
        tuple(_told_later(detail, -bounds[1], names) for detail in rows.names["detail"]),
        tuple(rows.names["error"]),
    )


def _moved(rows: Columns, which: np.ndarray, index: int, time_us: int) -> Columns:
    moved = {name: np.ascontiguousarray(column[which]) for name, column in rows.items()}
    return _shifted(moved, index, time_us)


def _shifted(rows: Columns, index: int, time_us: int) -> Columns:
    """The same rows at another place in the history; what is not known stays so."""
    shifted = dict(rows)
    for name, by in (("index", index), ("time_us", time_us), ("invoke_index", index), ("invoke_us", time_us)):
        shifted[name] = np.where(rows[name] >= 0, rows[name] + by, rows[name])
    return shifted


def _told_later(detail: str, by_us: int, names: Mapping[str, str]) -> str:
    """A detail with its moments, if it has any, moved in time, and with these names of log partitions."""
    try:
        end = msgspec.json.decode(detail, type=TransactionEnd)
    except msgspec.ValidationError:
        return detail
    moments = {name: getattr(end, name) for name in ("ending_us", "superseded_us", "handed_us")}
    moved = {name: at_us + by_us for name, at_us in moments.items() if at_us is not None}
    sources = {names.get(name, name): offsets for name, offsets in end.sources.items()}
    return msgspec.json.encode(msgspec.structs.replace(end, sources=sources, **moved)).decode()


def _name(block: int, key: int) -> str:
    """The name of a log partition in a long history."""
    return f"t{block:06d}-{key}"


def write_synthetic(
    directory: Path,
    operations: int,
    *,
    planted: int = 0,
    builder: type[BlockBuilder] = BlockBuilder,
    plants: Sequence[str] = (),
) -> SyntheticHistory:
    """Write a history of about this number of completed operations into ``directory``.

    ``planted`` anomalies, at most one a block, are spread evenly; kinds take turns in the order of ``plants``, by
    default those of the ``builder``. The expected counts are those of a check with overwrites as dependencies.

    Raises:
        ValueError: there are fewer blocks than anomalies to plant.
    """
    plants = plants or builder.plants
    clean = make_block(0, None, builder)
    blocks = max(1, round(operations / clean.operations))
    if planted > blocks:
        raise ValueError(f"{operations} operations are {blocks} blocks, too few for {planted} planted anomalies")
    templates: dict[str | None, Block] = {None: clean}
    templates |= {kind: make_block(number, kind, builder) for number, kind in enumerate(plants[:planted], 1)}
    chosen_plants = {blocks * number // planted: plants[number % len(plants)] for number in range(planted)}
    chosen = [templates[chosen_plants.get(number)] for number in range(blocks)]
    expected: Counter[str] = Counter()
    for plant in chosen_plants.values():
        expected.update(PLANTS[plant].counts)
    rows = _write(directory, chosen)
    return SyntheticHistory(
        directory,
        sum(b.operations for b in chosen),
        sum(b.events for b in chosen),
        rows,
        dict(sorted(expected.items())),
    )


def _write(directory: Path, blocks: list[Block]) -> int:
    metadata = {
        META_RUN: b"synthetic",
        META_COMPLETE: b"true",
        META_SPREAD: b"false",
        META_JOINED: b"true" if any(block.joined for block in blocks) else b"false",
        META_EVENTS: str(sum(block.events for block in blocks)).encode(),
    }
    present = functools.reduce(operator.or_, (block.subjects for block in blocks))
    metadata |= {name: str(is_there).lower().encode() for name, is_there in zip(META_SUBJECTS, present, strict=True)}
    directory.mkdir(parents=True, exist_ok=True)
    rows = 0
    with (directory / CLUSTERED).open("wb") as sink, open_writer(sink, metadata) as writer:
        for part, names in _row_groups(blocks):
            table = to_table(part, names)
            writer.write_table(table, row_group_size=table.num_rows)
            rows += table.num_rows
    return rows


def _row_groups(blocks: list[Block]) -> Iterator[tuple[Columns, dict[str, list[str]]]]:
    """Blocks laid together to row groups: first all rows of partitions, then all others.

    With each come the texts of its log partitions, errors and details.
    """
    for rest in (False, True):
        index, time_us = 0, 0
        waiting: list[Columns] = []
        details: list[str] = []
        errors: list[str] = []
        for number, block in enumerate(blocks):
            part = _shifted(block.rest if rest else block.rows, index, time_us)
            if not rest:
                _, ranks = np.unique(part["key"], return_inverse=True)
                part["key"] = ranks + len(waiting) * KEYS
            part["detail"] = np.where(part["detail"] == NONE, NONE, part["detail"] + len(details))
            part["error"] = np.where(part["error"] == NONE, NONE, part["error"] + len(errors))
            errors += block.errors
            renamed = {_name(0, key): _name(number, key) for key in range(KEYS)}
            details += [_told_later(detail, time_us, renamed) for detail in block.details]
            waiting.append(part)
            index, time_us = index + block.events, time_us + block.end_us
            rows = sum(len(columns["key"]) for columns in waiting)
            if rows and (rows >= ROWS_A_GROUP or number == len(blocks) - 1):
                first = number + 1 - len(waiting)
                keys = [""] if rest else [_name(b, k) for b in range(first, number + 1) for k in range(KEYS)]
                rows_of = {name: np.concatenate([columns[name] for columns in waiting]) for name in part}
                yield rows_of, {"key": keys, "error": errors, "detail": details}
                waiting, details, errors = [], [], []
