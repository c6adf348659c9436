"""Views: the data that shows a finding, of one of four kinds; the report has a renderer for each."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from checkers.columns.log_rows import EventPlace


class WriteView(msgspec.Struct, frozen=True, kw_only=True):
    """The life of a write: the first of ``values``. ``offsets`` are all that it has, where it has several."""

    values: tuple[Any, ...]
    offsets: tuple[int, ...] = ()


class CommitsView(msgspec.Struct, frozen=True, kw_only=True):
    """The commits of a group in one log partition, and what contradicts them.

    Attributes:
        group: its name.
        offset: where the contradiction is, if its event names no offset.
        counts: the event that counts, or the offset that the group committed.
        against: the event that contradicts it; None: the record at ``offset``, where a client read it.
        words: the words beside what counts, and beside what contradicts it.
    """

    group: str
    offset: int
    counts: EventPlace | int
    against: EventPlace | None
    words: tuple[str, str]

    @property
    def events(self) -> list[EventPlace]:
        """The events that it names."""
        return [event for event in (self.counts, self.against) if isinstance(event, EventPlace)]


class TransactionMoment(Enum):
    """A moment of a transaction."""

    ASKED = "its producer asked to commit it"
    ENDED = "its end was answered"


class TransactionsView(msgspec.Struct, frozen=True, kw_only=True):
    """The transactions of one log partition, and what is odd.

    Attributes:
        when: the event, or the moment of the transaction, at which it is odd.
        word: the word beside it.
        values: the records that are odd.
        offset: the offset that is odd, where no record is.
        writers: the transactions that it is about.
        high_watermark: what ``offset`` is compared with, if it is.
        late_us: the time before the odd moment at which a successor was in charge, if one was.
    """

    when: EventPlace | TransactionMoment
    word: str
    values: tuple[Any, ...] = ()
    offset: int | None = None
    writers: tuple[EventPlace, ...] = ()
    high_watermark: int | None = None
    late_us: int | None = None

    @property
    def events(self) -> list[EventPlace]:
        """The events that it names."""
        return [*self.writers, *([self.when] if isinstance(self.when, EventPlace) else [])]


class CopiesView(msgspec.Struct, frozen=True, kw_only=True):
    """The copies of a log partition that differ: at one ``offset``, or in the records of one key.

    ``readers`` are the processes whose reads around the offset are compared; all final readers are of a key.
    """

    offset: int | None = None
    record_key: int | None = None
    readers: tuple[int, ...] = ()


View = WriteView | CommitsView | TransactionsView | CopiesView
