"""Anomalies of transactions, of a workload that writes in them (:class:`workloads.TransactionEnd`).

Each kernel's docstring is its specification. All are O(n).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.lost_write import lost_values, uncertain_and_gone
from checkers.anomalies.view import TransactionMoment, TransactionsView, WriteView
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.columns.transactions import COMMIT, TransactionRows
from checkers.words import producer_name, span, written
from workloads import NEVER_SENT, Function, IsolationLevel, ProducerEpoch
from workloads.history import FAIL, FUNCTION_CODE, INFO, NONE, OK

#: The mark of what is about a transaction that never ended in a log partition.
NO_MARKER: Final = "no marker"
_TXN: Final = FUNCTION_CODE[Function.TXN]


class Unended(msgspec.Struct, frozen=True):
    """A record on a node's disk, and the epoch of the next marker of its producer, that of a later transaction."""

    node: int
    offset: int
    producer_epoch: int
    next_epoch: int
    next_commits: bool


class _OfTransaction(Finding, kw_only=True):
    """A finding about a value of a transaction; ``unended`` where replicas' logs show that it never ended there."""

    value: Any
    writer: EventPlace
    unended: Unended | None = None

    @property
    @override
    def mark(self) -> str:
        return NO_MARKER if self.unended else ""

    @property
    def of_end(self) -> str:
        """The words about a transaction that never ended."""
        if (record := self.unended) is None:
            return ""
        ends = "commits" if record.next_commits else "aborts"
        return (
            f" On the disk of broker {record.node} the record at offset {record.offset} of {self.key} has producer "
            f"epoch {record.producer_epoch}, and the next marker of its producer, which {ends}, epoch "
            f"{record.next_epoch}: that of a later transaction. The record's own transaction never ended there "
            "(finding 008)."
        )


class TransactionRead(_OfTransaction, kw_only=True):
    """A read of a value whose transaction does not count, or not yet."""

    reader: EventPlace
    early_us: int | None = None
    isolation: IsolationLevel | None = None

    @override
    def words(self) -> str:
        read = f"A poll (operation {self.reader.number} of the history) read {written(self.value)}"
        early = "" if self.early_us is None else f", {span(self.early_us)} before its producer asked to commit it"
        return f"{read} of {self.key}{early}; its transaction is operation {self.writer.number}.{self.of_end}"

    @override
    def view(self) -> TransactionsView:
        return TransactionsView(when=self.reader, word="read here", values=(self.value,), writers=(self.writer,))


class TornTransaction(_OfTransaction, kw_only=True):
    """A lost value whose transaction has another value that was read."""

    @override
    def words(self) -> str:
        transaction = f"the transaction that is operation {self.writer.number} of the history"
        return f"Another write of {transaction} was read; {written(self.value)} to {self.key} is gone.{self.of_end}"


class FailedSend(Finding, kw_only=True):
    """A send that failed in a transaction that was committed."""

    value: Any
    error: str
    writer: EventPlace

    @override
    def words(self) -> str:
        failed = f"The send of {written(self.value)} to {self.key} failed ({self.error})"
        return f"{failed}, and the commit of its transaction was answered (operation {self.writer.number})."

    @override
    def view(self) -> WriteView:
        # Its transaction was acknowledged, and the write was not: it has no life to show.
        return WriteView(values=())


class ZombieWrite(Finding, kw_only=True):
    """A write of a producer that was no longer in charge. Without ``reader``, its commit was answered."""

    value: Any
    late_us: int
    writer: EventPlace
    reader: EventPlace | None = None
    producer: ProducerEpoch | None = None

    @override
    def words(self) -> str:
        late = f"{span(self.late_us)} after its successor had been told that it was in charge"
        reader = self.reader
        end = "its commit was answered" if reader is None else f"operation {reader.number} read its write"
        named = "" if self.producer is None else f" ({producer_name(self.producer)})"
        return f"The producer of {written(self.value)} to {self.key}{named} asked to commit {late}, and {end}."

    @override
    def view(self) -> TransactionsView:
        return TransactionsView(
            when=TransactionMoment.ASKED,
            word="asked to commit",
            values=(self.value,),
            writers=(self.writer,),
            late_us=self.late_us,
        )


class HangingTransaction(Finding, kw_only=True):
    """A log partition whose last stable offset stands still."""

    last_stable_offset: int
    high_watermark: int
    waited_us: int
    op: EventPlace

    @override
    def words(self) -> str:
        return (
            f"The last stable offset of {self.key} was {self.last_stable_offset} and its high watermark "
            f"{self.high_watermark}, {span(self.waited_us)} after the last sign of a transaction: readers of "
            "committed records do not get past it."
        )

    @override
    def view(self) -> TransactionsView:
        return TransactionsView(
            when=self.op, word="last stable offset", offset=self.last_stable_offset, high_watermark=self.high_watermark
        )


def aborted_read(log: Log, facts: TransactionRows) -> Found:
    """``aborted-read``: an ok poll read a value of a transaction that was aborted.

    Example: a transaction sends ``a`` to ``x``, its abort is answered; later a poll reads ``a``. Readers of committed
    records never see one.

    A transaction was aborted if its abort was answered, or if its producer was fenced before it asked for the commit
    and was then refused.

    False alarms avoided: a transaction whose end is not known; reads that failed or are uncertain; readers of
    uncommitted records, which may see them. What a fenced producer sent afterwards is ``zombie``.

    Findings, one for each value and poll: key, value, writer, reader, isolation (of the reader, where it is known).
    O(n).
    """
    rows = log.sends[facts.own[log.sends] & (log.type[log.sends] == FAIL)]
    rows = rows[~np.isin(rows, _rows([*facts.late, *facts.failed]))]
    return _reads_of(log, rows)


def early_read(log: Log, facts: TransactionRows) -> Found:
    """``early-read``: an ok poll read a value of a transaction before its producer asked to commit it.

    Example: a poll that ended at 2.0 s read ``a``; the producer of ``a`` asked for the commit at 2.5 s, or never did.
    A reader of committed records stops at the last stable offset, which is below every open transaction.

    False alarms avoided: the time of a poll is that of its answer, the time of a commit that of its call, on one clock;
    a transaction that was aborted is ``aborted-read``; readers of uncommitted records.

    Findings, one for each value and poll: key, value, writer, reader, isolation, early_us (nothing where no commit was
    asked). O(n).
    """
    rows = log.sends[facts.own[log.sends] & np.isin(log.type[log.sends], (OK, INFO))]
    ending_us = np.where(facts.asked[rows] == COMMIT, facts.ending_us[rows], np.iinfo(np.int64).max)
    return _reads_of(log, rows, ending_us)


def torn_transaction(log: Log, facts: TransactionRows) -> Found:
    """``torn-transaction``: one value of a transaction was read, and another one is lost.

    Example: a transaction sends ``a`` to ``x`` and ``b`` to ``y``, and is committed; a poll reads ``a``; final readers
    read ``y`` to its end, and ``b`` is not there. The loss of ``b`` is a ``lost-write`` too. An uncertain transaction
    is held to it as well: with ``a`` it was committed, and ``b`` is lost if it has a place below an end that final
    readers reached without it (KAFKA-17754).

    False alarms avoided: those of ``lost-write``. A transaction that is missing as a whole is not torn, nor one whose
    only value that was read is the one that is lost; known readers of uncommitted records prove none; transactions of
    histories that do not tell how their producers ended them.

    Not found: a value that was read and lost, in a history that is judged in parts, if all others that were read are in
    other parts.

    Findings, one for each value that is lost: key, value, writer. O(n).
    """
    uncertain = log.writer[uncertain_and_gone(log)]
    uncertain = uncertain[(log.type[uncertain] == INFO) & (facts.asked[uncertain] == COMMIT)]
    lost = np.union1d(log.writer[np.concatenate(lost_values(log))], uncertain)
    lost = lost[facts.own[lost]]
    seen = log.seen_transactions
    read, times = np.unique(log.operation(seen), return_counts=True)
    others = np.zeros(len(lost), dtype=np.int64)
    if len(read):
        nearest = np.minimum(np.searchsorted(read, log.operation(lost)), len(read) - 1)
        others = np.where(read[nearest] == log.operation(lost), times[nearest], 0)
    itself = np.isin(lost, seen)
    elsewhere = ~itself & np.isin(log.operation(lost), log.proven)
    rows = lost[(others > itself) | elsewhere]

    def describe(number: int) -> TornTransaction:
        row = int(rows[number])
        return TornTransaction(key=log.key(row), value=int(log.value[row]), writer=log.op(row))

    return Found(partition=log.partition[rows], describe=describe, row=rows, value=log.value[rows])


def failed_send_committed(log: Log, facts: TransactionRows) -> Found:
    """``failed-send-committed``: a send failed in a transaction whose commit was answered.

    Example: the callback of a send of ``a`` has an error; the transaction of ``a`` is committed, and the commit is
    answered without one. Who relies on the commit has lost ``a``. It is about the client library: a commit succeeds
    only if every send of the transaction did (Kafka's documentation of ``commitTransaction``).

    False alarms avoided: sends without an answer.

    Not found: a commit without a record that the library refused before it took it, as one that is too large
    (KAFKA-9279): the application is told of the refusal at once (``NeverSent``).

    Findings: key, value, error, writer. O(n).
    """
    failed = {row: error for row, error in facts.failed.items() if not error.startswith(NEVER_SENT)}
    rows = _rows(failed)

    def describe(number: int) -> FailedSend:
        row = int(rows[number])
        return FailedSend(key=log.key(row), value=int(log.value[row]), error=failed[row], writer=log.op(row))

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def zombie(log: Log, facts: TransactionRows) -> Found:
    """``zombie``: a producer wrote or committed although a later one with its transactional id was in charge.

    Example: producer 0 has a transaction open; producer 5 with the same transactional id is told that it is in charge;
    then producer 0 sends ``b`` and asks to commit, and the commit is answered, or a poll reads ``b`` (KIP-98,
    KIP-360). Neither may be, whatever readers see otherwise.

    False alarms avoided: a commit that was asked for before the successor was told; values that were sent before.

    Findings: key, value, writer, reader (nothing where the commit was answered), late_us (from the moment in which the
    successor was told to the ask for the commit), producer (its id and epoch, where the client told them). O(n).
    """
    superseded = _rows(facts.superseded_us)
    told_us = np.array([facts.superseded_us[row] for row in superseded.tolist()], dtype=np.int64)
    asked_later = facts.ending_us[superseded] >= told_us
    committed = superseded[(log.type[superseded] == OK) & asked_later]
    late = np.setdiff1d(_rows(facts.late), committed)
    seen = _seen(log, late)
    rows = np.concatenate([committed, seen])
    readers = log.first_rows(log.all_reads[log.type[log.all_reads] == OK])

    def describe(number: int) -> ZombieWrite:
        row = int(rows[number])
        reader = None if number < len(committed) else log.op(int(readers[log.value_id[row]]))
        late_us = int(facts.ending_us[row]) - facts.superseded_us[row]
        return ZombieWrite(
            key=log.key(row),
            value=int(log.value[row]),
            late_us=late_us,
            writer=log.op(row),
            reader=reader,
            producer=facts.producer.get(row),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=np.arange(len(rows)))


def hanging_transaction(log: Log, facts: TransactionRows) -> Found:
    """``hanging-transaction``: the last stable offset is below the high watermark, though no transaction can be open.

    Example: all is healed, no producer has written for 25 s, brokers abort what is open for 10 s and look every 10 s;
    of ``x`` the high watermark is 40 and the last stable offset 33. Readers of committed records get no further.

    False alarms avoided: the moment of the question is compared with the last sign of a transaction in the log
    partition; where it is not later by as much as a transaction may be open, nothing is claimed.

    Findings: key, last_stable_offset, high_watermark, waited_us, op. O(n).
    """
    mine = np.flatnonzero(log.function == _TXN)
    last_us = np.zeros(log.partition_count, dtype=np.int64)
    np.maximum.at(last_us, log.partition[mine], log.time_us[mine])
    waited_us = {row: int(log.time_us[row] - last_us[log.partition[row]]) for row in facts.stable}
    rows = _rows(
        row
        for row, stable in facts.stable.items()
        if log.offset[row] < stable.high_watermark and waited_us[row] >= stable.open_ms * 1000
    )

    def describe(number: int) -> HangingTransaction:
        row = int(rows[number])
        return HangingTransaction(
            key=log.key(row),
            last_stable_offset=int(log.offset[row]),
            high_watermark=facts.stable[row].high_watermark,
            waited_us=waited_us[row],
            op=log.op(row),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def _reads_of(log: Log, writers: Numbers, before_us: Numbers | None = None) -> Found:
    """Reads by ok polls of what these rows sent, answered before a time where one is given: one a value and poll.

    Readers of uncommitted records are left out.
    """
    writer = np.full(len(log.values), NONE, dtype=np.int64)
    writer[log.value_id[writers]] = writers
    limit_us = np.full(len(log.values), np.iinfo(np.int64).max)
    if before_us is not None:
        limit_us[log.value_id[writers]] = before_us
    reads = log.committed_reads
    value = log.value_id[reads]
    reads = reads[(writer[value] != NONE) & (log.time_us[reads] < limit_us[value])]
    _, first = np.unique(np.stack([log.value_id[reads], log.index[reads]]), axis=1, return_index=True)
    reads = reads[np.sort(first)]

    def describe(number: int) -> TransactionRead:
        row = int(reads[number])
        limit = int(limit_us[log.value_id[row]])
        return TransactionRead(
            key=log.key(row),
            value=int(log.value[row]),
            writer=log.op(int(writer[log.value_id[row]])),
            reader=log.op(row),
            isolation=log.isolation_of(row),
            early_us=None if limit == np.iinfo(np.int64).max else limit - int(log.time_us[row]),
        )

    return Found(partition=log.partition[reads], describe=describe, row=reads, value=log.value[reads])


def _seen(log: Log, rows: Numbers) -> Numbers:
    """The rows among these whose value an ok poll read."""
    seen: Numbers = rows[log.seen[log.value_id[rows]]]
    return seen


def _rows(rows: Any) -> Numbers:
    return np.array(sorted(rows), dtype=np.int64)


def _where_there_are(kernel: Callable[[Log, TransactionRows], Found]) -> Callable[[Log], Found]:
    """The kernel over a log that may have no transactions."""
    return lambda log: Found.nothing() if log.transactions is None else kernel(log, log.transactions)


#: In the order in which a report lists them.
TRANSACTIONS: Final = Anomaly.each_documented(
    _where_there_are,
    (
        (
            "aborted-read",
            aborted_read,
            TransactionRead,
            About.READERS,
            "A write of an aborted transaction was read",
            "With isolation.level=read_committed readers skip aborted writes (KIP-98).",
        ),
        (
            "early-read",
            early_read,
            TransactionRead,
            About.READERS,
            "A write was read before its transaction was committed",
            (
                "With isolation.level=read_committed readers stop at the last stable offset, below each open "
                "transaction (KIP-98)."
            ),
        ),
        (
            "torn-transaction",
            torn_transaction,
            TornTransaction,
            About.LOG,
            "A part of a transaction was read, and another part is gone",
            "All writes of a transaction count, or none (KIP-98).",
        ),
        (
            "failed-send-committed",
            failed_send_committed,
            FailedSend,
            About.PRODUCERS,
            "A send failed, and its transaction was committed without it",
            "A commit succeeds only if every send of the transaction did (KAFKA-9279).",
        ),
        (
            "zombie",
            zombie,
            ZombieWrite,
            About.PRODUCERS,
            "A producer wrote although its successor was in charge",
            "A producer with the same transactional id fences the ones before it (KIP-98, KIP-360).",
        ),
        (
            "hanging-transaction",
            hanging_transaction,
            HangingTransaction,
            About.LOG,
            "A transaction stays open, and readers of committed records get no further",
            "Brokers abort a transaction that is open for longer than transaction.timeout.ms.",
        ),
    ),
)
