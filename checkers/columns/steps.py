"""Steps of one client through one log partition: from operation to operation, and inside one operation.

Both measure how far a client moved in the version order: +1 is the next value, more is a skip, less is going back (0
is the same value again). Where an index is not known, nothing is claimed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from checkers.columns.ids import Flags, Numbers, one_of
from checkers.columns.isolation_levels import OTHER
from checkers.columns.log_rows import LogRows
from checkers.columns.version_order import VersionOrder
from workloads import Function
from workloads.history import FUNCTION_CODE, INFO, INVOKE, OK, Kind


class LevelKinds(NamedTuple):
    """The kinds of the rows of readers of one isolation level."""

    read: int
    empty: int
    rebalanced: int


FIRST_LEVEL: Final = LevelKinds(Kind.READ, Kind.EMPTY, Kind.REBALANCED)
OTHER_LEVEL: Final = LevelKinds(*(OTHER + kind for kind in FIRST_LEVEL))
#: An assignment is a process's, whatever level it reads with.
_DROPPED: Final = (Kind.DROPPED, OTHER + Kind.DROPPED)
_SEEK: Final = FUNCTION_CODE[Function.SEEK]


class Steps(NamedTuple):
    """Steps between known places, int64 by step: rows of the earlier and the later record, difference of indexes."""

    earlier: Numbers
    later: Numbers
    delta: Numbers

    def where(self, which: Flags) -> Steps:
        """The steps that ``which`` marks."""
        return Steps(self.earlier[which], self.later[which], self.delta[which])


class _Visits(NamedTuple):
    """Operations of clients on a log partition, by (client, event index).

    ``client``, ``type`` and ``forgets`` are of the operation; ``first`` and ``last`` the rows (int64) of the records
    with which it moved its client, -1 where it moved nothing.
    """

    client: Numbers
    first: Numbers
    last: Numbers
    type: Numbers
    forgets: Flags


def poll_steps(log: LogRows, order: VersionOrder, level: LevelKinds) -> Steps:
    """Steps from the last value of the last ok poll to the first value of the next poll, whatever its outcome.

    A failed or uncertain poll is compared but moves nothing: an aborted transaction must read again. A poll that
    named the partition and brought nothing leaves the place unknown. An assignment without the partition forgets the
    place, and so does a consumer that sets it itself.
    """
    visits = _visits(log, (level.read,), (level.read, level.empty))
    return _between(log, order, visits, advancing=visits.type == OK, compared=np.ones(len(visits.type), bool))


def send_steps(log: LogRows, order: VersionOrder) -> Steps:
    """Steps from the last value that a client sent to the first of its next send, unless one is known to have failed.

    As the reference tool does it, an assignment without the partition forgets the producer's place, too.
    """
    visits = _visits(log, (Kind.SEND,), (Kind.SEND,))
    possible = (visits.type == OK) | (visits.type == INFO)
    return _between(log, order, visits, advancing=possible, compared=possible)


def inner_reads(log: LogRows, order: VersionOrder, level: LevelKinds) -> Steps:
    """Steps between neighbouring reads inside one operation of any outcome.

    Those inside an operation during which a group rebalance touched the partition are left out; other partitions' are
    not.
    """
    return _inner(log, order, level.read, level.rebalanced)


def inner_sends(log: LogRows, order: VersionOrder) -> Steps:
    """Steps between neighbouring sends inside one operation of any outcome; no rebalance moves them."""
    return _inner(log, order, Kind.SEND)


def _inner(log: LogRows, order: VersionOrder, kind: int, *touches: int) -> Steps:
    rows = log.by_client
    moved = rows[(one_of(log.kind, kind, *touches) & (log.type != INVOKE))[rows]]
    begins = _operation_starts(log, moved)
    operation = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(moved))))
    touched = np.bincount(operation, log.kind[moved] != kind, len(begins)) > 0
    linked = (operation[:-1] == operation[1:]) & ~touched[operation[:-1]]
    return _indexed(log, order, moved[:-1][linked], moved[1:][linked])


def _visits(log: LogRows, moving: tuple[int, ...], touching: tuple[int, ...]) -> _Visits:
    rows = log.by_client
    forgets = one_of(log.kind, *_DROPPED) | ((log.function == _SEEK) & (log.kind == Kind.REACHED))
    rows = rows[((one_of(log.kind, *touching) | forgets) & (log.type != INVOKE))[rows]]
    begins = _operation_starts(log, rows)
    ends = np.append(begins[1:], len(rows))
    does_move = one_of(log.kind[rows], *moving)
    places = np.flatnonzero(does_move)
    before = np.concatenate([[0], np.cumsum(does_move)])  # of place: how many before it move
    first_place, last_place = before[begins], before[ends] - 1
    moves = first_place <= last_place
    first = np.full(len(begins), -1, np.int64)
    last = first.copy()
    first[moves] = rows[places[first_place[moves]]]
    last[moves] = rows[places[last_place[moves]]]
    heads = rows[begins]
    return _Visits(log.client[heads], first, last, log.type[heads].astype(np.int64), forgets[heads])


def _operation_starts(log: LogRows, rows: Numbers) -> Numbers:
    client, index = log.client[rows], log.index[rows]
    begins = np.ones(len(rows), bool)
    begins[1:] = (client[1:] != client[:-1]) | (index[1:] != index[:-1])
    return np.flatnonzero(begins)


def _between(log: LogRows, order: VersionOrder, visits: _Visits, *, advancing: Flags, compared: Flags) -> Steps:
    places = np.arange(len(visits.client))
    standing = np.maximum.accumulate(np.where(advancing | visits.forgets, places, -1))
    previous = np.concatenate([[-1], standing[:-1]]) if len(places) else standing
    usable = compared & ~visits.forgets & (visits.first >= 0) & (previous >= 0)
    usable &= (visits.client[previous] == visits.client) & ~visits.forgets[previous] & (visits.last[previous] >= 0)
    return _indexed(log, order, visits.last[previous[usable]], visits.first[usable])


def _indexed(log: LogRows, order: VersionOrder, earlier: Numbers, later: Numbers) -> Steps:
    """Steps whose two ends have an index."""
    sound = (log.value_id[earlier] >= 0) & (log.value_id[later] >= 0)
    earlier, later = earlier[sound], later[sound]
    index = order.sure_index
    source, target = index[log.value_id[earlier]], index[log.value_id[later]]
    placed = (source >= 0) & (target >= 0)
    return Steps(earlier[placed], later[placed], (target - source)[placed])
