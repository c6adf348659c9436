"""The rows of consumer groups: what members were assigned, processed and committed of each log partition.

A *segment* is one group in one log partition. Its rows are in the order of events, so every kernel replays segment by
segment. O(n log n) in these rows; a history without a group has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from checkers.columns.ids import Flags, Numbers, dense_ids, one_of, smallest_of, stable_order
from checkers.columns.log_rows import LogRows
from checkers.columns.transactions import aborted_rows, decoded
from workloads import Function, GroupMember
from workloads.history import FAIL, FUNCTION_CODE, GROUPED, INVOKE, NONE, OK, UNCOMMITTED, Kind

_COMMIT, _COMMITTED, _PROCESS, _REBALANCE, _OFFSETS, _TXN, _DELETE, _RESET, _SEEK = (
    FUNCTION_CODE[name]
    for name in (
        Function.COMMIT, Function.COMMITTED, Function.PROCESS, Function.REBALANCE, Function.OFFSETS, Function.TXN,
        Function.DELETE_GROUP, Function.RESET, Function.SEEK,
    )
)  # fmt: skip


@dataclass(frozen=True)
class GroupRows:
    """Rows of groups in a log. ``segment`` is int64 by row of the log, -1 for the others.

    Lists of rows are int64, by (segment, event index).
    """

    log: LogRows
    segment: Numbers
    segment_partition: Numbers

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self.segment_partition)

    @cached_property
    def retention_us(self) -> Numbers | None:
        """``int64[segment]``: for how long offsets are kept without members, -1 if not told; None if it never is."""
        log, of_group = self.log, np.array(self.log.group_retention_ms, dtype=np.int64)
        if log.group is None or not (of_group >= 0).any():
            return None
        rows, kept_us = np.flatnonzero(self.segment >= 0), np.full(self.segments, NONE, dtype=np.int64)
        kept_us[self.segment[rows]] = np.where(of_group >= 0, of_group * 1000, NONE)[log.group[rows]]
        return kept_us

    def _rows(self, kind: Kind, *functions: int) -> Numbers:
        log = self.log
        wanted = (self.segment >= 0) & (log.kind == kind) & one_of(log.function, *functions)
        return self._by_segment(np.flatnonzero(wanted))

    def _by_segment(self, rows: Numbers) -> Numbers:
        """Rows that ascend, by (segment, event index)."""
        return rows[stable_order(self.segment[rows])]

    def joined(self, *lists: Numbers) -> Numbers:
        """The rows of several lists as one."""
        return self._by_segment(np.sort(np.concatenate(lists)))

    @cached_property
    def commits(self) -> Numbers:
        """Rows of completed commits, whatever became of them; of an unanswered one its invocation.

        A transaction that commits offsets of the group is one, from its begin to its end.
        """
        return self._asked_for(_COMMIT, _TXN)

    @cached_property
    def deletions(self) -> Numbers:
        """Rows of deletions of the group, as :attr:`commits`; their offset is -1."""
        return self._asked_for(_DELETE)

    @cached_property
    def resets(self) -> Numbers:
        """Rows of what an operator set the group's offsets to, or may have, as :attr:`commits`."""
        return self._not_refused(_RESET)

    def _not_refused(self, function: int) -> Numbers:
        rows = self._asked_for(function)
        kept: Numbers = rows[self.log.type[rows] != FAIL]
        return kept

    @cached_property
    def seeks(self) -> Numbers:
        """Rows of positions that members set themselves, or may have set."""
        return self._not_refused(_SEEK)

    def _asked_for(self, *functions: int) -> Numbers:
        log, rows = self.log, self._rows(Kind.REACHED, *functions)
        begun = rows[log.type[rows] == INVOKE]
        done: Numbers = rows[log.type[rows] != INVOKE]
        if not len(begun):  # an invocation that its completion repeats has no row
            return done
        answered = np.isin(self._operation(begun, log.index), self._operation(done, log.invoke_index))
        return self.joined(done, begun[~answered])

    @cached_property
    def acknowledged(self) -> Numbers:
        """Rows of commits that the group took."""
        taken: Numbers = self.commits[self.log.type[self.commits] == OK]
        return taken

    @cached_property
    def in_transactions(self) -> Numbers:
        """Rows of offsets that transactions commit, whatever became of them."""
        return self._rows(Kind.REACHED, _TXN)

    def never_committed(self, rows: Numbers) -> Flags:
        """Mark those of these rows that belong to transactions that were aborted, or whose commit was not asked for."""
        facts = self.log.transactions
        if facts is None:
            return np.zeros(len(rows), dtype=bool)
        return facts.own[rows] & aborted_rows(self.log.type, facts, rows)

    @cached_property
    def handed_over(self) -> Numbers:
        """Rows of offsets that members handed over to transactions, whatever the group answered."""
        rows = self._rows(Kind.REACHED, _OFFSETS)
        answered: Numbers = rows[self.log.type[rows] != INVOKE]
        return answered

    @cached_property
    def taken(self) -> Numbers:
        """Rows of offsets that the group took of a member, as a commit, or for a transaction that is still open."""
        commits = self.acknowledged[self.log.function[self.acknowledged] == _COMMIT]
        handed = self.handed_over[self.log.type[self.handed_over] == OK]
        return self.joined(commits, handed)

    @cached_property
    def read_back(self) -> Numbers:
        """Rows of what a group said that it has committed, -1 as the offset of one that has nothing."""
        rows = self._rows(Kind.REACHED, _COMMITTED)
        answered: Numbers = rows[self.log.type[rows] == OK]
        return answered

    @cached_property
    def processed(self) -> Numbers:
        """Rows that say what a member has processed."""
        return self._rows(Kind.REACHED, _PROCESS)

    @cached_property
    def assigned(self) -> Numbers:
        """Rows in which a member has the log partition from then on."""
        return self._rows(Kind.LISTED, _REBALANCE)

    @cached_property
    def uncommitted(self) -> Flags:
        """``bool[segment]``: all polls of its members say that they read uncommitted records."""
        log, of_client = self.log, np.full(int(self.log.client.max(initial=0)) + 1, NONE, dtype=np.int64)
        rows = np.flatnonzero(self.segment >= 0)
        of_client[log.client[rows]] = self.segment[rows]
        reads = log.all_reads[of_client[log.client[log.all_reads]] >= 0]
        read, committed = np.zeros(self.segments, dtype=bool), np.zeros(self.segments, dtype=bool)
        read[of_client[log.client[reads]]] = True
        if log.isolation is None:
            return committed
        committed[of_client[log.client[reads[log.isolation[reads] != UNCOMMITTED]]]] = True
        return read & ~committed

    @cached_property
    def member(self) -> Numbers:
        """``int64[row]``: a dense number for its (log partition, client instance)."""
        return dense_ids(self.log.partition, self.instance, self.log.partition_count).of

    @cached_property
    def instance(self) -> Numbers:
        """``int64[row]``: its client instance; where another tool does not tell it, the process is one of its own."""
        told = self.log.instance.astype(np.int64)
        return np.where(told >= 0, told, NONE - 1 - self.log.process.astype(np.int64))

    @cached_property
    def member_began(self) -> Numbers:
        """By :attr:`member`, the event index at which its first event about the log partition began (int64)."""
        return smallest_of(self.member, self.begun(np.arange(len(self.log.index))))

    def begun(self, rows: Numbers) -> Numbers:
        """The event index at which the operation of each row began (int64)."""
        invoked = self.log.invoke_index[rows]
        return np.where(invoked >= 0, invoked, self.log.index[rows])

    def latest(self, of: Numbers, rows: Numbers, moment: Numbers, within: Numbers) -> Numbers:
        """The last of the rows ``of`` before each event index in ``moment``, that has the same number in ``within``.

        ``within`` is int64 by row of the log; it says for each of ``rows`` which number is meant. The answer is a place
        in ``of`` sorted by (number, index), as :meth:`ordered` has it, -1 for none.
        """
        span = self.span
        ordered = self.ordered(of, within)
        packed = within[ordered] * span + self.log.index[ordered]
        position = np.searchsorted(packed, within[rows] * span + np.minimum(moment, span - 1)) - 1
        matches = (
            (position >= 0) & (within[ordered[np.maximum(position, 0)]] == within[rows])
            if len(ordered)
            else position >= 0
        )
        return np.where(matches, position, NONE)

    def ordered(self, of: Numbers, within: Numbers) -> Numbers:
        """These rows by (number in ``within``, event index)."""
        return of[np.lexsort((self.log.index[of], within[of]))]

    @cached_property
    def processed_reads(self) -> tuple[Numbers, Numbers]:
        """Rows of records that a member read and then processed, and the segment of each."""
        log, process = self.log, self.log.client
        reads = log.all_reads[log.type[log.all_reads] == OK]
        if not len(self.processed):
            return reads[:0], reads[:0]
        by_process = self.ordered(self.processed, process)
        span = self.span
        packed = process[by_process] * span + log.index[by_process]
        position = np.searchsorted(packed, process[reads] * span + log.index[reads])
        inside = position < len(by_process)
        row = by_process[np.minimum(position, len(by_process) - 1)]
        inside &= process[row] == process[reads]
        inside &= (log.value[row] <= log.offset[reads]) & (log.offset[reads] < log.offset[row])
        return reads[inside], self.segment[row[inside]]

    def _operation(self, rows: Numbers, index: Numbers) -> Numbers:
        return (self.segment[rows] << 40) | index[rows]

    @cached_property
    def span(self) -> int:
        """More than any event index: ``number * span + index`` orders by number, then by index."""
        return int(self.log.index.max(initial=0)) + 2

    def packed(self, rows: Numbers, moment: Numbers | None = None) -> Numbers:
        """(segment, event index) of these rows as one number, or (segment, ``moment``) where that is given."""
        return self.segment[rows] * self.span + (self.log.index[rows] if moment is None else moment)


class GroupColumns(NamedTuple):
    """The groups of rows, and their static members by their own names (KIP-345).

    ``group`` and ``static`` are int64 by row, indexes into the names, -1 for none. A static member's name is that of
    its group and its own. ``generation`` is int64 by row, -1 where it is not known. ``retention_ms`` is by group the
    shortest time that is told, -1 for none.
    """

    group: Numbers
    group_names: Sequence[str]
    static: Numbers
    static_names: Sequence[tuple[str, str]]
    generation: Numbers
    retention_ms: Sequence[int]


def groups_of(columns: Mapping[str, npt.NDArray[Any]], codes: Numbers, details: Sequence[str]) -> GroupColumns:
    """Look up the groups of rows whose details have these ``codes``, places in ``details``, or -1."""
    committing = (columns["function"] == _TXN) & (columns["kind"] == Kind.REACHED)
    rows = np.flatnonzero((one_of(columns["function"], *GROUPED) | committing) & (codes >= 0))
    names: dict[str, int] = {}
    static_names: dict[tuple[str, str], int] = {}
    retention_ms: dict[str, int] = {}
    group_of, static_of, generation_of = (np.full(len(details), NONE, dtype=np.int64) for _ in range(3))
    for code in np.flatnonzero(np.bincount(codes[rows], minlength=len(details))).tolist():
        if (member := decoded(details[code], GroupMember)) is None:  # or of a transaction without a group
            continue
        group_of[code] = names.setdefault(member.group, len(names))
        generation_of[code] = NONE if member.generation is None else member.generation
        if member.retention_ms is not None:
            retention_ms[member.group] = min(member.retention_ms, retention_ms.get(member.group, member.retention_ms))
        if member.instance_id is not None:
            static_of[code] = static_names.setdefault((member.group, member.instance_id), len(static_names))
    group, static, generation = (np.full(len(codes), NONE, dtype=np.int64) for _ in range(3))
    for of_row, of_code in ((group, group_of), (static, static_of), (generation, generation_of)):
        of_row[rows] = of_code[codes[rows]]
    kept_ms = [retention_ms.get(name, NONE) for name in names]
    return GroupColumns(group, [*names], static, [*static_names], generation, kept_ms)


def group_rows(log: LogRows) -> GroupRows | None:
    """The rows of groups, None where the log has none."""
    if log.group is None:
        return None
    rows = np.flatnonzero(log.group >= 0)
    ids = dense_ids(log.partition[rows], log.group[rows], log.partition_count)
    segment = np.full(len(log.group), NONE, dtype=np.int64)
    segment[rows] = ids.of
    return GroupRows(log, segment, ids.partition)


def running_max(numbers: Numbers, segment: Numbers) -> Numbers:
    """The largest number so far within each segment; ``segment`` is ascending."""
    if not len(numbers):
        return numbers
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    return np.maximum.accumulate(numbers - low + segment * span) - segment * span + low
