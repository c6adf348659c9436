"""Picks the rows of a history that the chart of a finding needs: of a million, some thousand.

A chart draws the last few things before a contradiction, and what the finding names. Here are twice as many of the
last ones, so that the chart itself decides which of them it draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from checkers import (
    DivergentRead,
    DivergentReplicas,
    DoubledEffect,
    EventPlace,
    Finding,
    HangingTransaction,
    MissingEffect,
    SkippedRecord,
    TransactionRead,
    ZombieWrite,
    decoded,
)
from harness.report.copies_chart import OfCopies, around
from harness.report.group_chart import COMMITS_MAX, COMMITTING, OfGroups
from harness.report.transaction_chart import TRANSACTIONS_MAX, OfTransactions
from workloads import Function, GroupMember, TransactionEnd
from workloads.history import FUNCTION_CODE, INVOKE, NONE, OK, Columns, Flags, Kind, Names, Needed

Numbers = npt.NDArray[np.int64]
_TXN: Final = FUNCTION_CODE[Function.TXN]
_DRAIN: Final = FUNCTION_CODE[Function.DRAIN]
_COMMITTING: Final = [FUNCTION_CODE[function] for function in COMMITTING]


def needed_of(finding: OfGroups | OfTransactions | OfCopies) -> Needed:
    """Mark the rows that the chart of ``finding`` needs."""

    def needed(rows: Columns, names: Names) -> Flags:
        here: Flags = rows["key"] == _code(names["key"], str(finding.key))
        events = [*_named(finding)]
        named = np.isin(rows["index"], events) | np.isin(rows["invoke_index"], events)
        if isinstance(finding, OfGroups):
            return named | _of_group(finding, rows, names, here, named)
        if isinstance(finding, OfTransactions):
            return named | _of_transactions(finding, rows, names, here, named)
        return _of_copies(finding, rows, here)

    return needed


def _code(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else NONE - 1


def _named(finding: Finding) -> Iterator[int]:
    """The events that it names."""
    for value in msgspec.structs.asdict(finding).values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, EventPlace):
                yield part.op_pos


def _of_group(finding: OfGroups, rows: Columns, names: Names, here: Flags, named: Flags) -> Flags:
    """The last commits of the group before the contradiction, and what the finding is about."""
    done = here & (rows["type"] == OK)
    of_group = done & np.isin(rows["function"], _COMMITTING)
    details = [code for code in np.unique(rows["detail"][of_group]).tolist() if code != NONE]
    members = ((code, decoded(names["detail"][code], GroupMember)) for code in details)
    of_group &= np.isin(rows["detail"], [code for code, member in members if member and member.group == finding.group])
    commits = of_group & (rows["kind"] == Kind.REACHED)
    reads = np.zeros(len(here), dtype=bool)
    sides = named
    if isinstance(finding, SkippedRecord | MissingEffect):
        reads = done & (rows["kind"] == Kind.READ) & (rows["offset"] == finding.offset)
        sides = named | _first(rows, reads & ~of_group) | _first(rows, commits & (rows["offset"] == finding.committed))
    # Where a finding names the begin of an operation, that is when it was.
    at_end = ~named | np.isin(rows["index"], [*_named(finding)])
    until_us = np.where(at_end, rows["time_us"], rows["invoke_us"])[sides].max(initial=0)
    before = commits & (rows["time_us"] <= until_us)
    return sides | reads | _last(rows["time_us"], before, 2 * COMMITS_MAX)


def _of_transactions(finding: OfTransactions, rows: Columns, names: Names, here: Flags, named: Flags) -> Flags:
    """The last transactions before the contradiction, those that the finding is about, and what tells their offsets."""
    is_transaction = rows["function"] == _TXN
    sends = here & is_transaction & (rows["type"] != INVOKE) & (rows["kind"] == Kind.SEND)
    reads = here & ~is_transaction & (rows["type"] == OK) & (rows["kind"] == Kind.READ)
    values = _values(finding, rows, sends | reads)
    placed = sends & ((rows["offset"] != NONE) | np.isin(rows["value"], rows["value"][reads]))
    about = placed & np.isin(rows["value"], values)
    begun_us = np.where(rows["invoke_us"] == NONE, rows["time_us"], rows["invoke_us"])
    before = placed & (begun_us <= _until_us(finding, rows, names, about))
    ends = np.unique(rows["index"][before])[-2 * TRANSACTIONS_MAX :]
    # All that a transaction sent: its bar is as high as that.
    chosen = sends & (named | np.isin(rows["index"], np.concatenate([ends, rows["index"][about]])))
    begins = is_transaction & np.isin(rows["index"], rows["invoke_index"][chosen])
    told = reads & np.isin(rows["value"], [*values, *rows["value"][chosen].tolist()])
    marked: Flags = chosen | begins | told
    return marked


def _until_us(finding: OfTransactions, rows: Columns, names: Names, about: Flags) -> int:
    """The time of the contradiction, after which nothing that begins is drawn."""
    match finding:
        case TransactionRead(reader=operation) | HangingTransaction(op=operation):
            return _latest_us(rows, rows["index"] == operation.op_pos)
        case ZombieWrite(writer=writer):
            codes = np.unique(rows["detail"][rows["index"] == writer.op_pos]).tolist()
            ends = (decoded(names["detail"][code], TransactionEnd) for code in codes if code != NONE)
            return max((end.ending_us or 0 for end in ends if end), default=0)
        case DoubledEffect():
            return _latest_us(rows, about)


def _values(finding: OfTransactions, rows: Columns, placed: Flags) -> list[Any]:
    """The values of records that the finding is about; ``placed`` rows tell the offsets of records."""
    match finding:
        case TransactionRead(value=value) | ZombieWrite(value=value):
            return [value] if isinstance(value, int) else []
        case DoubledEffect(values=values):
            return [value for value in values if isinstance(value, int)]
        case HangingTransaction(last_stable_offset=offset):
            return [*rows["value"][placed & (rows["offset"] == offset)].tolist()]


def _of_copies(finding: OfCopies, rows: Columns, here: Flags) -> Flags:
    """The records of its key, what was read where they were, and who read to the end; disks tell the rest."""
    if isinstance(finding, DivergentReplicas):
        return np.zeros(len(here), dtype=bool)
    marked: Flags = here & (rows["function"] == _DRAIN) & (rows["kind"] == Kind.LISTED)
    reads = here & (rows["type"] == OK) & (rows["kind"] == Kind.READ)
    if isinstance(finding, DivergentRead):
        readers = np.isin(rows["process"], [*finding.readers, *finding.others])
        marked |= reads & readers & np.isin(rows["offset"], around(finding))
    else:
        sends = here & (rows["kind"] == Kind.SEND) & (rows["record_key"] == finding.record_key)
        offsets = rows["offset"][reads & np.isin(rows["value"], rows["value"][sends])]
        marked |= sends | (reads & np.isin(rows["offset"], offsets))
    return marked


def _latest_us(rows: Columns, about: Flags) -> int:
    return int(rows["time_us"][about].max(initial=0))


def _first(rows: Columns, among: Flags) -> Flags:
    """The row with the least index."""
    return _last(-rows["index"], among, 1)


def _last(order: Numbers, among: Flags, most: int) -> Flags:
    """The ``most`` rows that are last in this ``order``."""
    some = np.flatnonzero(among)
    marked = np.zeros(len(among), dtype=bool)
    marked[some[np.argsort(order[some], kind="stable")][-most:]] = True
    return marked
