"""The slow judge of transactions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checkers.judge.keys import expired, may_be_gone
from tests.checkers.judge.logs import is_lost
from tests.checkers.judge.told import Operation, Sent, Told, read_by
from workloads.operations import Function, Send

Finding = tuple[object, ...]


def sent_by(told: Told, op: Operation) -> list[Sent]:
    return [sent for sent in told.sends if sent.op is op]


def late(op: Operation, value: int) -> bool:
    """Say whether the producer sent the value after a later one was told that it is in charge."""
    return value in op.detail.get("late", ())


def aborted_read(told: Told) -> Iterator[Finding]:
    for op in told.transactions:
        if not op.detail or not told.aborted(op):
            continue
        for sent in sent_by(told, op):
            for seen in told.ok_reads:
                same = (seen.log, seen.value) == (sent.log, sent.value)
                if same and not seen.op.uncommitted and not late(op, sent.value):
                    yield sent.log, sent.value


def early_read(told: Told) -> Iterator[Finding]:
    for op in told.transactions:
        if not op.detail or told.aborted(op):
            continue
        asked = op.detail["ending_us"] if op.detail.get("asked") == "commit" else None
        for sent in sent_by(told, op):
            for seen in told.ok_reads:
                same = (seen.log, seen.value) == (sent.log, sent.value)
                early = asked is None or seen.op.event.time_us < asked
                if same and early and not sent.failed and not seen.op.uncommitted:
                    yield sent.log, sent.value


def torn_transaction(told: Told) -> Iterator[Finding]:
    for op in told.transactions:
        if op.failed or not op.detail:
            continue
        for lost in sent_by(told, op):
            others = [
                seen
                for sent in sent_by(told, op)
                for seen in told.ok_reads
                if (seen.log, seen.value) == (sent.log, sent.value) and not seen.op.uncommitted and sent is not lost
            ]
            if others and (is_lost(told, lost) or gone_of_an_uncertain_one(told, lost)):
                yield lost.log, lost.value


def gone_of_an_uncertain_one(told: Told, lost: Sent) -> bool:
    """The value has a place below an end that final readers reached without it."""
    if lost.op.happened or lost.op.detail.get("asked", "commit") != "commit" or may_be_gone(told, lost):
        return False
    places = told.places(lost.log, lost.value)
    for level in (False, True):
        finals = [final for final in told.finals_of(lost.log) if final.uncommitted is level]
        due = [final for final in finals if places and places[-1] < final.end]
        if due and not expired(told, lost) and all(lost.value not in final.values for final in finals):
            return True
    return False


def failed_send_committed(told: Told) -> Iterator[Finding]:
    for op in told.transactions:
        for sent in sent_by(told, op):
            error = op.detail.get("failed", {}).get(str(sent.value))
            if op.happened and error is not None and not error.startswith("NeverSent"):
                yield sent.log, sent.value


def zombie(told: Told) -> Iterator[Finding]:
    for op in told.transactions:
        told_us = op.detail.get("superseded_us")
        if told_us is None:
            continue
        ending_us = op.detail.get("ending_us")
        committed = op.happened and ending_us is not None and told_us <= ending_us
        for sent in sent_by(told, op):
            if (committed and not sent.failed) or (late(op, sent.value) and told.was_read(sent.log, sent.value)):
                yield sent.log, sent.value


def hanging_transaction(told: Told) -> Iterator[Finding]:
    for op in told.operations:
        if op.event.function is not Function.STABLE:
            continue
        for reached in op.reached:
            signs = [
                event.time_us
                for other in told.transactions
                for event in (other.asked, other.ended)
                if event is not None
                and any(isinstance(m, Send) and m.partition == reached.partition for m in other.micro)
            ]
            waited = op.event.time_us - max(signs, default=0)
            if reached.offset < op.detail["high_watermark"] and waited >= 1000 * op.detail["open_ms"]:
                yield (reached.partition,)


def precommitted_read(told: Told) -> Iterator[Finding]:
    for op in told.operations:
        mine = {(sent.log, sent.value) for sent in sent_by(told, op)}
        for log, record in read_by(op):
            if (log, record.value) in mine:
                yield log, op.event.index


def is_committed(told: Told, op: Operation) -> bool:
    """Its commit was answered, or a reader of committed records read a value that it sent."""
    if op.happened:
        return True
    if op.failed:
        return False
    return any(
        (seen.log, seen.value) == (sent.log, sent.value) and not seen.op.uncommitted
        for sent in sent_by(told, op)
        for seen in told.ok_reads
    )
