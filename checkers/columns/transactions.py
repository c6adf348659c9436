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

from checkers.columns.ids import Flags, Numbers
from workloads import Function, StableOffset, TransactionEnd
from workloads.history import FUNCTION_CODE, NONE, OK, Kind

_TXN: Final = FUNCTION_CODE[Function.TXN]
_STABLE: Final = FUNCTION_CODE[Function.STABLE]
#: The functions whose details say something of transactions.
TOLD_IN_DETAILS: Final = (_TXN, _STABLE)
#: Values of ``asked``: a row of no transaction of our own, and how the producer asked for the end.
NO_TRANSACTION, UNASKED, COMMIT, ABORT = -1, 0, 1, 2
_FOREIGN: Final = TransactionEnd(transactional_id="", number=0, asked=None)
_Detail = TypeVar("_Detail")
_ASKED: Final = {None: UNASKED, "commit": COMMIT, "abort": ABORT}


@dataclass(kw_only=True)
class Transactions:
    """The facts of transactions that are known by row; all lists of rows are ascending.

    Attributes:
        asked: of row (int8): see :data:`NO_TRANSACTION`.
        ending_us: of row (int64): when the producer asked for the end, -1 if it did not.
        failed: by row, the error of a send that failed, of transactions whose commit was answered.
        superseded_us: by row of a transaction whose producer had a successor before it asked for the end, when that
            one was told that it is in charge.
        late: rows of values that were sent after that.
        stable: by row, what a broker said of the log partition's end.
    """

    asked: npt.NDArray[np.int8]
    ending_us: Numbers
    failed: dict[int, str] = field(default_factory=dict)
    superseded_us: dict[int, int] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)
    stable: dict[int, StableOffset] = field(default_factory=dict)

    @classmethod
    def none(cls, rows: int) -> Self:
        """Facts of rows that belong to no transaction."""
        return cls(asked=np.full(rows, NO_TRANSACTION, dtype=np.int8), ending_us=np.full(rows, NONE, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[tuple[int, Self | None]]) -> Self | None:
        """The facts of parts laid end to end, each with the number of its rows; None where none has any."""
        if all(part is None for _, part in parts):
            return None
        filled = [cls.none(rows) if part is None else part for rows, part in parts]
        joined = cls(
            asked=np.concatenate([part.asked for part in filled]),
            ending_us=np.concatenate([part.ending_us for part in filled]),
        )
        begin = 0
        for part in filled:
            joined.failed |= {begin + row: error for row, error in part.failed.items()}
            joined.superseded_us |= {begin + row: time_us for row, time_us in part.superseded_us.items()}
            joined.late |= {begin + row for row in part.late}
            joined.stable |= {begin + row: facts for row, facts in part.stable.items()}
            begin += len(part.asked)
        return joined

    @property
    def any(self) -> bool:
        """Anything is known of any row."""
        return bool(self.own.any()) or bool(self.stable)

    @property
    def own(self) -> Flags:
        """Mark the rows of transactions of our own that have ended (bool)."""
        own: Flags = self.asked != NO_TRANSACTION
        return own


def transactions_of(columns: Mapping[str, npt.NDArray[Any]], codes: Numbers, details: Sequence[str]) -> Transactions:
    """Read the facts of rows whose details have these ``codes``, places in ``details``, or -1."""
    facts = Transactions.none(len(codes))
    function, kind = columns["function"], columns["kind"]
    own = np.flatnonzero((function == _TXN) & (kind == Kind.SEND) & (codes >= 0))
    used, number_of = np.unique(codes[own], return_inverse=True)
    ends = [_decoded(details[code], TransactionEnd) or _FOREIGN for code in used.tolist()]
    asked = [NO_TRANSACTION if end is _FOREIGN else _ASKED[end.asked] for end in ends]
    facts.asked[own] = np.array(asked, dtype=np.int8)[number_of]
    facts.ending_us[own] = np.array([NONE if end.ending_us is None else end.ending_us for end in ends])[number_of]
    special = np.array([bool(end.failed) or end.superseded_us is not None for end in ends], dtype=bool)
    for row, number in zip(own[special[number_of]].tolist(), number_of[special[number_of]].tolist(), strict=True):
        end, value = ends[number], int(columns["value"][row])
        if columns["type"][row] == OK and str(value) in end.failed:
            facts.failed[row] = end.failed[str(value)]
        if end.superseded_us is not None:
            facts.superseded_us[row] = end.superseded_us
        if value in end.late:
            facts.late.add(row)
    for row in np.flatnonzero((function == _STABLE) & (kind == Kind.REACHED) & (codes >= 0)).tolist():
        if (stable := _decoded(details[int(codes[row])], StableOffset)) is not None:
            facts.stable[row] = stable
    return facts


def _decoded(detail: str, kind: type[_Detail]) -> _Detail | None:
    """Read a detail; None for one that another tool wrote."""
    try:
        return msgspec.json.decode(detail, type=kind)
    except msgspec.DecodeError:
        return None
