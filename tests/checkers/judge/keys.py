"""The slow judge of logs from which records go: by a later record of their key, or by their age."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checkers.judge.told import Final, Sent, Told

Finding = tuple[object, ...]
SLACK_US = 1_000_000


def place_of(told: Told, sent: Sent) -> int | None:
    """The last place of a value that a client was answered, by whom it did not fail, or read."""
    answered = [s.offset for s in told.sends_of(sent.log, sent.value) if s.offset is not None and not s.failed]
    read = [seen.offset for seen in told.reads if (seen.log, seen.value) == (sent.log, sent.value) and not seen.damaged]
    return max([*answered, *read], default=None)


def exists(told: Told, sent: Sent) -> bool:
    """It is in the log, or was: it was acknowledged, or a client read it."""
    read = told.was_read(sent.log, sent.value)
    return (told.wrote(sent) or read) and not told.is_aborted(sent.log, sent.value)


def may_exist(told: Told, sent: Sent) -> bool:
    return exists(told, sent) or not (sent.failed or told.is_aborted(sent.log, sent.value))


def of_same_key(told: Told, sent: Sent) -> list[Sent]:
    return [s for s in told.sends if (s.log, s.key) == (sent.log, sent.key) and s.value != sent.value]


def may_be_later(told: Told, sent: Sent, other: Sent) -> bool:
    """Say whether the other record of the same key may be behind this one in the log."""
    mine, others = place_of(told, sent), place_of(told, other)
    return may_exist(told, other) and (mine is None or others is None or others >= mine)


def superseded(told: Told, sent: Sent) -> bool:
    """A later record of its key is in the log, or a tombstone may be.

    One of unknown end that is no tombstone deletes nothing: with it or without, the key has a last record.
    """
    for other in of_same_key(told, sent):
        counts = may_exist(told, other) if other.tombstone else exists(told, other)
        mine, others = place_of(told, sent), place_of(told, other)
        later = mine is None or (other.tombstone and others is None) or (others is not None and others > mine)
        if counts and later:
            return True
    return False


def may_be_gone(told: Told, sent: Sent) -> bool:
    """Only the last record of a key is due, no tombstone, and nothing that was aborted."""
    aborted = told.is_aborted(sent.log, sent.value)
    return sent.key is not None and (sent.tombstone or aborted or superseded(told, sent))


def expired(told: Told, sent: Sent) -> bool:
    """Say whether the record was older than ``retention.ms`` when its log was read last, or is before its begin.

    The age counts from the begin of the write, and a second is left for clocks.
    """
    offset = place_of(told, sent)
    start = told.log_start(sent.log)
    if start > 0 and (offset is None or offset < start):
        return True
    kept = [f.times["retention_ms"] * 1000 for f in told.finals_of(sent.log) if f.times.get("retention_ms") is not None]
    looks = [seen.op.event.time_us for seen in told.reads if seen.log == sent.log]
    looks += [final.said.time_us for final in told.finals_of(sent.log) if final.times]
    first = min(s.op.begin_us for s in told.sends_of(sent.log, sent.value))
    return bool(kept) and first < max(looks) - kept[-1] + SLACK_US


def last_of(told: Told, final: Final, key: int) -> Sent | None:
    """The last record of a key that a final reader read."""
    best: tuple[int, Sent] | None = None
    for seen in final.seen:
        for sent in told.sends_of(final.log, seen.value):
            if (
                sent.key == key
                and not told.is_aborted(final.log, seen.value)
                and (best is None or seen.offset >= best[0])
            ):
                best = seen.offset, sent
    return None if best is None else best[1]


def read_at(final: Final, value: int) -> int:
    return max(seen.offset for seen in final.seen if seen.value == value)


def keys_of(told: Told, log: str) -> set[int]:
    return {sent.key for sent in told.sends if sent.log == log and sent.key is not None}


def returned_key(told: Told) -> Iterator[Finding]:
    """A final reader's last record of a key is older than the key's tombstone."""
    for final in told.finals:
        for key in keys_of(told, final.log):
            record = last_of(told, final, key)
            if record is None or record.tombstone:
                continue
            for stone in told.sends:
                if not stone.tombstone or (stone.log, stone.key) != (final.log, key) or not stone.acknowledged:
                    continue
                offset = place_of(told, stone)
                if offset is None or stone.op.end is None or stone.op.end > final.begin:
                    continue
                older = read_at(final, record.value) < offset
                again = any(not o.tombstone and may_be_later(told, stone, o) for o in of_same_key(told, stone))
                if older and not again:
                    yield final.log, key


def gone_early(told: Told, *, tombstones: bool) -> Iterator[Finding]:
    """Records that a final reader did not read below its end, though the topic's times had to keep them."""
    for final in told.finals:
        lag, kept = final.times.get("record_ms", 0), final.times.get("tombstone_ms", 0)
        for sent in told.sends:
            if sent.log != final.log or sent.key is None or not sent.acknowledged:
                continue
            offset = place_of(told, sent)
            if offset is None or offset >= final.end or sent.value in final.values:
                continue
            later = superseded(told, sent)
            if (tombstones and (not sent.tombstone or later)) or (not tombstones and not later):
                continue
            age = final.said.time_us - sent.op.begin_us
            if age + SLACK_US < 1000 * (lag + (kept if tombstones else 0)):
                yield final.log, sent.value


def divergent_state(told: Told) -> Iterator[Finding]:
    """Two final readers of one level have different last records of one key, below both of their ends."""
    for reader in told.finals:
        for other in told.finals:
            if reader is other or reader.log != other.log or reader.uncommitted != other.uncommitted:
                continue
            for key in keys_of(told, reader.log):
                if states_differ(told, reader, other, key):
                    yield reader.log, key


def states_differ(told: Told, first: Final, other: Final, key: int) -> bool:
    states = [last_of(told, final, key) for final in (first, other)]
    for record, reader, unasked in ((states[0], first, other), (states[1], other, first)):
        if record is not None and read_at(reader, record.value) >= unasked.end:
            return False
    values = [None if record is None or record.tombstone else record.value for record in states]
    if values[0] == values[1]:
        return False
    for record, holder in ((states[0], other), (states[1], first)):
        if record is not None:
            continue
        for sent in told.sends:
            if (sent.log, sent.key) == (first.log, key) and may_exist(told, sent):
                offset = place_of(told, sent)
                if sent.tombstone if offset is None else offset >= holder.end:
                    return False
    return True
