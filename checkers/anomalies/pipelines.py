"""Anomalies of pipelines: members of a group that write a record for each one that they read, in transactions.

A transaction names the records that its sends were made of (:class:`workloads.TransactionEnd`). Each kernel's docstring
is its specification. All are O(n log n) in the rows of groups and transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.group_places import group_place
from checkers.anomalies.group_skip import passed_records
from checkers.anomalies.input_effects import DoubledEffect, MissingEffect, doubled_output, missing_output
from checkers.anomalies.view import CommitsView
from checkers.columns.group_commits import aborted_answers
from checkers.columns.group_rows import GroupRows, running_max
from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.columns.transactions import COMMIT, TransactionRows
from workloads.history import INFO, NONE, OK


class AbortedCommit(Finding, kw_only=True):
    """The answer of a group that is where only an aborted transaction would have brought it."""

    group: str
    offset: int
    op: EventPlace
    transaction: EventPlace

    @override
    def words(self) -> str:
        return (
            f"Group {self.group}, asked about {self.key} (operation {self.op.number} of the history), named "
            f"offset {self.offset}. Of all that its members handed over, only a transaction that was aborted had it "
            f"(operation {self.transaction.number})."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.transaction,
            against=self.op,
            words=("aborted", "the group was here"),
        )


class UnstableOffset(Finding, kw_only=True):
    """The answer of a group while a transaction with another offset of it was open."""

    group: str
    offset: int
    pending: int
    op: EventPlace
    transaction: EventPlace

    @override
    def words(self) -> str:
        return (
            f"Group {self.group}, asked about {self.key} (operation {self.op.number} of the history), named "
            f"offset {self.offset}. Then a transaction with offset {self.pending} was open, which was committed "
            f"later (operation {self.transaction.number}): a member that begins here does records again."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.transaction,
            against=self.op,
            words=("committed later", "the group was here"),
        )


def missing_effect(log: Log, groups: GroupRows, facts: TransactionRows) -> Found:
    """``missing-effect``: a group has committed past a record, and no transaction with its effect was committed.

    Example: a member reads ``a@0 b@1``, writes what it makes of them, hands over offset 2, and its transaction is
    aborted; the next member begins at 2, or the group, asked, says 2. The effect of ``a`` and ``b`` is lost.

    A transaction was committed if its commit was answered, or if a value that it sent was read. What is gone of a
    transaction that was committed is ``lost-write``.

    Of an application under test: an input is in the log, its group has committed past it, or, where it has committed
    nothing, a later input of the log partition has an output, and there is no output of it, or not all.

    False alarms avoided: those of ``group-skip``; a transaction without a certain end, unless final readers of
    committed records read to the end whatever it wrote to, and saw nothing of it; log partitions where no transaction
    of the group tells the sources of its sends; an input that the log has lost; an output that was not read to its end.

    Not found: what is missing of a transaction without a certain end in a history that is judged in parts.

    Findings, one a record: key, group, value, offset, committed, reader; of an application outputs and due.
    """
    passed = passed_records(log, groups)
    passed = passed.where(np.isin(passed.segment, groups.segment[facts.done]))
    done = _may_be_committed(log, facts, facts.done)
    span = int(log.offset.max(initial=0)) + 2
    have = groups.segment[facts.done[done]] * span + facts.done_offset[done]
    missing = passed.where(~np.isin(passed.segment * span + passed.offset, have))
    rows = log.first_rows(log.all_reads[log.type[log.all_reads] == OK])[missing.value]

    def describe(number: int) -> MissingEffect:
        row, commit = int(rows[number]), int(missing.commit[number])
        return MissingEffect(
            key=log.key(row),
            group=log.group_of(commit),
            value=int(log.value[row]),
            offset=int(missing.offset[number]),
            committed=int(log.offset[commit]),
            reader=log.op(row),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def doubled_effect(log: Log, _: GroupRows, facts: TransactionRows) -> Found:
    """``doubled-effect``: a group made two records of the same one, both were read, and neither's transaction aborted.

    Example: a member writes ``x`` for ``a@0``, and its transaction is committed; another member, which began at 0, does
    the same with ``y``. A reader of committed records sees ``x`` and ``y``.

    A transaction was not aborted if its commit was answered, or if a reader of committed records read it.

    Of an application under test: there are more outputs of an input than its shape has, read at the level of the run.

    False alarms avoided: records of aborted transactions, which are ``aborted-read``; one record that is in the log
    twice, which is ``duplicate``; two records with the same value at two offsets of the input; two groups, which have
    one effect each. What a group does again because an operator set it back, or because it may have forgotten its
    offset, has two effects, too, and is told.

    Findings, one for each record that has more than one effect: key, source, offset, values, writers; of an application
    places.
    """
    rows = log.sends[facts.source[log.sends] >= 0]
    value, answered = log.value_id[rows], log.type[rows] == OK
    rows = rows[(answered & log.seen[value]) | ((log.type[rows] == INFO) & log.seen_committed[value])]
    rows = rows[np.unique(log.value_id[rows], return_index=True)[1]]
    rows = rows[np.lexsort((log.index[rows], facts.source[rows], log.partition[rows]))]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (np.diff(log.partition[rows]) != 0) | (np.diff(facts.source[rows]) != 0)
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(rows))
    several = ends - starts > 1
    starts, ends = starts[several], ends[several]
    last = rows[ends - 1]

    def describe(number: int) -> DoubledEffect:
        mine = rows[starts[number] : ends[number]].tolist()
        source, offset = facts.told(mine[0])
        return DoubledEffect(
            key=log.key(mine[0]),
            source=source,
            offset=offset,
            values=[int(log.value[row]) for row in mine],
            writers=[log.op(row) for row in mine],
        )

    return Found(partition=log.partition[last], describe=describe, row=last)


def aborted_commit(log: Log, groups: GroupRows, _: TransactionRows) -> Found:
    """``aborted-commit``: what a group has committed, read back, is the offset of an aborted transaction.

    Example: a transaction hands over offset 7 and is aborted; the group, asked, says 7, and no other commit names
    it. "If the transaction is aborted, the consumer's stored position will revert to its old value" (Kafka's design).

    A transaction was aborted if its abort was answered, or if its producer was closed before it asked for the commit.

    False alarms avoided: an offset that an operator, or any other commit of the group, begun before the answer, may
    have brought.

    Findings, one an answer: key, group, offset, op, transaction.
    """
    told, abort = aborted_answers(groups)

    def describe(number: int) -> AbortedCommit:
        return AbortedCommit(**group_place(log, int(told[number])), transaction=log.op(int(abort[number])))

    return Found(partition=log.partition[told], describe=describe, row=told)


def unstable_offset(log: Log, groups: GroupRows, facts: TransactionRows) -> Found:
    """``unstable-offset``: a group named an offset while a transaction that commits another one was open.

    Example: the group has taken offset 7 for a transaction that is open; asked now, it says 4; the transaction is
    committed later. Who begins at 4 does records again whose effect is on its way. Readers of committed records ask for
    stable offsets, and are told to wait (KIP-447).

    The transaction was open all the time from the question to the answer: the group had taken its offsets before, and
    its producer asked for the commit, which was answered, after that.

    Findings, one an answer: key, group, offset, pending (the transaction's), op, transaction.
    """
    rows, told = groups.in_transactions, groups.read_back
    rows = rows[(log.type[rows] == OK) & (facts.handed_us[rows] >= 0)]
    rows = rows[np.lexsort((facts.handed_us[rows], groups.segment[rows]))]
    span = int(max(log.time_us.max(initial=0), facts.handed_us.max(initial=0))) + 2
    begun = groups.segment[rows] * span + facts.handed_us[rows]
    longest = running_max(facts.ending_us[rows], groups.segment[rows])
    last = np.searchsorted(begun, groups.segment[told] * span + log.invoke_us[told]) - 1
    sound = (last >= 0) & (log.invoke_us[told] >= 0)
    sound[sound] &= groups.segment[rows[last[sound]]] == groups.segment[told[sound]]
    sound[sound] &= longest[last[sound]] > log.time_us[told[sound]]
    told, last = told[sound], last[sound]
    open_now = [
        rows[
            (groups.segment[rows] == groups.segment[row])
            & (facts.handed_us[rows] < log.invoke_us[row])
            & (facts.ending_us[rows] > log.time_us[row])
            & (log.offset[rows] != log.offset[row])
        ]
        for row in told.tolist()
    ]
    told = told[[bool(len(transactions)) for transactions in open_now]]
    pending = [int(transactions[0]) for transactions in open_now if len(transactions)]

    def describe(number: int) -> UnstableOffset:
        row, of = int(told[number]), pending[number]
        return UnstableOffset(**group_place(log, row), pending=int(log.offset[of]), transaction=log.op(of))

    return Found(partition=log.partition[told], describe=describe, row=told)


def _may_be_committed(log: Log, facts: TransactionRows, rows: Numbers) -> Flags:
    """Mark those of these rows of transactions that were committed, or about which nothing is known (bool)."""
    operation = log.operation(rows)
    seen = np.isin(operation, np.concatenate([log.operation(log.seen_transactions), log.proven]))
    sends = log.sends[facts.own[log.sends]]
    unread = sends[log.committed_end[log.partition[sends]] == NONE]
    undecided = np.isin(operation, log.operation(unread)) | ~np.isin(operation, log.operation(sends))
    uncertain = (log.type[rows] == INFO) & (facts.asked[rows] == COMMIT)
    committed: Flags = (log.type[rows] == OK) | (uncertain & (seen | undecided))
    return committed


def _where_there_are(kernel: Callable[[Log, GroupRows, TransactionRows], Found]) -> Callable[[Log], Found]:
    """The kernel over a log that may have no pipelines."""

    def find(log: Log) -> Found:
        groups, facts = log.groups, log.transactions
        return Found.nothing() if groups is None or facts is None else kernel(log, groups, facts)

    return find


def _and_of_applications(
    kernel: Callable[[Log, GroupRows, TransactionRows], Found], of_applications: Callable[[Log], Found]
) -> Callable[[Log], Found]:
    """The kernel over a log that may have no pipelines, and what the other finds of applications under test."""

    def find(log: Log) -> Found:
        own, others = _where_there_are(kernel)(log), of_applications(log)
        return own.followed_by(others) if len(others.row) else own

    return find


#: In the order in which a report lists them.
PIPELINES: Final = (
    Anomaly.documented(
        "missing-effect",
        missing_effect.__doc__,
        MissingEffect,
        _and_of_applications(missing_effect, missing_output),
        about=About.READERS,
        title="A pipeline committed past a record without its effect",
        rule="Offsets that are committed with a transaction count only if it is committed (KIP-98).",
    ),
    Anomaly.documented(
        "doubled-effect",
        doubled_effect.__doc__,
        DoubledEffect,
        _and_of_applications(doubled_effect, doubled_output),
        about=About.READERS,
        title="A pipeline did a record twice",
        rule=(
            "A member that was given up can add no offsets to its transaction (KIP-447), so one transaction "
            "for each record is committed."
        ),
    ),
    *Anomaly.each_documented(
        _where_there_are,
        (
            (
                "aborted-commit",
                aborted_commit,
                AbortedCommit,
                About.LOG,
                "A group has the offset of an aborted transaction",
                "Offsets of an aborted transaction have no effect (KIP-98).",
            ),
            (
                "unstable-offset",
                unstable_offset,
                UnstableOffset,
                About.LOG,
                "A group named an offset that an open transaction replaced",
                "With isolation.level=read_committed members wait for the offsets of open transactions (KIP-447).",
            ),
        ),
    ),
)
