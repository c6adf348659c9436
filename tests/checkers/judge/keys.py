"""The slow judge of logs from which records go: by a later record of their key, or by their age."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checkers.judge.told import Final, Sent, Told

Finding = tuple[object, ...]
SLACK_US = 1_000_000


def may_be_later(told: Told, sent: Sent, other: Sent) -> bool:
    """Whether the other record of the same key may be behind this one in the log."""
    if other is sent or other.log != sent.log or other.key != sent.key or other.value == sent.value:
        return False
    if other.op.failed or told.aborted(other.op):
        return False
    mine, others = told.places(sent.log, sent.value), told.places(other.log, other.value)
    if not mine or not others:
        return True
    return others[-1] > mine[0]


def may_be_gone(told: Told, sent: Sent) -> bool:
    """Only the last record of a key is due, and no tombstone; what is before the begin of the log is not lost."""
    if sent.key is not None:
        if sent.tombstone or any(may_be_later(told, sent, other) for other in told.sends):
            return True
    places = told.places(sent.log, sent.value)
    return bool(places) and places[-1] < told.log_start(sent.log)


def expired(told: Told, sent: Sent, final: Final | None = None) -> bool:
    """Whether the record was older than ``retention.ms`` when the reader said that it came to the end.

    Without a reader: for every final reader of its log partition.
    """
    finals = told.finals_of(sent.log) if final is None else [final]
    ages = [
        (one.said.time_us - sent.op.begin_us, one.times["retention_ms"] * 1000)
        for one in finals
        if one.times.get("retention_ms") is not None
    ]
    return bool(ages) and all(age >= kept for age, kept in ages)


def last_of(told: Told, final: Final, key: int, below: int) -> Sent | None:
    """The last record of a key that a final reader read below an offset."""
    best: tuple[int, Sent] | None = None
    for seen in final.seen:
        for sent in told.sends_of(final.log, seen.value):
            if sent.key == key and seen.offset < below and (best is None or seen.offset > best[0]):
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
            record = last_of(told, final, key, final.end)
            if record is None:
                continue
            for stone in told.sends:
                if not stone.tombstone or (stone.log, stone.key) != (final.log, key) or not stone.op.happened:
                    continue
                places = told.places(stone.log, stone.value)
                if not places or stone.op.end is None or stone.op.end > final.begin:
                    continue
                older = read_at(final, record.value) < places[0]
                again = any(
                    may_be_later(told, stone, other) and other.op.begin < final.said.index for other in told.sends
                )
                if older and not again:
                    yield final.log, key


def gone_early(told: Told, *, tombstones: bool) -> Iterator[Finding]:
    """Records that a final reader did not read below its end, though the topic's times had to keep them."""
    for final in told.finals:
        lag, kept = final.times.get("record_ms", 0), final.times.get("tombstone_ms", 0)
        for sent in told.sends:
            if sent.log != final.log or sent.key is None or not sent.op.happened:
                continue
            places = told.places(sent.log, sent.value)
            if not places or places[-1] >= final.end or sent.value in final.values:
                continue
            later = [other for other in told.sends if may_be_later(told, sent, other)]
            if tombstones and (not sent.tombstone or later):
                continue
            if not tombstones and not any(told.proved(other.op) for other in later):
                continue
            age = final.said.time_us - sent.op.begin_us
            if age + SLACK_US < 1000 * (lag + (kept if tombstones else 0)):
                yield final.log, sent.value


def divergent_state(told: Told) -> Iterator[Finding]:
    """Two final readers of one level have different last records of one key, below both of their ends."""
    for one in told.finals:
        for other in told.finals:
            if one is other or one.log != other.log or one.said.isolation != other.said.isolation:
                continue
            for key in keys_of(told, one.log):
                if states_differ(told, one, other, key):
                    yield one.log, key


def states_differ(told: Told, one: Final, other: Final, key: int) -> bool:
    bound = min(one.end, other.end)
    states = []
    for final in (one, other):
        record = last_of(told, final, key, final.end)
        if record is not None and read_at(final, record.value) >= bound:
            return False
        states.append(record)
    values = [None if record is None or record.tombstone else record.value for record in states]
    if values[0] == values[1]:
        return False
    if any(seen.damaged for final in (one, other) for seen in final.seen):
        return False
    for value, reader, there in ((values[0], one, other), (values[1], other, one)):
        if value is not None:
            continue
        for stone in told.sends:
            if (stone.log, stone.key) != (one.log, key) or not stone.tombstone or stone.op.failed:
                continue
            places = told.places(stone.log, stone.value)
            if (not places or places[-1] >= there.end) and stone.op.begin < reader.said.index:
                return False
    return True
