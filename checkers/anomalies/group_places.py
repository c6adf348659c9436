"""The fields that findings about a consumer group have in common."""

from __future__ import annotations

from typing import TypedDict

from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace


class GroupPlace(TypedDict):
    """The log partition, the group, its offset there, and the event that tells it."""

    key: str
    group: str
    offset: int
    op: EventPlace


def group_place(log: Log, row: int, *, named_by: int | None = None) -> GroupPlace:
    """The fields from one row; ``named_by`` is the row that names the group where this one does not."""
    group = log.group_of(row if named_by is None else named_by)
    return GroupPlace(key=log.key(row), group=group, offset=int(log.offset[row]), op=log.op(row))
