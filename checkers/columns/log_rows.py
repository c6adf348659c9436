"""The rows of whole log partitions, and what each of them says by itself.

``partition`` is the index of a log partition of one history; :class:`LogRows` holds any number of them, rows ordered by
(partition, event index, position), so that one pass of NumPy judges thousands of small partitions as fast as one large
one. A value is known by its dense id within (partition, value).

Complexity of everything here: O(n) in the rows where offsets and values are dense, O(n log n) otherwise; memory is
proportional to the rows, never to the largest offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from checkers.columns.ids import Flags, Ids, Numbers, dense_ids, stable_order
from checkers.columns.isolation_levels import OTHER_LISTED, OTHER_READ
from checkers.columns.phases import Mark
from checkers.columns.transactions import TransactionRows, aborted_rows
from workloads import ApplicationFacts, CleanerTimes, Function, IsolationLevel, Retirement
from workloads.history import FAIL, FUNCTION_CODE, INFO, INVOKE, ISOLATIONS, NONE, OK, UNCOMMITTED, Kind

_DRAIN, _TXN = FUNCTION_CODE[Function.DRAIN], FUNCTION_CODE[Function.TXN]


class EventPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as findings name it: its place in the history and the index that the history's maker gave it."""

    op_pos: int
    index: int | None = None

    @property
    def number(self) -> int:
        """Its number as the history's maker wrote it, if there is one."""
        return self.op_pos if self.index is None else self.index


class FinalReads(NamedTuple):
    """The final reads of one isolation level, as rows (int64, ascending).

    Attributes:
        statements: rows in which a final reader says that it read the log partition to the offset in the row.
        reads: sound records that its ok polls read.
        end: ``int64[log partition]``: the largest offset in a statement, -1 without one.
    """

    statements: Numbers
    reads: Numbers
    end: Numbers


@dataclass(kw_only=True)
class LogRows:
    """Rows of log partitions, column by column, as in :mod:`workloads.history.schema`, with indexes instead of keys.

    The columns ``partition`` to ``refusal`` are by row, in the order that the module's text gives.

    Attributes:
        partition: of row: the index of its log partition (int64, ascending).
        index, position: event index and place in the event. time_us: of the event, on the run's clock.
        invoke_index, invoke_us: of the invocation of a completion, -1 where that is not known.
        refusal: the refusal that the event's error names (int8, :class:`workloads.Refusal`).
        partition_history, partition_key: of log partition: history (int64), and the log partition's name.
        complete: of history: whether it was recorded to its end (bool).
        proven: int64, (history, event index) packed by :func:`pack_operation` of uncertain operations, and of
            transactions, that a read elsewhere proved to have happened; in no order.
        group: of row: the index in ``group_names`` of the consumer group that it is about (int64), -1 for none; None
            where no row is about a group.
        group_retention_ms: of group: for how long its offsets are kept without members, -1 where it is not told.
        static: of row: the index in ``static_names`` of the static member whose row it is (int64), -1 for none; None
            where no row is a static member's.
        generation: of row: the group's generation, or its member's epoch (int64), -1 where it is not known; None
            where no row tells it.
        retirements: of history: the producers that were given up, as :attr:`RunMarks.retirements` has them.
        applications: of history: the application under test, as :attr:`RunMarks.application` has it.
        transactions: what is known of transactions; None where no history has any of our own.
        record_key, tombstone: of row, as in the schema; None where no history has keys (:class:`RecordKeys`).
        isolation: of row, the code of its reader's isolation level (int8), -1 where it is not known; None where no
            history has transactions. Rows of the other level (:mod:`checkers.columns.isolation_levels`) are only in the
            lists below that say so.
        cleaner_times: by row of a final reader's statement, how long the log keeps what may go.
    """

    partition: Numbers
    index: Numbers
    time_us: Numbers
    process: Numbers
    instance: Numbers
    type: Numbers
    function: Numbers
    position: Numbers
    kind: Numbers
    offset: Numbers
    value: Numbers
    defect: Numbers
    node: Numbers
    invoke_index: Numbers
    invoke_us: Numbers
    waited_us: Numbers
    refusal: Numbers
    partition_history: Numbers
    partition_key: list[str]
    complete: Flags
    proven: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    retirements: list[list[tuple[Mark, Retirement]]] = field(default_factory=list)
    applications: list[ApplicationFacts | None] = field(default_factory=list)
    group: Numbers | None = None
    group_names: list[str] = field(default_factory=list)
    group_retention_ms: list[int] = field(default_factory=list)
    static: Numbers | None = None
    static_names: list[tuple[str, str]] = field(default_factory=list)
    generation: Numbers | None = None
    transactions: TransactionRows | None = None
    record_key: Numbers | None = None
    tombstone: Numbers | None = None
    isolation: Numbers | None = None
    cleaner_times: dict[int, CleanerTimes] = field(default_factory=dict)

    @property
    def partition_count(self) -> int:
        """The number of log partitions."""
        return len(self.partition_key)

    @cached_property
    def reads(self) -> Numbers:
        """Rows of sound records read, by any completion (int64: rows, ascending, as all lists of rows here)."""
        return np.flatnonzero((self.kind == Kind.READ) & (self.type != INVOKE) & (self.defect == 0))

    @cached_property
    def all_reads(self) -> Numbers:
        """The same of readers of every isolation level."""
        if self.isolation is None:
            return self.reads
        any_level = (self.kind == Kind.READ) | (self.kind == OTHER_READ)
        return np.flatnonzero(any_level & (self.type != INVOKE) & (self.defect == 0))

    @cached_property
    def attempts(self) -> Numbers:
        """Rows of sends, whatever is known of them."""
        return np.flatnonzero(self.kind == Kind.SEND)

    @cached_property
    def sends(self) -> Numbers:
        """Rows of completed sends."""
        completed: Numbers = self.attempts[self.type[self.attempts] != INVOKE]
        return completed

    @cached_property
    def _value_ids(self) -> tuple[Ids, Numbers]:
        rows = np.concatenate([self.attempts, self.all_reads])
        ids = dense_ids(self.partition[rows], self.value[rows], self.partition_count)
        of_row = np.full(len(self.partition), NONE, dtype=np.int64)
        of_row[rows] = ids.of
        return ids, of_row

    @property
    def values(self) -> Ids:
        """The different (partition, value) pairs that were sent or read."""
        return self._value_ids[0]

    @property
    def value_id(self) -> Numbers:
        """``int64[row]``: the value id, -1 for rows without a sound value."""
        return self._value_ids[1]

    def marked(self, rows: Numbers) -> Flags:
        """``bool[value]``: one of these rows has it."""
        flags = np.zeros(len(self.values), dtype=bool)
        flags[self.value_id[rows]] = True
        return flags

    @cached_property
    def read_ok(self) -> Flags:
        """``bool[value]``: an ok poll read it."""
        return self.marked(self.reads[self.type[self.reads] == OK])

    @cached_property
    def seen(self) -> Flags:
        """``bool[value]``: an ok poll of a reader of any isolation level read it."""
        return self.marked(self.all_reads[self.type[self.all_reads] == OK])

    @cached_property
    def other_reads(self) -> Numbers:
        """Rows of sound records that readers of the other isolation level read, by any completion."""
        rows: Numbers = self.all_reads[self.kind[self.all_reads] == OTHER_READ]
        return rows

    @cached_property
    def uncommitted_first(self) -> Flags:
        """``bool[log partition]``: the level that kernels look at is that of readers of uncommitted records."""
        first = np.zeros(self.partition_count, dtype=bool)
        if self.isolation is not None:
            rows = self.reads[self.isolation[self.reads] == UNCOMMITTED]
            first[self.partition[rows]] = True
            others = self.other_reads[self.isolation[self.other_reads] != UNCOMMITTED]
            first[self.partition[others]] = True
        return first

    @property
    def committed_reads(self) -> Numbers:
        """Rows of sound records that ok polls read, but those of known readers of uncommitted records."""
        rows: Numbers = self.all_reads[self.type[self.all_reads] == OK]
        return rows if self.isolation is None else rows[self.isolation[rows] != UNCOMMITTED]

    @cached_property
    def seen_committed(self) -> Flags:
        """``bool[value]``: one of :attr:`committed_reads` has it, so that its transaction, if any, was committed."""
        return self.marked(self.committed_reads)

    @cached_property
    def sent_ok(self) -> Flags:
        """``bool[value]``: a send of it was acknowledged."""
        return self.marked(self.sends[self.type[self.sends] == OK])

    @cached_property
    def aborted(self) -> Flags:
        """``bool[value]``: it was sent in a transaction that was aborted, or whose commit was never asked for.

        If another send of it was acknowledged, it was not.
        """
        rows = self.sends[self.function[self.sends] == _TXN]
        never = self.type[rows] == FAIL
        if self.transactions is not None:
            never |= aborted_rows(self.type, self.transactions, rows) & self.transactions.own[rows]
        return self.marked(rows[never]) & ~self.sent_ok

    @cached_property
    def last_offset(self) -> Numbers:
        """``int64[value]``: the largest offset that a client was answered, unless that failed, or read; -1 for none."""
        last = np.full(len(self.values), NONE, dtype=np.int64)
        for rows in (self.sends[self.type[self.sends] != FAIL], self.all_reads):
            np.maximum.at(last, self.value_id[rows], self.offset[rows])
        return last

    @cached_property
    def attempted(self) -> Flags:
        """``bool[value]``: some client tried to send it."""
        return self.marked(self.attempts)

    @cached_property
    def writer(self) -> Numbers:
        """``int64[value]``: the row of the last completion that tried to send it, -1 for none."""
        writer = np.full(len(self.values), NONE, dtype=np.int64)
        writer[self.value_id[self.sends]] = self.sends
        return writer

    @cached_property
    def committed(self) -> Flags:
        """``bool[row]``: the operation must have happened; it has no meaning for rows that are no sends.

        It must if it was acknowledged, or if it is uncertain and a value it sent, here or elsewhere, was read by an ok
        poll: an operation happens as a whole. What readers of uncommitted records read proves no transaction.
        """
        committed: Flags = self.type == OK
        uncertain = self.sends[self.type[self.sends] == INFO]
        if len(uncertain):
            proved = self.operation(self._proved)
            committed[uncertain] = np.isin(self.operation(uncertain), np.concatenate([proved, self.proven]))
        return committed

    @cached_property
    def _proved(self) -> Numbers:
        """Rows of uncertain sends whose own value was read by an ok poll."""
        uncertain = self.sends[self.type[self.sends] == INFO]
        value = self.value_id[uncertain]
        in_transaction = self.function[uncertain] == _TXN
        rows: Numbers = uncertain[np.where(in_transaction, self.seen_committed[value], self.seen[value])]
        return rows

    @property
    def seen_transactions(self) -> Numbers:
        """Rows of writes of transactions of our own that an ok poll read, so that they were committed."""
        if self.transactions is None:
            return np.zeros(0, dtype=np.int64)
        return self._read_of(self.sends[self.transactions.own[self.sends]])

    def _read_of(self, sends: Numbers) -> Numbers:
        read: Numbers = sends[self.seen_committed[self.value_id[sends]]]
        return read

    @property
    def proofs(self) -> Numbers:
        """Event indexes (int64, ascending) of the uncertain operations and the transactions proved here."""
        written = self.sends[self.function[self.sends] == _TXN]
        return np.unique(self.index[np.concatenate([self._proved, self._read_of(written)])])

    def operation(self, rows: Numbers) -> Numbers:
        """The operations of these rows as single numbers (int64)."""
        return pack_operation(self.partition_history[self.partition[rows]], self.index[rows])

    @cached_property
    def client(self) -> Numbers:
        """``int64[row]``: a dense number for its (partition, process)."""
        return dense_ids(self.partition, self.process.astype(np.int64), self.partition_count).of

    @cached_property
    def by_client(self) -> Numbers:
        """All rows (int64) in order of (partition, process, event index, position)."""
        return stable_order(self.client)

    @property
    def drains(self) -> Numbers:
        """The statements of final readers."""
        return self.final.statements

    @property
    def final_reads(self) -> Numbers:
        """The rows that final readers read."""
        return self.final.reads

    @property
    def drained_end(self) -> Numbers:
        """The ends to which final readers read."""
        return self.final.end

    @cached_property
    def final(self) -> FinalReads:
        """The final reads of the level that the first reader has."""
        return self._final(Kind.LISTED, self.reads)

    @cached_property
    def other_final(self) -> FinalReads:
        """The final reads of the other isolation level."""
        return self._final(OTHER_LISTED, self.all_reads)

    def _final(self, kind: int, reads: Numbers) -> FinalReads:
        says_end = (self.kind == kind) & (self.function == _DRAIN) & (self.type == OK) & (self.offset >= 0)
        statements = np.flatnonzero(says_end)
        end = np.full(self.partition_count, NONE, dtype=np.int64)
        if not len(statements):
            return FinalReads(statements, statements, end)
        np.maximum.at(end, self.partition[statements], self.offset[statements])
        final = np.zeros(int(self.client.max()) + 1, dtype=bool)
        final[self.client[statements]] = True
        ok = reads[self.type[reads] == OK]
        return FinalReads(statements, ok[final[self.client[ok]]], end)

    @property
    def committed_end(self) -> Numbers:
        """``int64[log partition]``: the end to which final readers of committed records read it, -1 where none did.

        A reader whose level is not known counts as one of them.
        """
        rows = np.concatenate([self.final.statements, self.other_final.statements])
        if self.isolation is not None:
            rows = rows[self.isolation[rows] != UNCOMMITTED]
        end = np.full(self.partition_count, NONE, dtype=np.int64)
        np.maximum.at(end, self.partition[rows], self.offset[rows])
        return end

    def first_rows(self, rows: Numbers) -> Numbers:
        """``int64[value]``: the first of these ascending rows that has it, -1 for none."""
        first = np.full(len(self.values), NONE, dtype=np.int64)
        first[self.value_id[rows[::-1]]] = rows[::-1]
        return first

    def key(self, row: int) -> str:
        """The log partition of a row."""
        return self.partition_key[int(self.partition[row])]

    def isolation_of(self, row: int) -> IsolationLevel | None:
        """The isolation level of a row's reader, where it is known."""
        code = NONE if self.isolation is None else int(self.isolation[row])
        return None if code == NONE else ISOLATIONS[code]

    def group_of(self, row: int) -> str:
        """The consumer group that a row is about."""
        return "" if self.group is None else self.group_names[int(self.group[row])]

    def op(self, row: int) -> EventPlace:
        """Name the event of a row as findings do."""
        return EventPlace(int(self.index[row]))


def pack_operation(history: Numbers, index: Numbers) -> Numbers:
    """(history, event index) as one number; a history has less than 2^40 events."""
    return (history << 40) | index
