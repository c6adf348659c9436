"""Storing a history that is given as JSON lines: decoded in splits, which may be decoded anywhere, then sealed.

A *split* is a stretch of the file, cut at an end of a line. Whoever decodes one knows nothing of the others, so that
its rows have indexes that count from 0, numbers of their own for foreign values, and completions whose invocation
stands in an earlier split. The splits' accounts (:class:`Decoded`), which are short, are then gone through in order,
and what they say is put right where the rows are read again (:class:`workloads.history.sealing.Part`).
"""

from __future__ import annotations

import gc
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from workloads.history import files
from workloads.history.clustering import NOTHING, Numbers, together
from workloads.history.event_table import repeated
from workloads.history.jsonl import Decoder
from workloads.history.origin import Origin, ValueCodes
from workloads.history.pairing import Begun, OpenOperations
from workloads.history.rows import Columns, Names, Rows, to_table
from workloads.history.schema import META_RUN, NAMELESS
from workloads.history.sealing import Part, write_clustered
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
    """What the decoding of a split found.

    Attributes:
        split: which.
        lines, events, rows: how many; blank lines and options are no events.
        problem: why the last of these lines is no operation; the rest was not looked at then.
        loaded: the rows, unless they were written to the split's target.
        options: of the file.
        values: foreign values, by -2 - value.
        indexes: by event, what the lines give, ``_NO_INDEX`` where they give nothing; int64; or the first index, where
            the others follow it one by one; None where no line gives any.
        unmatched: completions before the first invocation of their process here, with their indexes.
        begun: invocations that were not completed here, with their indexes.
        invoked: processes that began anything here.
        doubtful: processes of which a completion did not clearly belong to an invocation here.
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
    invoked: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)


#: Decodes splits, and answers in their order.
DecodeAll = Callable[[Sequence[Split]], Iterable[Decoded]]


class _EntangledError(Exception):
    """Which invocation a completion belongs to cannot be decided without looking at all lines at once."""


def decode(split: Split) -> Decoded:
    """Decode one split.

    Raises:
        OSError: the file cannot be read, or the target not written.
    """
    open_here = _OpenHere()
    decoder = Decoder(Rows(open_here))
    decoded = Decoded(split=split)
    taken: list[Columns] = []
    try:
        with _without_collecting():
            for lines in _blocks(split):
                decoder.add(lines, first=not split.begin)
                taken.append(decoder.rows.take())
    except ValueError as error:
        decoded.problem = str(error)
    decoded.lines = decoder.lines
    if decoded.problem is not None:
        return decoded
    columns = together(*taken, decoder.rows.take())
    decoded.events, decoded.options, decoded.values = decoder.rows.events, decoder.options, decoder.values.values
    decoded.indexes = _given(decoder.indexes)
    decoded.unmatched, decoded.begun = open_here.unmatched, list(open_here)
    decoded.invoked, decoded.doubtful = open_here.invoked, open_here.doubtful
    decoded.rows = len(columns["key"])
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


@contextmanager
def _without_collecting() -> Iterator[None]:
    """What is made of lines has no cycles; looking for some would take as long again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _OpenHere(OpenOperations):
    """Pairs what stands in one split, and notes what may belong to an earlier one."""

    def __init__(self) -> None:
        super().__init__()
        self.unmatched: list[Begun] = []
        self.invoked: set[int] = set()
        self.doubtful: set[int] = set()
        self._counts: Counter[int] = Counter()

    def begin(self, index: int, invocation: Event) -> None:
        if invocation.process < NAMELESS:
            self.invoked.add(invocation.process)
            super().begin(index, invocation)

    def end(self, index: int, completion: Event) -> Begun | None:
        process = completion.process
        if process in self.invoked:
            if (found := self.same(completion)) is not None:
                return found
            self.doubtful.add(process)
            return self.similar(completion)
        if process < NAMELESS:
            self._counts[process] += 1
            if self._counts[process] <= _UNMATCHED_MAX:
                self.unmatched.append((index, completion))
            else:
                self.doubtful.add(process)
        return None


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


def import_jsonl(source: Path, directory: Path, decode_all: DecodeAll = decode_here) -> Origin:
    """Store a history given as JSON lines: ``clustered.parquet`` and ``origin.json`` in ``directory``.

    ``decode_all`` decodes the splits of a file that has more than one.

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
            try:
                return _store(source, directory, decode_all(splits))
            except _EntangledError:
                pass
    return _store(source, directory, [decode(Split(source, 0, size))])


def _store(source: Path, directory: Path, decoded: Iterable[Decoded]) -> Origin:
    joining = _Joining(source)
    parts = [joining.add(one) for one in decoded]
    write_clustered(directory, source.stem, parts, complete=True, durable=False)
    origin = Origin(values=joining.values.values, indexes=joining.labels(), options=joining.options)
    origin.save(directory)
    return origin


class _Joining:
    """What the splits of a file say, gone through in order."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.values = ValueCodes()
        self.options: dict[str, Any] = {}
        self._lines = self._events = 0
        self._open = OpenOperations()
        #: Processes with an invocation that a later one of theirs may have replaced, nobody knows where.
        self._hidden: set[int] = set()
        #: Of split: first index, events, and the indexes that its lines give.
        self._indexes: list[tuple[int, int, Numbers | int | None]] = []

    def add(self, decoded: Decoded) -> Part:
        """The rows of the next split, with what must be put right in them.

        Raises:
            files.HistoryError: a line of it cannot be understood.
            _EntangledError: see there.
        """
        if decoded.problem is not None:
            raise files.HistoryError(f"{self.source}, line {self._lines + decoded.lines}: {decoded.problem}")
        codes = np.array([self.values.code(value) for value in decoded.values], dtype=np.int64)
        first = self._events
        found = [pair for index, event in decoded.unmatched if (pair := self._pair(first + index, event, codes))]
        if any(process in self._open or process in self._hidden for process in decoded.doubtful):
            raise _EntangledError
        for process in decoded.invoked:
            if process in self._open:
                self._hidden.add(process)
                self._open.forget(process)
        for index, event in decoded.begun:
            self._open.begin(first + index, _recoded(event, codes))
        self._indexes.append((first, decoded.events, decoded.indexes))
        self._events, self._lines = first + decoded.events, self._lines + decoded.lines
        self.options = self.options or decoded.options
        return Part(
            decoded.rows,
            loaded=decoded.loaded,
            path=decoded.split.target,
            first=first,
            codes=codes if (codes != -2 - np.arange(len(codes))).any() else NOTHING,
            invocations=_late(found),
        )

    def _pair(self, index: int, event: Event, codes: Numbers) -> tuple[Begun, Begun] | None:
        """The invocation of a completion, and the completion as it is in the whole history; None if it has none."""
        completion = _recoded(event, codes)
        begun = self._open.same(completion)
        if begun is None:
            if completion.process in self._hidden:
                raise _EntangledError
            begun = self._open.similar(completion)
        return None if begun is None else (begun, (index, completion))

    def labels(self) -> list[int] | None:
        """The file's own indexes by event, None where they are the places in the file, or the first event has none."""
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


def _late(pairs: Sequence[tuple[Begun, Begun]]) -> Numbers:
    """What completions learn of invocations in earlier splits, as :attr:`Part.invocations` has it."""
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
