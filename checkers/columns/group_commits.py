"""The commits of a group that may be its last one at some moment.

What was refused did not happen. The offsets of a transaction that was aborted count as ones that may have been taken:
``aborted-commit`` says that they were. A deletion of the group is a commit of nothing, and what an operator sets its
offsets to is a commit as any other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from checkers.columns.group_rows import GroupRows, running_max
from checkers.columns.ids import Flags, Numbers
from workloads import Function
from workloads.history import FUNCTION_CODE, INFO, INVOKE, NONE, OK

_TXN: Final = FUNCTION_CODE[Function.TXN]

#: The most commits of one log partition that are open at a time: a member has one.
OPEN_MAX: Final = 64


class Possible(NamedTuple):
    """The rows of the commits with the lowest and the highest offset that may be the last one; -1 for none."""

    lowest: int
    highest: int


class GroupCommits:
    """The commits, deletions and resets of all segments, and which of them may be the last one at some moment."""

    def __init__(self, groups: GroupRows) -> None:
        log = groups.log
        self._offset, self._segment = log.offset, groups.segment
        self._begun = groups.begun(np.arange(len(log.index)))
        self._span = groups.span
        rows = np.concatenate([groups.commits, groups.deletions, groups.resets])
        rows = rows[np.argsort(groups.packed(rows), kind="stable")]
        open_ended = np.isin(log.type[rows], (INFO, INVOKE))
        self._taken = rows[log.type[rows] == OK]
        handed = (log.type[rows] == OK) | (~open_ended & (log.function[rows] == _TXN))
        self._handed = rows[handed]
        self._handed_at = groups.packed(self._handed)
        self._taken_at = groups.packed(self._taken)
        self._newest = running_max(self._begun[self._taken], self._segment[self._taken])
        unanswered = rows[open_ended]
        self._unanswered = unanswered[np.argsort(groups.packed(unanswered, self._begun[unanswered]))]
        self._unanswered_at = groups.packed(self._unanswered, self._begun[self._unanswered])
        self._lowest_unanswered = self._extreme_so_far(self._unanswered, -self._offset)
        self._highest_unanswered = self._extreme_so_far(self._unanswered, self._offset)

    def may_be_older(self, segments: Numbers, asked: Numbers, offsets: Numbers) -> Flags:
        """Mark the answers with an offset below that of one commit that may be the last one; others are not too old.

        That commit is the one that began last of those acknowledged before the question. ``segments``, ``asked`` (the
        event indexes of the questions) and ``offsets`` are by answer.
        """
        places = np.arange(len(self._taken))
        began_last = np.maximum.accumulate(np.where(self._begun[self._taken] == self._newest, places, 0))
        before = np.searchsorted(self._taken_at, segments * self._span + asked) - 1
        below = before >= 0
        commit = self._taken[began_last[before[below]]]
        below[below] = (self._segment[commit] == segments[below]) & (self._offset[commit] > offsets[below])
        return below

    def possible(self, segment: int, asked: int, told: int) -> Possible:
        """The commits that may be the last one for a question; none if nothing was acknowledged before.

        ``asked`` and ``told`` are the event indexes of the question and of its answer.
        """
        base = segment * self._span
        last = int(np.searchsorted(self._taken_at, base + asked)) - 1
        if last < 0 or self._segment[self._taken[last]] != segment:
            return Possible(NONE, NONE)
        first, end = np.searchsorted(self._handed_at, (base + self._newest[last], base + told))
        rows = self._handed[first : end + OPEN_MAX]
        unknown = int(np.searchsorted(self._unanswered_at, base + told)) - 1
        if unknown >= 0:
            rows = np.append(rows, (self._lowest_unanswered[unknown], self._highest_unanswered[unknown]))
        rows = rows[(self._begun[rows] < told) & (self._segment[rows] == segment)]
        offset = self._offset[rows]
        return Possible(int(rows[np.argmin(offset)]), int(rows[np.argmax(offset)]))

    def _extreme_so_far(self, rows: Numbers, weight: Numbers) -> Numbers:
        """For each row the one with the largest ``weight`` among those before it, itself included, in its segment."""
        rank = np.empty(len(rows), dtype=np.int64)
        by_weight = np.argsort(weight[rows], kind="stable")
        rank[by_weight] = np.arange(len(rows))
        return rows[by_weight[running_max(rank, self._segment[rows])]]
