"""The states of members of a consumer group, for which a script can wait."""

from __future__ import annotations

import msgspec


class IsAssigned(msgspec.Struct, frozen=True):
    """A member has the log partition, as it was told in its last poll, or not (``expected``)."""

    member: str
    expected: bool = True


class IsDone(msgspec.Struct, frozen=True):
    """A member waits for nothing: its poll, and its work, are over."""

    member: str


class HasCommitted(msgspec.Struct, frozen=True):
    """A member was told that the group took its commit up to this record, or further."""

    member: str
    record: str


class GroupIsEmpty(msgspec.Struct, frozen=True):
    """The coordinator has read its log, and knows of no member."""


GroupState = IsAssigned | IsDone | HasCommitted | GroupIsEmpty
