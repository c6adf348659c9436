"""The slow judge of logs: what was lost, doubled, made up, out of order. Loops over all pairs, after the words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.checkers.judge.keys import expired, may_be_gone
from tests.checkers.judge.told import READING, SENDING, Final, Operation, Sent, Told
from workloads.operations import EventType, Function, Poll, Send

Finding = tuple[object, ...]


def lost_write(told: Told) -> Iterator[Finding]:
    """An acknowledged write is not in the log that consumers read."""
    for sent in told.sends:
        if is_lost(told, sent):
            yield sent.log, sent.value


def is_lost(told: Told, sent: Sent) -> bool:
    """Say whether the value is lost by either rule."""
    last_writer = told.sends_of(sent.log, sent.value)[-1]
    if may_be_gone(told, sent):
        return False
    return passed_over(told, last_writer) or any(
        gone_from_the_end(told, s) for s in told.sends_of(sent.log, sent.value)
    )


def passed_over(told: Told, sent: Sent) -> bool:
    """A client read at or past its place, and no ok poll ever read it."""
    places = told.places(sent.log, sent.value)
    if not places or told.was_read(sent.log, sent.value) or not told.wrote(sent):
        return False
    bound = max(
        (told.places(sent.log, seen.value)[0] for seen in told.ok_reads if seen.log == sent.log),
        default=-1,
    )
    return places[-1] <= bound and not expired(told, sent)


def gone_from_the_end(told: Told, sent: Sent) -> bool:
    """It was acknowledged, and final readers of a level that read to the end did not see it."""
    if not sent.acknowledged:
        return False
    for level in (False, True):
        finals = [final for final in told.finals_of(sent.log) if final.uncommitted is level]
        due = [final for final in finals if is_due(told, sent, final)]
        if due and not expired(told, sent) and all(sent.value not in final.values for final in finals):
            return True
    return False


def is_due(told: Told, sent: Sent, final: Final) -> bool:
    """It was acknowledged before the final reader began, or at an offset below its end."""
    assert sent.op.end is not None
    return sent.op.end < final.begin or (sent.offset is not None and sent.offset < final.end)


def unseen(told: Told) -> Iterator[Finding]:
    for sent in told.sends:
        if sent.acknowledged and not told.was_read(sent.log, sent.value) and not may_go(told, sent):
            yield sent.log, sent.value


def expired_write(told: Told) -> Iterator[Finding]:
    for sent in told.sends:
        if sent.acknowledged and not told.was_read(sent.log, sent.value) and expired(told, sent):
            yield sent.log, sent.value


def duplicate(told: Told) -> Iterator[Finding]:
    for log in told.logs:
        for value in set().union(*told.all_places(log).values()):
            if len(told.places(log, value)) > 1:
                yield log, value


def inconsistent_offsets(told: Told) -> Iterator[Finding]:
    for log in told.logs:
        for offset, values in told.all_places(log).items():
            if len(values) > 1:
                yield log, offset


def phantom_read(told: Told) -> Iterator[Finding]:
    for seen in told.reads:
        if not seen.damaged and not told.sends_of(seen.log, seen.value):
            yield seen.log, seen.value


def corrupt_read(told: Told) -> Iterator[Finding]:
    for seen in told.reads:
        if seen.damaged:
            yield seen.log, seen.offset


def g1a(told: Told) -> Iterator[Finding]:
    """An ok poll read a value whose write failed."""
    for seen in told.ok_reads:
        for sent in told.sends_of(seen.log, seen.value):
            if not sent.op.failed or (sent.op.event.function is Function.TXN and sent.op.detail):
                continue
            if sent.op.event.function is Function.TXN and seen.op.uncommitted:
                continue
            yield seen.log, seen.value


def reordered(told: Told) -> Iterator[Finding]:
    """A producer asked for two writes, both were acknowledged, and the later one is before the other."""
    values_at = {log: told.all_places(log) for log in told.logs}

    def counts(sent: Sent) -> bool:
        places = told.places(sent.log, sent.value)
        alone = all(len(values_at[sent.log][offset]) == 1 for offset in places)
        attributed = sent.op.asked is not None and sent.op.event.instance >= 0
        once = len([s for s in told.sends_of(sent.log, sent.value) if s.op.ended is not None]) == 1
        read = told.was_read(sent.log, sent.value) and not is_lost(told, sent)
        return sent.acknowledged and attributed and bool(places) and alone and once and read

    counted = [sent for sent in told.sends if counts(sent)]
    for index, later in enumerate(counted):
        for earlier in counted[:index]:
            same = (earlier.log, earlier.op.event.instance) == (later.log, later.op.event.instance)
            if same and told.places(later.log, later.value)[-1] < told.places(earlier.log, earlier.value)[0]:
                yield later.log, later.value


def poll_order(told: Told, *, skips: bool, inside: bool) -> Iterator[Finding]:
    """Neighbouring records that one consumer read: the second is not behind the first, or a value is between."""
    for log in told.logs:
        for first, second, op in neighbours(told, log, inside=inside):
            before, after = (last_place(told, log, value, op) for value in (first, second))
            if before is None or after is None:
                continue
            between = [offset for offset in held_by(told, log, op) if before < offset < after]
            if (skips and between) or (not skips and after <= before):
                yield (log,) if skips else (log, second)


def last_place(told: Told, log: str, value: int, op: Operation | None = None) -> int | None:
    """The last place that the value has alone: where several values were seen, nothing is said of any of them.

    For a reader of committed records those places count that such readers see.
    """
    places = told.all_places(log, committed=op is not None and not op.uncommitted)
    return max((offset for offset, values in places.items() if values == {value}), default=None)


def held_by(told: Told, log: str, op: Operation) -> set[int]:
    """The offsets at which a reader of this level has to see something."""
    return {
        offset
        for offset, values in told.all_places(log, committed=not op.uncommitted).items()
        if any(
            (op.uncommitted or not only_uncommitted(told, log, value)) and not value_may_go(told, log, value)
            for value in values
        )
    }


def value_may_go(told: Told, log: str, value: int) -> bool:
    return any(may_go(told, sent) for sent in told.sends_of(log, value))


def may_go(told: Told, sent: Sent) -> bool:
    """A cleaner or its age may have removed it, so that its absence proves nothing."""
    return may_be_gone(told, sent) or expired(told, sent)


def only_uncommitted(told: Told, log: str, value: int) -> bool:
    """Readers of committed records pass over it: it was aborted, or only readers of uncommitted ones see it."""
    writers = told.sends_of(log, value)
    if told.levels and told.is_aborted(log, value):
        return True
    seen = [seen for seen in told.reads if (seen.log, seen.value) == (log, value)]
    proved = any(told.wrote(sent) for sent in writers)
    return bool(seen) and all(s.op.uncommitted for s in seen) and not proved


def neighbours(told: Told, log: str, *, inside: bool) -> Iterator[tuple[int, int, Operation]]:
    """Pairs of values that follow each other: inside operations, or from one operation to the next of a consumer."""
    position: dict[int, int | None] = {}
    for op in sorted(told.operations, key=lambda op: op.event.index):
        who = op.event.process
        if forgets(op, log):
            position.pop(who, None)
        if op.event.function not in READING or op.ended is None:
            continue
        lists = [micro.records[log] for micro in op.micro if isinstance(micro, Poll) and log in micro.records]
        values = [None if record.defect else record.value for records in lists for record in records]
        if inside:
            pairs = [] if log in op.event.rebalanced else pairwise(values)
            yield from ((a, b, op) for a, b in pairs if a is not None and b is not None)
            continue
        first, last = position.get(who), values[0] if values else None
        if first is not None and last is not None:
            yield first, last, op
        if lists and op.happened:
            position[who] = values[-1] if values else None


def forgets(op: Operation, log: str) -> bool:
    """An assignment that leaves the log partition out, or a position that the consumer set itself."""
    if op.ended is None or op.event.function is Function.SEEK:
        return op.ended is not None and any(reached.partition == log for reached in op.reached)
    assigns = op.event.function in (Function.ASSIGN, Function.SUBSCRIBE, Function.REBALANCE)
    return assigns and not op.failed and log not in op.event.partitions


def send_order(told: Told, *, skips: bool, inside: bool) -> Iterator[Finding]:
    for log in told.logs:
        last: dict[int, int] = {}
        for op in told.operations:
            if op.event.function in (Function.ASSIGN, Function.SUBSCRIBE) and forgets(op, log):
                last.pop(op.event.process, None)
            if op.event.function not in SENDING or op.ended is None or (op.failed and not inside):
                continue
            values = [m.value for m in op.micro if isinstance(m, Send) and m.partition == log]
            if inside:
                for first, second in pairwise(values):
                    yield from _sent_pair(told, log, first, second, skips=skips)
            elif values:
                if op.event.process in last:
                    yield from _sent_pair(told, log, last[op.event.process], values[0], skips=False)
                last[op.event.process] = values[-1]


def _sent_pair(told: Told, log: str, first: int, second: int, *, skips: bool) -> Iterator[Finding]:
    before, after = last_place(told, log, first), last_place(told, log, second)
    if before is None or after is None:
        return
    between = [
        offset
        for offset, values in told.all_places(log).items()
        if before < offset < after and not all(value_may_go(told, log, value) for value in values)
    ]
    if (skips and between) or (not skips and after <= before):
        yield (log,) if skips else (log, second)


def divergent_reads(told: Told) -> Iterator[Finding]:
    """A final reader read a record that another one of its level had to see, and did not."""
    for reader in told.finals:
        for other in told.finals:
            if reader is other or reader.log != other.log or reader.uncommitted != other.uncommitted:
                continue
            for seen in reader.seen:
                damaged = seen.damaged or any(s.damaged and s.offset == seen.offset for s in other.seen)
                below = seen.offset < min(reader.end, other.end)
                writers = told.sends_of(seen.log, seen.value)
                keyed = any(sent.key is not None for sent in writers)
                old = any(expired(told, sent) for sent in writers)
                old |= not writers and seen.offset < told.log_start(reader.log)
                others = {s.value for s in other.seen if s.offset < other.end and not s.damaged}
                if below and not damaged and not keyed and not old and seen.value not in others:
                    yield reader.log, seen.value


def unfounded_out_of_order(told: Told) -> Iterator[Finding]:
    for sent in told.sends:
        error = sent.op.event.error or ""
        if sent.op.event.type is EventType.INVOKE or "OUT_OF_ORDER_SEQUENCE" not in error:
            continue
        if (
            not any(may_go(told, s) for s in told.sends if s.log == sent.log)
            and told.finals_of(sent.log)
            and not any(log == sent.log for log, _ in lost_write(told))
        ):
            yield sent.log, sent.value
