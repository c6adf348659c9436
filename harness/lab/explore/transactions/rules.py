"""The promises of transactions, asked of a whole state, under the names of the anomalies that checkers find in runs.

A checker sees a breach when a client reads; here it is one as soon as a client may. The rest is the same
(``checkers/anomalies/transactions.py``). The assertions of the core are a rule, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from harness.broker.core.invariants import Broken
from harness.lab.explore.transactions.producers import PartWritten, ProducerNode, name_of, transaction_of
from harness.lab.explore.transactions.servers import CoordinatorCopy, PartitionCopy

#: The rules that a search of transactions looks at.
TRANSACTION_RULES: Final = (
    "zombie",
    "aborted-read",
    "early-read",
    "torn-transaction",
    "lost-write",
    "hanging-transaction",
    "decision-follows",
    "only-its-producer-decides",
    "marker-as-decided",
    "transactions-as-logged",
    "producers-grow",
    "loaded-as-logged",
    "assertion",
)


class InCharge(NamedTuple):
    """The last producer that was told that it is in charge, and what could be read of earlier ones at that moment."""

    number: int = 0
    readable: tuple[int, ...] = ()


def broken_promises(
    coordinator: CoordinatorCopy, parts: Sequence[PartitionCopy], producers: Sequence[ProducerNode], last: InCharge
) -> Iterator[Broken]:
    """The promises that a state breaks, each with a sentence."""
    written = {each.number: (producer, each) for producer in producers for each in producer.transactions}
    readable = readable_records(parts)
    for record in readable:
        producer, transaction = written[transaction_of(record)]
        yield from _read(record, producer.number, transaction, last)
    passed = {record for part in parts for record in part.aborted}
    for _, transaction in written.values():
        yield from _whole(transaction, set(readable), passed)
    for number, part in enumerate(parts):
        if part.open and not coordinator.has_open(number):
            text = f"a transaction is open in partition {number}, and the coordinator knows of none there"
            yield "hanging-transaction", text


def readable_records(parts: Sequence[PartitionCopy]) -> tuple[int, ...]:
    """The records that readers of committed records may get, ascending."""
    return tuple(sorted(record for part in parts for record in part.readable))


def _read(record: int, producer: int, transaction: PartWritten, last: InCharge) -> Iterator[Broken]:
    """A record that can be read is of a transaction whose producer asked to commit it while it was in charge."""
    name = name_of(record)
    if producer < last.number and record not in last.readable:
        yield "zombie", f"{name} of producer {producer} can be read since producer {last.number} is in charge"
    if transaction.end in {"aborting", "aborted"}:
        yield "aborted-read", f"{name} can be read, and its producer has asked to abort it"
    elif transaction.end == "open":
        yield "early-read", f"{name} can be read, and its producer has not asked to commit it"


def _whole(transaction: PartWritten, readable: set[int], passed: set[int]) -> Iterator[Broken]:
    """All of a transaction can be read or nothing, and all where its commit was answered."""
    aborted = [record for record in transaction.records if record in passed]
    if not aborted:
        return
    name = name_of(aborted[0])
    others = [record for record in transaction.records if record in readable]
    if others:
        yield "torn-transaction", f"{name_of(others[0])} can be read, and {name} of its transaction is aborted"
    if transaction.end == "committed":
        yield "lost-write", f"{name} is aborted, and the commit of its transaction was answered"
