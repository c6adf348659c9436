"""Records with keys, for a compacted log: what a record holds, and whether a log still says the same of every key.

A scope writes the key of each record as a letter, a capital where the record deletes it. With ``kKx``, a is a value of
the key k, b deletes k, and c and all later ones are values of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.broker.core.messages import RecordBatch, content_of_record

#: A leader epoch and the number of a record; None where a cleaner has removed it.
Kept = tuple[int, int] | None


def key_of(keys: str, record: int) -> str:
    """The letter of a record's key, a capital where the record deletes it; "" where records have no keys."""
    return keys[min(record, len(keys) - 1)] if keys else ""


def is_tombstone(keys: str, record: int) -> bool:
    """The record deletes its key."""
    return key_of(keys, record).isupper()


def content_of(keys: str, record: int) -> Any:
    """A record as its batch holds it: its number alone where records have no keys."""
    letter = key_of(keys, record)
    if not letter:
        return record
    key, payload = letter.lower().encode(), bytes([record])
    return content_of_record(key, payload, tombstone=is_tombstone(keys, record))


def numbers_of(batch: RecordBatch) -> list[int]:
    """The records that a batch still has."""
    return [record[1][0] if isinstance(record, tuple) else record for record in batch.records]


def united(earlier: Sequence[Kept], later: Sequence[Kept]) -> tuple[Kept, ...]:
    """Return two logs that consumers could read as one: each has what a cleaner has removed from the other."""
    longer, other = (earlier, later) if len(earlier) >= len(later) else (later, earlier)
    return tuple(other[offset] if kept is None and offset < len(other) else kept for offset, kept in enumerate(longer))


def lacking(keys: str, log: Sequence[Kept], committed: Sequence[Kept]) -> tuple[int | None, int | None]:
    """The last committed record of a key that ``log`` contradicts, and the one that it has of that key instead.

    None and None where it says the same of every key. A record may be gone where a later one of its key is committed,
    and a tombstone where the log has nothing that it deletes. Without keys each record is one of its own.
    """
    has = _last_of_keys(keys, log[: len(committed)])
    for key, record in _last_of_keys(keys, committed).items():
        own = has.get(key)
        if own != record and not (own is None and is_tombstone(keys, record)):
            return record, own
    return None, None


def _last_of_keys(keys: str, log: Sequence[Kept]) -> dict[str | int, int]:
    return {key_of(keys, kept[1]).lower() or kept[1]: kept[1] for kept in log if kept is not None}
