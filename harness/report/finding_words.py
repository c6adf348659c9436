"""A finding in sentences of its own, beside the account of the write that it names: one function for each kind.

A kind without a function has nothing to add: the account of its write says all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Final

import msgspec

from checkers import (
    AbortedCommit,
    DeadCleaner,
    DivergentRead,
    DivergentReplicas,
    DivergentState,
    DivergentTables,
    DoubledEffect,
    EarlyGone,
    EventPlace,
    FailedSend,
    Finding,
    HangingTransaction,
    InconsistentOffset,
    LostWrite,
    MissingEffect,
    OlderOffset,
    ReplicaOutOfSync,
    ReturnedGroup,
    ReturnedKey,
    SkippedRecord,
    StaleCommit,
    StaleGeneration,
    TornTransaction,
    TransactionRead,
    UnfencedCommit,
    UnstableOffset,
    ZombieWrite,
    seconds,
)
from harness.report.names import held_record, producer_name, write_name

#: The offset of a group that has committed nothing.
_NOTHING: Final = -1
_SECOND_US: Final = 1_000_000
#: Writes of one finding that a line of a terminal names.
_WRITES_MAX: Final = 3


def line_of(finding: Finding) -> str:
    """A finding on one line: in words of its own, or by the writes that it names; as JSON where it names none."""
    writes = [_write(value) for value in finding.written]
    if words := in_words(finding):
        return words
    if not writes:
        return msgspec.json.encode(finding).decode()
    more = f" and {len(writes) - _WRITES_MAX} more" if len(writes) > _WRITES_MAX else ""
    line = f"{', '.join(writes[:_WRITES_MAX])}{more} to {finding.key}"
    if isinstance(finding, InconsistentOffset):
        return f"{line}, all at offset {finding.offset}"
    return f"{line} ({finding.fate})" if isinstance(finding, LostWrite) and finding.fate else line


@singledispatch
def in_words(finding: Finding) -> str:
    """Say what a finding is."""
    del finding
    return ""


@in_words.register
def _(finding: LostWrite) -> str:
    if finding.other_read is None:
        return ""
    event = _number(finding.other_read)
    return f"Readers of the other isolation level read {_write(finding.value)} (operation {event} of the history)."


@in_words.register
def _(finding: DivergentReplicas) -> str:
    under = {node: f" under leader epoch {epoch}" for node, epoch in finding.epochs.items()}
    held = [
        f"broker {node} holds {held_record(value)}{under.get(node, '')}"
        for node, value in sorted(finding.replicas.items())
    ]
    at_the_end = f"At offset {finding.offset} of {finding.key}, when the run had ended, {', '.join(held)}."
    return f"{at_the_end} All of them were in sync, and the log was read beyond that."


@in_words.register
def _(finding: ReplicaOutOfSync) -> str:
    return f"{finding.key} at {seconds(finding.time_us)}, when all had been healed for long: {finding.lack}."


@in_words.register
def _(finding: ReturnedKey) -> str:
    return (
        f"Key {finding.record_key} of {finding.key} was deleted by the tombstone at offset "
        f"{finding.tombstone_offset}, which was acknowledged. A reader from the start of the log to its end then "
        f"had its older record at offset {finding.offset} as the last one: the key is back."
    )


@in_words.register
def _(finding: EarlyGone) -> str:
    written = f"{_write(finding.value).capitalize()} of key {finding.record_key} of {finding.key}"
    told = f"was acknowledged at offset {finding.offset} (operation {_number(finding.writer)} of the history)"
    ended = f"{_span(finding.age_us)} after the write began (operation {_number(finding.reader)})"
    return (
        f"{written} {told}. A final reader that came to the end {ended} did not see it, though the log keeps it for "
        f"{_span(finding.kept_us)} at least."
    )


@in_words.register
def _(finding: DeadCleaner) -> str:
    led = "" if finding.leader is None else f" while broker {finding.leader} led"
    return (
        f"Of {finding.records} records in closed segments of {finding.key} that a final reader read{led} (operation "
        f"{_number(finding.reader)} of the history), {finding.old} had a later record of their key. With "
        f"min.cleanable.dirty.ratio={finding.ratio} the cleaner was due."
    )


@in_words.register
def _(finding: DivergentRead) -> str:
    level = "" if finding.isolation is None else f" with isolation.level={finding.isolation}"
    return (
        f"{_write(finding.value).capitalize()} at offset {finding.offset} of {finding.key} was read by final readers"
        f"{level} ({_processes(finding.readers)}), and not by others ({_processes(finding.others)}), which read on to "
        "an end behind it. Each read the log from its start."
    )


def _processes(processes: Sequence[int]) -> str:
    return f"process{'es' if len(processes) > 1 else ''} {', '.join(map(str, processes))}"


@in_words.register
def _(finding: DivergentState) -> str:
    states = [
        f"process {process} {'no record' if value is None else _write(value)}"
        for process, value in sorted(finding.states.items())
    ]
    had = f"Of key {finding.record_key} of {finding.key}, final readers had different last records"
    return f"{had}: {', '.join(states)}. Each read the log to its end, under another leader."


@in_words.register
def _(finding: DivergentTables) -> str:
    held = [
        f"on broker {node} {'it is deleted' if value is None else f'it is {_write(value)}'}"
        for node, value in sorted(finding.replicas.items())
    ]
    return (
        f"When the run had ended, the last record of key {finding.record_key} was not the same in the logs of "
        f"{finding.key} on all in-sync replicas: {', '.join(held)}. Who leads decides what readers get."
    )


@in_words.register
def _(finding: SkippedRecord) -> str:
    skipped = f"{_write(finding.value).capitalize()} at offset {finding.offset} of {finding.key} was read"
    return (
        f"{skipped}, but no member of group {finding.group} processed it, and the group has committed "
        f"{finding.committed}: its next member begins behind it."
    )


@in_words.register
def _(finding: OlderOffset) -> str:
    reached = "it had committed nothing" if finding.offset == _NOTHING else f"it was at {finding.offset}"
    return (
        f"Group {finding.group} had acknowledged commits of {finding.key}, and none that may have been the last one "
        f"was below {finding.committed} (operation {_number(finding.commit)} of the history). Asked later, or when its "
        f"next member began to read (operation {_number(finding.op)}), {reached}."
    )


@in_words.register
def _(finding: ReturnedGroup) -> str:
    deleted = f"Group {finding.group} was deleted (operation {_number(finding.deletion)} of the history)"
    return (
        f"{deleted}, and committed nothing of {finding.key} after that. Asked later (operation "
        f"{_number(finding.op)}), it was at {finding.offset}."
    )


@in_words.register
def _(finding: StaleCommit) -> str:
    return (
        f"A successor had {finding.key} and had committed in group {finding.group} (operation "
        f"{_number(finding.successor)} of the history). After that the member before it began a commit of offset "
        f"{finding.offset}, and the group took it (operation {_number(finding.op)})."
    )


@in_words.register
def _(finding: StaleGeneration) -> str:
    first = (
        f"A member of group {finding.group} was assigned {finding.key} in generation {finding.earlier_generation} "
        f"(operation {_number(finding.earlier)} of the history)."
    )
    if finding.generation == finding.earlier_generation:
        return f"{first} Another one was assigned it in the same generation (operation {_number(finding.op)})."
    return f"{first} After that it was assigned in generation {finding.generation} (operation {_number(finding.op)})."


@in_words.register
def _(finding: UnfencedCommit) -> str:
    return (
        f"Another instance of the static member {finding.instance_id} of group {finding.group} had started and was "
        f"assigned {finding.key} (operation {_number(finding.successor)} of the history). After that the instance "
        f"before it began a commit of offset {finding.offset}, and the group took it (operation "
        f"{_number(finding.op)})."
    )


@in_words.register
def _(finding: TransactionRead) -> str:
    read = f"A poll (operation {_number(finding.reader)} of the history) read {_write(finding.value)}"
    early = "" if finding.early_us is None else f", {_span(finding.early_us)} before its producer asked to commit it"
    return f"{read} of {finding.key}{early}; its transaction is operation {_number(finding.writer)}."


@in_words.register
def _(finding: TornTransaction) -> str:
    transaction = f"the transaction that is operation {_number(finding.writer)} of the history"
    return f"Another write of {transaction} was read; {_write(finding.value)} to {finding.key} is gone."


@in_words.register
def _(finding: FailedSend) -> str:
    failed = f"The send of {_write(finding.value)} to {finding.key} failed ({finding.error})"
    return f"{failed}, and the commit of its transaction was answered (operation {_number(finding.writer)})."


@in_words.register
def _(finding: ZombieWrite) -> str:
    late = f"{_span(finding.late_us)} after its successor had been told that it was in charge"
    reader = finding.reader
    end = "its commit was answered" if reader is None else f"operation {_number(reader)} read its write"
    named = "" if finding.producer is None else f" ({producer_name(finding.producer)})"
    return f"The producer of {_write(finding.value)} to {finding.key}{named} asked to commit {late}, and {end}."


@in_words.register
def _(finding: HangingTransaction) -> str:
    return (
        f"The last stable offset of {finding.key} was {finding.last_stable_offset} and its high watermark "
        f"{finding.high_watermark}, {_span(finding.waited_us)} after the last sign of a transaction: readers of "
        "committed records do not get past it."
    )


@in_words.register
def _(finding: MissingEffect) -> str:
    return (
        f"Group {finding.group} had committed offset {finding.committed} of {finding.key}. No transaction with "
        f"what was made of {_write(finding.value)}, at offset {finding.offset}, was committed."
    )


@in_words.register
def _(finding: DoubledEffect) -> str:
    made = " and ".join(map(_write, finding.values))
    return (
        f"Readers of {finding.key} saw {made}. All were made of the record at offset {finding.offset} of "
        f"{finding.source}, in transactions of their own."
    )


@in_words.register
def _(finding: AbortedCommit) -> str:
    return (
        f"Group {finding.group}, asked about {finding.key} (operation {_number(finding.op)} of the history), named "
        f"offset {finding.offset}. Of all that its members handed over, only a transaction that was aborted had it "
        f"(operation {_number(finding.transaction)})."
    )


@in_words.register
def _(finding: UnstableOffset) -> str:
    return (
        f"Group {finding.group}, asked about {finding.key} (operation {_number(finding.op)} of the history), named "
        f"offset {finding.offset}. Then a transaction with offset {finding.pending} was open, which was committed "
        f"later (operation {_number(finding.transaction)}): a member that begins here does records again."
    )


def _write(value: object) -> str:
    """A written value by its name; other tools' are any JSON."""
    return write_name(value) if isinstance(value, int) else f"value {value}"


def _span(span_us: int) -> str:
    return f"{span_us / 1000:,.2f} ms" if span_us < _SECOND_US else seconds(span_us)


def _number(event: EventPlace) -> int:
    return event.op_pos if event.index is None else event.index
