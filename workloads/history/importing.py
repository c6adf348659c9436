"""Stores a history that is given as JSON lines: decoded in splits, which may be decoded anywhere, then sealed.

A *split* is a stretch of the file, cut at an end of a line. It is decoded without knowledge of the others. So its rows
have indexes that count from 0, numbers of their own for foreign values, and completions whose invocation is in an
earlier split. The splits' accounts (:class:`Decoded`), which are short, are then gone through in order, and the rows
are corrected where they are read again (:class:`workloads.history.sealing.UnsealedPart`)::

    split 0   0  invoke  send  t-0  -2 ("a")     in the whole history   0  -2
    split 1   0  ok      send  t-0  -2 ("b")                            1  -3
              1  ok      send  t-0  -3 ("a")                            2  -2  completes 0
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from workloads.garbage_collection import without_collecting
from workloads.history import files
from workloads.history.clustering import NOTHING, Numbers, together
from workloads.history.event_table import repeated
from workloads.history.jsonl import Decoder
from workloads.history.left_out import LeftOut
from workloads.history.origin import REPLICA_LINES, Origin, ValueCodes
from workloads.history.pairing import Begun, OpenOperations
from workloads.history.rows import Columns, Names, Rows, to_table
from workloads.history.schema import META_RUN
from workloads.history.sealing import UnsealedPart, write_clustered
from workloads.history.turns import Turns
from workloads.operations import Event, Send

#: A file up to this size is one split.
SPLIT_BYTES: Final = 8 << 20
#: Completions without an invocation that a split names of each process.
_UNMATCHED_MAX: Final = 16
_NO_INDEX: Final = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Split:
    """The lines of ``source`` that begin in ``begin`` to ``end``; their rows go to ``target``, or stay in memory."""

    source: Path
    begin: int
    end: int
    target: Path | None = None


@dataclass(kw_only=True)
class Decoded:
    """The account of a decoded split.

    Attributes:
        split: the split.
        lines, events, rows: their numbers; blank lines and options are not events.
        problem: why the last of these lines is not an operation; the rest was not looked at then.
        loaded: the rows, unless they were written to the split's target.
        options: the file's options.
        values: foreign values, by -2 - value.
        indexes: by event, the indexes that the lines give, ``_NO_INDEX`` where they give nothing; int64; or the first
            index, where the others follow it one by one; None where no line gives any.
        unmatched: completions before the first invocation of their process here, with their indexes.
        begun: invocations that were not completed here, with their indexes.
        went_on: processes that began anything here, or have more such completions than ``unmatched`` names.
        turns: begins and ends of operations here.
        left_out: what the lines have and is not judged.
        replicas: lines about replicas' own logs.
    """

    split: Split
    lines: int = 0
    events: int = 0
    rows: int = 0
    problem: str | None = None
    loaded: tuple[Columns, Names] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)
    indexes: Numbers | int | None = None
    unmatched: list[Begun] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    went_on: set[int] = field(default_factory=set)
    turns: Turns = field(default_factory=Turns)
    left_out: LeftOut = field(default_factory=LeftOut)
    replicas: list[bytes] = field(default_factory=list)


#: Decodes splits, and answers in their order.
DecodeAll = Callable[[Sequence[Split]], Iterable[Decoded]]


def decode(split: Split) -> Decoded:
    """Decode one split.

    Raises:
        OSError: the file cannot be read, or the target not written.
    """
    open_here = _OpenHere()
    decoded = _decode(split, Decoder(Rows(open_here), ValueCodes()))
    decoded.unmatched, decoded.begun, decoded.went_on = open_here.unmatched, list(open_here), open_here.went_on
    return decoded


def _decode(split: Split, decoder: Decoder) -> Decoded:
    """The account of a split without the fields about operations of other splits."""
    first = decoder.rows.events
    decoded = Decoded(split=split)
    taken: list[Columns] = []
    try:
        with without_collecting():  # Events and rows have no cycles.
            for lines in _blocks(split):
                decoder.add(lines, first=not split.begin)
                waiting = decoder.rows.waiting
                decoded.turns.add(waiting, decoder.rows.events - first - len(waiting))
                taken.append(decoder.rows.take())
    except ValueError as error:
        decoded.problem = str(error)
    decoded.lines = decoder.lines
    if decoded.problem is not None:
        return decoded
    columns = together(*taken, decoder.rows.take())
    decoded.events, decoded.rows = decoder.rows.events - first, len(columns["key"])
    decoded.options, decoded.values = decoder.options, decoder.values.values
    decoded.left_out, decoded.replicas = decoder.left_out, decoder.replicas
    decoded.indexes = _given(decoder.indexes)
    if split.target is None:
        decoded.loaded = columns, decoder.rows.names
    else:
        files.write(split.target, to_table(columns, decoder.rows.names), {META_RUN: b""}, durable=False)
    return decoded


def _blocks(split: Split) -> Iterator[list[bytes]]:
    """The lines that begin in a split, a bounded part of them at a time."""
    with split.source.open("rb") as source:
        if split.begin:
            source.seek(split.begin - 1)
            source.readline()  # the end of a line that begins before
        while (left := split.end - source.tell()) > 0 and (block := source.read(min(SPLIT_BYTES, left))):
            if not block.endswith(b"\n"):
                block += source.readline()
            yield block.removesuffix(b"\n").split(b"\n")


class _OpenHere(OpenOperations):
    """Pairs the events of one split, and notes those that may belong to an earlier one."""

    def __init__(self) -> None:
        super().__init__()
        self.unmatched: list[Begun] = []
        self.went_on: set[int] = set()
        self._counts: Counter[int] = Counter()

    def begin(self, index: int, invocation: Event) -> None:
        self.went_on.add(invocation.process)
        super().begin(index, invocation)

    def look_before(self, process: int) -> None:
        self.went_on.add(process)

    def end(self, index: int, completion: Event) -> Begun | None:
        process = completion.process
        if process not in self.went_on:
            self._counts[process] += 1
            if self._counts[process] <= _UNMATCHED_MAX:
                self.unmatched.append((index, completion))
            else:
                self.went_on.add(process)
        return super().end(index, completion)


def _given(indexes: list[int | None]) -> Numbers | int | None:
    if all(index is None for index in indexes):
        return None
    given = np.array([_NO_INDEX if index is None else index for index in indexes], dtype=np.int64)
    if given[0] != _NO_INDEX and (given == given[0] + np.arange(len(given))).all():
        return int(given[0])
    return given


def decode_here(splits: Sequence[Split]) -> Iterable[Decoded]:
    """Decode one split after the other, in this process."""
    return map(decode, splits)


#: The file that lines were made of, the number of its line that each was made of, and what was left out of it.
MadeOf = tuple[Path, Sequence[int], LeftOut]


def import_jsonl(
    source: Path, directory: Path, decode_all: DecodeAll = decode_here, *, of: MadeOf | None = None
) -> Origin:
    """Store a history given as JSON lines: ``clustered.parquet`` and ``origin.json`` in ``directory``.

    ``decode_all`` decodes the splits of a file that has more than one. Messages are about the file that the lines were
    made ``of``, if they were.

    Raises:
        files.HistoryError: a line cannot be understood; the text names file, line and reason.
        OSError: the file cannot be read or the directory not written.
    """
    size = source.stat().st_size
    if size > SPLIT_BYTES:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".decoding-") as scratch:
            begins = range(0, size, SPLIT_BYTES)
            splits = [
                Split(source, begin, min(size, begin + SPLIT_BYTES), Path(scratch) / files.live_name(number))
                for number, begin in enumerate(begins)
            ]
            return _store(_Joining(source, of), directory, decode_all(splits))
    return _store(_Joining(source, of), directory, [decode(Split(source, 0, size))])


def _store(joining: _Joining, directory: Path, decoded: Iterable[Decoded]) -> Origin:
    parts = [joining.add(split) for split in decoded]
    complete = bool(joining.options.get("complete", True))
    write_clustered(directory, joining.source.stem, parts, complete=complete, durable=False)
    origin = Origin(
        values=joining.values.values,
        indexes=joining.labels(),
        options=joining.options,
        left_out=joining.sentences,
    )
    origin.irregular = joining.irregular(origin)
    origin.save(directory)
    if joining.replicas:
        (directory / REPLICA_LINES).write_bytes(b"".join(line + b"\n" for line in joining.replicas))
    return origin


class _Joining:
    """The accounts of a file's splits, brought together in order."""

    def __init__(self, source: Path, of: MadeOf | None) -> None:
        self.source = source if of is None else of[0]
        self._line_of = None if of is None else of[1]
        self._left_out_before = LeftOut() if of is None else of[2]
        self.values = ValueCodes()
        self.options: dict[str, Any] = {}
        self.replicas: list[bytes] = []
        self._lines = self._events = 0
        self._open = OpenOperations()
        self._turns = Turns()
        self._left_out = LeftOut()
        #: By split, its first index, its events, and the indexes that its lines give.
        self._indexes: list[tuple[int, int, Numbers | int | None]] = []

    def add(self, decoded: Decoded) -> UnsealedPart:
        """The rows of the next split, with the corrections that they need.

        Raises:
            files.HistoryError: a line of it cannot be understood.
            OSError: it must be decoded again, and the file cannot be read or the split's target not written.
        """
        if decoded.problem is not None:
            line = self._line(self._lines + decoded.lines)
            raise files.HistoryError(f"{self.source}, line {line}: {decoded.problem}")
        first, before = self._events, list(self._open)
        self._turns.follow(decoded.turns, first)
        codes = np.array([self.values.code(value) for value in decoded.values], dtype=np.int64)
        pairs = [pair for index, event in decoded.unmatched if (pair := self._pair(first + index, event, codes))]
        if any(process in self._open for process in decoded.went_on):
            # Which of its operations are then completed, and which never can be, depends on all that it began here.
            self._open = OpenOperations(before)
            decoded = _decode(decoded.split, Decoder(Rows(self._open, first), self.values))
            part = UnsealedPart(decoded.rows, path=decoded.split.target)
        else:
            for index, event in decoded.begun:
                self._open.begin(first + index, _recoded(event, codes))
            part = UnsealedPart(
                decoded.rows,
                loaded=decoded.loaded,
                path=decoded.split.target,
                first=first,
                codes=codes if (codes != -2 - np.arange(len(codes))).any() else NOTHING,
                invocations=_late(pairs),
            )
        self._indexes.append((first, decoded.events, decoded.indexes))
        self._left_out.follow(decoded.left_out, self._lines)
        self.replicas += decoded.replicas
        self._events, self._lines = first + decoded.events, self._lines + decoded.lines
        self.options = self.options or decoded.options
        return part

    def _pair(self, index: int, event: Event, codes: Numbers) -> tuple[Begun, Begun] | None:
        """The invocation of a completion, and the completion as in the whole history; None without an invocation."""
        completion = _recoded(event, codes)
        begun = self._open.end(index, completion)
        return None if begun is None else (begun, (index, completion))

    def _line(self, number: int) -> int:
        """The number of a line in the file that messages are about."""
        return number if self._line_of is None else self._line_of[number - 1]

    @property
    def sentences(self) -> list[str]:
        """Sentences about the parts of the file that are not judged."""
        for what, (times, line) in self._left_out.told.items():
            self._left_out_before.add(what, times, self._line(line))
        return self._left_out_before.sentences

    def labels(self) -> list[int] | None:
        """The file's own indexes by event; None where they are the places in the file, or the first event lacks one."""
        given = []
        for first, events, indexes in self._indexes:
            places = np.arange(first, first + events)
            if indexes is None:
                given.append(places)
            elif isinstance(indexes, int):
                given.append(places + (indexes - first))
            else:
                given.append(np.where(indexes == _NO_INDEX, places, indexes))
            if not first and events and (indexes is None or (not isinstance(indexes, int) and indexes[0] == _NO_INDEX)):
                return None
        labels = np.concatenate([NOTHING, *given])
        return None if (labels == np.arange(len(labels))).all() else labels.tolist()

    def irregular(self, origin: Origin) -> str:
        """The first irregular event, in a sentence without its full stop; "" in a regular history."""
        if (event := self._turns.irregular) is not None:
            index, process = origin.index(event.index), event.process
            if event.since is None:
                return f"index {index}: process {process} ends an operation that it did not begin"
            since = origin.index(event.since)
            return f"index {index}: process {process} begins an operation and is busy with another since index {since}"
        if origin.indexes is not None and (twice := _first_repeated(origin.indexes)) is not None:
            return f"two operations have index {twice}"
        return ""


def _first_repeated(numbers: Sequence[int]) -> int | None:
    values, first = np.unique(np.asarray(numbers, dtype=np.int64), return_index=True)
    if len(values) == len(numbers):
        return None
    again = np.setdiff1d(np.arange(len(numbers)), first)
    return int(numbers[again.min()])


def _late(pairs: Sequence[tuple[Begun, Begun]]) -> Numbers:
    """The facts of invocations in earlier splits for their completions, as :attr:`UnsealedPart.invocations`."""
    folded = repeated([begun for (_, begun), _ in pairs], [completion for _, (_, completion) in pairs])
    rows = [(done[0], begun[0], begun[1].time_us, int(same)) for (begun, done), same in zip(pairs, folded, strict=True)]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _recoded(event: Event, codes: Numbers) -> Event:
    """The event with the numbers that the values it sends have in the whole file."""
    if not len(codes):
        return event
    micro = tuple(
        msgspec.structs.replace(m, value=int(codes[-2 - m.value])) if isinstance(m, Send) and m.value < -1 else m
        for m in event.micro
    )
    return msgspec.structs.replace(event, micro=micro)
