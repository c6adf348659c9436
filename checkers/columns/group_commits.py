"""The commits of a group that may be its last one at some moment.

What was refused did not happen, nor what a transaction commits that was aborted, or whose commit was not asked for. A
deletion of the group is a commit of nothing, and what an operator sets its offsets to is a commit as any other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from checkers.columns.group_rows import GroupRows, running_max
from checkers.columns.ids import Numbers
from workloads.history import INFO, INVOKE, NONE, OK

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
        commits = groups.commits[~groups.never_committed(groups.commits)]
        rows = np.concatenate([commits, groups.deletions, groups.resets])
        rows = rows[np.argsort(groups.packed(rows), kind="stable")]
        open_ended = np.isin(log.type[rows], (INFO, INVOKE))
        self._taken = rows[log.type[rows] == OK]
        self._taken_at = groups.packed(self._taken)
        self._newest = running_max(self._begun[self._taken], self._segment[self._taken])
        unanswered = rows[open_ended]
        self._unanswered = unanswered[np.argsort(groups.packed(unanswered, self._begun[unanswered]))]
        self._unanswered_at = groups.packed(self._unanswered, self._begun[self._unanswered])
        self._lowest_unanswered = self._extreme_so_far(self._unanswered, -self._offset)
        self._highest_unanswered = self._extreme_so_far(self._unanswered, self._offset)

    def newest(self, segments: Numbers, asked: Numbers) -> Numbers:
        """By question, the row of the commit that began last of those acknowledged before it, -1 for none.

        ``segments`` and ``asked`` (the event indexes of the questions) are by question.
        """
        places = np.arange(len(self._taken))
        began_last = np.maximum.accumulate(np.where(self._begun[self._taken] == self._newest, places, 0))
        before = np.searchsorted(self._taken_at, segments * self._span + asked) - 1
        newest = np.full(len(before), NONE, dtype=np.int64)
        newest[before >= 0] = self._taken[began_last[before[before >= 0]]]
        return np.where(self._segment[newest] == segments, newest, NONE)

    def possible(self, segment: int, asked: int, told: int) -> Possible:
        """The commits that may be the last one for a question; none if nothing was acknowledged before.

        ``asked`` and ``told`` are the event indexes of the question and of its answer.
        """
        base = segment * self._span
        last = int(np.searchsorted(self._taken_at, base + asked)) - 1
        if last < 0 or self._segment[self._taken[last]] != segment:
            return Possible(NONE, NONE)
        first, end = np.searchsorted(self._taken_at, (base + self._newest[last], base + told))
        rows = self._taken[first : end + OPEN_MAX]
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


def aborted_answers(groups: GroupRows) -> tuple[Numbers, Numbers]:
    """Rows of answers with an offset that only aborted transactions name, and the row of such a transaction."""
    rows, told = groups.in_transactions, groups.read_back
    aborted = groups.never_committed(rows)
    others = np.concatenate([np.setdiff1d(groups.commits, rows[aborted]), groups.resets])
    abort, other = (_begun_before(groups, told, of) for of in (rows[aborted], others))
    wrong = (groups.log.offset[told] >= 0) & (abort >= 0) & (other < 0)
    return told[wrong], abort[wrong]


def _begun_before(groups: GroupRows, told: Numbers, rows: Numbers) -> Numbers:
    """By answer, the row among ``rows`` with its offset that began first, if before the answer; else -1 (int64)."""
    log, first_row = groups.log, np.full(len(told), NONE, dtype=np.int64)
    if not len(rows):
        return first_row
    span = int(log.offset.max()) + 2
    rows = rows[np.argsort(groups.begun(rows), kind="stable")]
    packed, first = np.unique(groups.segment[rows] * span + log.offset[rows], return_index=True)
    asked = groups.segment[told] * span + log.offset[told]
    number = np.minimum(np.searchsorted(packed, asked), len(packed) - 1)
    row = rows[first[number]]
    matches = (packed[number] == asked) & (groups.begun(row) < log.index[told])
    first_row[matches] = row[matches]
    return first_row
