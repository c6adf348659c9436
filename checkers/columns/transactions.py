"""The ends of transactions, beside the rows of their writes, and what brokers said of the ends of log partitions.

Only histories whose operations are transactions of our own have them (:class:`workloads.TransactionEnd`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from checkers.columns.ids import Flags, Numbers, one_of
from workloads import Function, ProducerEpoch, StableOffset, TransactionEnd
from workloads.history import FAIL, FUNCTION_CODE, INFO, NONE, OK, Kind

_TXN: Final = FUNCTION_CODE[Function.TXN]
_STABLE: Final = FUNCTION_CODE[Function.STABLE]
#: A source is its log partition, from this bit on, and its offset.
_OFFSET_BITS: Final = 40
#: Values of ``asked``: a row of no transaction of our own, and how the producer asked for the end.
NO_TRANSACTION, UNASKED, COMMIT, ABORT = -1, 0, 1, 2
_FOREIGN: Final = TransactionEnd(transactional_id="", number=0, asked=None)
_Detail = TypeVar("_Detail")
_ASKED: Final = {None: UNASKED, "commit": COMMIT, "abort": ABORT}


@dataclass(kw_only=True)
class TransactionRows:
    """The facts of transactions that are known by row; all lists of rows are ascending.

    Attributes:
        asked: of row (int8): see :data:`NO_TRANSACTION`; also of rows of the offsets that a transaction commits.
        ending_us: of row (int64): when the producer asked for the end, -1 if it did not.
        failed: by row, the error of a send that failed, of transactions whose commit was answered.
        superseded_us: by row of a transaction whose producer had a successor before it asked for the end, when that
            one was told that it is in charge.
        late: rows of values that were sent after that.
        producer: by the rows of superseded_us, the id and epoch of the producer, where its client told them.
        stable: by row, what a broker said of the log partition's end.
        handed_us: of row (int64): when a group had taken the offsets that the transaction commits, -1 for no offsets.
        source: of row (int64): the record that a send was made of, and for which group, -1 where that is not known
            (:meth:`told`).
        source_names: the log partitions of sources, once for each group.
        done: rows of offsets that a transaction commits, one for each record that it was made of (int64).
        done_offset: by these, the offset of that record (int64).
    """

    asked: npt.NDArray[np.int8]
    ending_us: Numbers
    failed: dict[int, str] = field(default_factory=dict)
    superseded_us: dict[int, int] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    producer: dict[int, ProducerEpoch] = field(default_factory=dict)
    stable: dict[int, StableOffset] = field(default_factory=dict)
    handed_us: Numbers
    source: Numbers
    source_names: list[str] = field(default_factory=list)
    done: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    done_offset: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def none(cls, rows: int) -> Self:
        """Facts of rows that belong to no transaction."""
        asked = np.full(rows, NO_TRANSACTION, dtype=np.int8)
        ending_us, handed_us, source = (np.full(rows, NONE, dtype=np.int64) for _ in range(3))
        return cls(asked=asked, ending_us=ending_us, handed_us=handed_us, source=source)

    @classmethod
    def joined(cls, parts: Sequence[tuple[int, Self | None]]) -> Self | None:
        """The facts of parts laid end to end, each with the number of its rows; None where none has any."""
        if all(part is None for _, part in parts):
            return None
        filled = [cls.none(rows) if part is None else part for rows, part in parts]
        joined = cls(
            asked=np.concatenate([part.asked for part in filled]),
            ending_us=np.concatenate([part.ending_us for part in filled]),
            handed_us=np.concatenate([part.handed_us for part in filled]),
            source=np.concatenate([part.source for part in filled]),
        )
        joined.done_offset = np.concatenate([part.done_offset for part in filled])
        begin, done = 0, []
        for part in filled:
            sources = joined.source[begin : begin + len(part.source)]
            sources[sources != NONE] += len(joined.source_names) << _OFFSET_BITS
            joined.source_names += part.source_names
            done.append(part.done + begin)
            joined.failed |= {begin + row: error for row, error in part.failed.items()}
            joined.superseded_us |= {begin + row: time_us for row, time_us in part.superseded_us.items()}
            joined.late |= {begin + row for row in part.late}
            joined.producer |= {begin + row: producer for row, producer in part.producer.items()}
            joined.stable |= {begin + row: facts for row, facts in part.stable.items()}
            begin += len(part.asked)
        joined.done = np.concatenate(done)
        return joined

    def told(self, row: int) -> tuple[str, int]:
        """The log partition and the offset of the record that a send was made of."""
        source = int(self.source[row])
        return self.source_names[source >> _OFFSET_BITS], source % (1 << _OFFSET_BITS)

    @property
    def any(self) -> bool:
        """Anything is known of any row."""
        return bool(self.own.any()) or bool(self.stable)

    @property
    def own(self) -> Flags:
        """Mark the rows of transactions of our own that have ended (bool)."""
        own: Flags = self.asked != NO_TRANSACTION
        return own


def transactions_of(
    columns: Mapping[str, npt.NDArray[Any]], names: Sequence[str], codes: Numbers, details: Sequence[str]
) -> TransactionRows:
    """Read the facts of rows whose details have these ``codes``, places in ``details``, or -1.

    ``names`` are those of the log partitions.
    """
    facts = TransactionRows.none(len(codes))
    function, kind = columns["function"], columns["kind"]
    of_transaction = (function == _TXN) & (codes >= 0)
    own = np.flatnonzero(of_transaction & one_of(kind, Kind.SEND, Kind.REACHED))
    used, number_of = np.unique(codes[own], return_inverse=True)
    ends = [decoded(details[code], TransactionEnd) or _FOREIGN for code in used.tolist()]
    asked = [NO_TRANSACTION if end is _FOREIGN else _ASKED[end.asked] for end in ends]
    facts.asked[own] = np.array(asked, dtype=np.int8)[number_of]
    facts.ending_us[own] = np.array([NONE if end.ending_us is None else end.ending_us for end in ends])[number_of]
    facts.handed_us[own] = np.array([NONE if end.handed_us is None else end.handed_us for end in ends])[number_of]
    if any(end.sources for end in ends):
        _add_sources(facts, columns, names, own, [ends[number] for number in number_of.tolist()])
    special = np.array([bool(end.failed) or end.superseded_us is not None for end in ends], dtype=bool)
    for row, number in zip(own[special[number_of]].tolist(), number_of[special[number_of]].tolist(), strict=True):
        end, value = ends[number], int(columns["value"][row])
        if columns["type"][row] == OK and str(value) in end.failed:
            facts.failed[row] = end.failed[str(value)]
        if end.superseded_us is not None:
            facts.superseded_us[row] = end.superseded_us
            if end.producer is not None:
                facts.producer[row] = end.producer
        if value in end.late:
            facts.late.add(row)
    for row in np.flatnonzero((function == _STABLE) & (kind == Kind.REACHED) & (codes >= 0)).tolist():
        if (stable := decoded(details[int(codes[row])], StableOffset)) is not None:
            facts.stable[row] = stable
    return facts


def aborted_rows(kinds: npt.NDArray[Any], facts: TransactionRows, rows: Numbers) -> Flags:
    """Mark those of these rows of transactions that were certainly not committed (bool); ``kinds`` are event types."""
    aborted: Flags = (kinds[rows] == FAIL) | ((kinds[rows] == INFO) & (facts.asked[rows] != COMMIT))
    return aborted


def _add_sources(
    facts: TransactionRows,
    columns: Mapping[str, npt.NDArray[Any]],
    names: Sequence[str],
    own: Numbers,
    ends: Sequence[TransactionEnd],
) -> None:
    """Add what the sends of transactions were made of; ``ends`` are by row of ``own``. O(n) in sends and sources."""
    places: dict[tuple[str | None, str], int] = {}
    flat: dict[int, list[int]] = {}
    done: list[int] = []
    done_offset: list[int] = []
    kinds, positions = columns["kind"][own].tolist(), columns["position"][own].tolist()
    for row, kind, position, end in zip(own.tolist(), kinds, positions, ends, strict=True):
        if kind == Kind.REACHED:
            offsets = end.sources.get(names[columns["partition"][row]], ())
            done += [row] * len(offsets)
            done_offset += offsets
            continue
        if id(end) not in flat:
            flat[id(end)] = [
                places.setdefault((end.group, name), len(places)) << _OFFSET_BITS | offset
                for name, offsets in end.sources.items()
                for offset in offsets
            ]
        if position < len(flat[id(end)]):
            facts.source[row] = flat[id(end)][position]
    facts.source_names = [name for _, name in places]
    facts.done, facts.done_offset = np.array(done, dtype=np.int64), np.array(done_offset, dtype=np.int64)


def decoded(detail: str, kind: type[_Detail]) -> _Detail | None:
    """Read the detail of an event; None for one that another tool wrote."""
    try:
        return msgspec.json.decode(detail, type=kind)
    except msgspec.DecodeError:
        return None
