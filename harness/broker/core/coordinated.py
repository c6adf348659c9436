"""Gives the invariants of coordinators what they compare, after a step of a broker: to simulated runs and searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.broker.core import messages
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.groups.classic import ClassicRecord
from harness.broker.core.groups.consumer import GroupRecord
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.groups.group import Group
from harness.broker.core.invariants import (
    Broken,
    commit_of_a_member,
    decision_follows,
    loaded_as_logged,
    marker_as_decided,
    one_member_a_partition,
    only_its_producer_decides,
    transactions_as_logged,
)
from harness.broker.core.log import MemoryLog
from harness.broker.core.logged import LoggedGroup, LoggedTransactions, logged_decisions, logged_groups
from harness.broker.core.messages import RecordBatch
from harness.broker.core.transaction_coordinator import Transaction, TransactionCoordinator, TransactionRecord
from harness.broker.core.types import NONE, NodeId

#: So far back a decision is looked for first.
RECENT: Final = 64


def commits_in(name: str, group: Group) -> Iterator[Broken | None]:
    """The commit that is being written may be, and no two members have one log partition."""
    change = group.next
    if change is not None and change.by is not None:
        member, epoch = change.by
        unnamed = change.producer is not None and not member and group.classic is not None
        if not unnamed:  # A classic group believes a producer that names no member.
            yield commit_of_a_member(name, member, epoch, _epochs(group))
    if change is not None and group.classic is None:
        yield one_member_a_partition(name, {each: member.held for each, member in change.record.members.items()})


def decisions_in(
    transactions: Mapping[str, Transaction], before: Mapping[str, TransactionRecord | None], cause: object
) -> Iterator[Broken | None]:
    """The record that is being written of each transactional id may be; ``before`` was under way before the step."""
    for name, transaction in transactions.items():
        now = None if transaction.next is None else transaction.next.record
        if now is None or now is before.get(name):
            continue
        if transaction.record.producer_epoch != NONE:
            yield decision_follows(name, transaction.record, now)
        if isinstance(cause, messages.AddPartitionsToTxn | messages.EndTxn) and cause.transactional_id == name:
            asking = (cause.producer_id, cause.producer_epoch)
            yield only_its_producer_decides(name, asking, transaction.record)


def records_under_way(coordinator: TransactionCoordinator) -> dict[str, TransactionRecord | None]:
    """The record that is being written of each transactional id."""
    return {name: None if each.next is None else each.next.record for name, each in coordinator.transactions().items()}


def markers_in(coordinator: TransactionCoordinator, effects: Sequence[Effect]) -> Iterator[Broken | None]:
    """The markers that a step sends are of committed decisions."""
    for effect in effects:
        if type(effect) is Deliver and type(effect.message) is messages.WriteTxnMarkers:
            batch = effect.message.batch
            recent = _decided(coordinator.committed(RECENT), batch.producer_id)
            decided = recent or _decided(coordinator.committed(), batch.producer_id)
            producer = (batch.producer_id, batch.producer_epoch)
            yield marker_as_decided(producer, decided, commit=batch.marker is not None and batch.marker.commit)


def _decided(batches: Sequence[RecordBatch], producer_id: int) -> TransactionRecord | None:
    """The last record of the transactional id that has this producer id."""
    records = (logged_decisions([batch]).values() for batch in reversed(batches))
    return next((each for some in records for each in some if each.producer_id == producer_id), None)


def transactions_loaded(coordinator: TransactionCoordinator) -> Iterator[Broken | None]:
    """A new coordinator of transactions knows what its log says."""
    loaded = {
        name: each.record for name, each in coordinator.transactions().items() if each.record.producer_epoch != NONE
    }
    yield loaded_as_logged("transactional ids", loaded, logged_decisions(coordinator.loaded()))


def groups_loaded(coordinator: GroupCoordinator) -> Iterator[Broken | None]:
    """A new coordinator of groups knows what its log says."""
    _, groups = coordinator.described()
    logged = logged_groups(coordinator.loaded())
    for name in groups.keys() | logged.keys():
        group, read = groups.get(name, Group()), logged.get(name, LoggedGroup())
        yield loaded_as_logged(f"offsets of {name}", group.offsets.everything(), read.offsets)
        yield loaded_as_logged(f"pending offsets of {name}", group.offsets.pending(), read.pending)
        if isinstance(read.members, GroupRecord):
            yield loaded_as_logged(f"members of {name}", group.record, read.members)
        elif isinstance(read.members, ClassicRecord):
            generation = 0 if group.classic is None else group.classic.generation
            missing = generation < read.members.generation
            yield loaded_as_logged(f"generation of {name}", generation, read.members.generation) if missing else None


def _epochs(group: Group) -> dict[str, int]:
    """The members with their epochs or their generation."""
    if group.classic is not None and not group.empty:
        return dict.fromkeys(group.classic.members, group.classic.generation)
    return {name: member.epoch for name, member in group.record.members.items()}


def transactions_in(node: NodeId, log: MemoryLog, logged: LoggedTransactions) -> Broken | None:
    """A log and its index agree, as far as transactions began above the part that was cleaned or dropped."""
    index, limit = log.producers.transactions, max(log.start_offset, log.cleaned_to)
    if not limit and len(index.aborted) == len(logged.aborted) and index.open == logged.open:
        last = index.aborted[-1] if index.aborted else None
        if last is None or (last.producer_id, last.first_offset, last.marker_offset) == logged.aborted[-1]:
            return None
    earlier = {each.marker_offset for each in index.aborted if each.first_offset < limit}
    earlier_open = {producer_id for producer_id, first in index.open.items() if first < limit}
    aborted = [(a.producer_id, a.first_offset, a.marker_offset) for a in index.aborted if a.first_offset >= limit]
    opened = {producer_id: first for producer_id, first in index.open.items() if first >= limit}
    seen_aborted = [each for each in logged.aborted if each[1] >= limit and each[2] not in earlier]
    seen_open = {who: first for who, first in logged.open.items() if first >= limit and who not in earlier_open}
    return transactions_as_logged(node, (opened, aborted), (seen_open, seen_aborted))
