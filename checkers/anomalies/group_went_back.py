"""``group-went-back``: what a group has committed, read back, is older than every commit that may be its last one.

Example: a member's commit of offset 10 of ``t-0`` is acknowledged; later the group, asked, says 7, or that it has
committed nothing. Or: the log partition is assigned to the next member, and the first record that this one reads is
that at 7. An acknowledged commit is on every in-sync replica of ``__consumer_offsets``, as a record that was sent with
acks=all is.

A commit may be the last one unless another one was acknowledged that had begun after its end, both before the question.
One without an answer may take effect at any time later, so it may always be the last one.

False alarms avoided: commits that overlap in time; commits whose outcome is not known; groups without an acknowledged
commit before; a first record that is later than the committed offset. A later commit of a lower offset is what it says:
the group then may be there.

Not found: what lies between the lowest of several commits that may be the last one and the others.

Findings, one an answer: key, group, offset (-1: nothing), committed (the lowest that is possible), op, commit.
Source: Kafka's design, "the last offset that has been stored securely". O(n log n), and for each answer
that may be too old the commits that may be its last one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.group_rows import GroupRows, running_max
from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads.history import INFO, INVOKE, NONE, Kind

#: At most so many commits of one log partition are open at a time: a member has one.
OPEN_MAX: Final = 64


class OlderOffset(Finding, kw_only=True):
    """A group that forgot a commit."""

    group: str
    offset: int
    committed: int
    op: EventPlace
    commit: EventPlace


def find(log: Log) -> Found:
    """Answers that are older than what was committed, in order."""
    groups = log.groups
    if groups is None or not len(groups.acknowledged):
        return Found.nothing()
    older = _older(log, groups, _answers(log, groups))
    rows = np.array([row for row, _, _ in older], dtype=np.int64)

    def describe(number: int) -> OlderOffset:
        row, of_group, commit = older[number]
        return OlderOffset(
            key=log.key(row),
            group=log.group_of(of_group),
            offset=int(log.offset[row]),
            committed=int(log.offset[commit]),
            op=log.op(row),
            commit=log.op(commit),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def _answers(log: Log, groups: GroupRows) -> tuple[Numbers, Numbers, Numbers]:
    """Rows that tell where a group was, the row that names the group, and the event index of the question.

    They are what was read back, and the first record that a member read of what it was assigned.
    """
    reads = log.reads
    position = groups.latest(groups.assigned, reads, log.index[reads], groups.member)
    reads, position = reads[position >= 0], position[position >= 0]
    position, first = np.unique(position, return_index=True)
    reads, assigned = reads[first], groups.ordered(groups.assigned, groups.member)[position]
    again = _goes_on(log, groups, assigned)
    reads, assigned = reads[~again], assigned[~again]
    back = groups.read_back
    rows = np.concatenate([back, reads])
    order = np.argsort(rows, kind="stable")
    of_group = np.concatenate([back, assigned])[order]
    asked = np.concatenate([groups.begun(back), log.index[assigned]])[order]
    return rows[order], of_group, asked


def _goes_on(log: Log, groups: GroupRows, assigned: Numbers) -> Flags:
    """Say which of these assignments may only repeat one, so that the member goes on from its own position (bool)."""
    dropped = (log.kind == Kind.DROPPED) & (groups.segment >= 0)
    touched = np.sort(np.concatenate([groups.assigned, np.flatnonzero(dropped)]))
    position = groups.latest(touched, assigned, log.index[assigned], groups.member)
    ordered = groups.ordered(touched, groups.member)
    goes_on: Flags = (position >= 0) & (log.kind[ordered[np.maximum(position, 0)]] == Kind.LISTED)
    return goes_on


class _Commits:
    """The commits of all segments, and which of them may be the last one at some moment."""

    def __init__(self, log: Log, groups: GroupRows) -> None:
        self._offset, self._segment = log.offset, groups.segment
        self._begun = groups.begun(np.arange(len(log.index)))
        self._span = groups.span
        open_ended = np.isin(log.type[groups.commits], (INFO, INVOKE))
        self._answered, self._taken = groups.commits[~open_ended], groups.acknowledged
        self._answered_at, self._taken_at = groups.packed(self._answered), groups.packed(self._taken)
        self._newest = running_max(self._begun[self._taken], self._segment[self._taken])
        unanswered = groups.commits[open_ended]
        self._unanswered = unanswered[np.argsort(groups.packed(unanswered, self._begun[unanswered]))]
        self._unanswered_at = groups.packed(self._unanswered, self._begun[self._unanswered])
        self._lowest_unanswered = self._lowest_so_far(self._unanswered)

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

    def lowest(self, segment: int, asked: int, told: int) -> int:
        """The row of the lowest commit that may be the last one for a question, -1 if none was acknowledged before.

        ``asked`` and ``told`` are the event indexes of the question and of its answer.
        """
        base = segment * self._span
        last = int(np.searchsorted(self._taken_at, base + asked)) - 1
        if last < 0 or self._segment[self._taken[last]] != segment:
            return NONE
        first, end = np.searchsorted(self._answered_at, (base + self._newest[last], base + told))
        possible = self._answered[first : end + OPEN_MAX]
        unknown = int(np.searchsorted(self._unanswered_at, base + told)) - 1
        if unknown >= 0:
            possible = np.append(possible, self._lowest_unanswered[unknown])
        possible = possible[(self._begun[possible] < told) & (self._segment[possible] == segment)]
        return int(possible[np.argmin(self._offset[possible])])

    def _lowest_so_far(self, rows: Numbers) -> Numbers:
        """For each row that with the lowest offset among those before it, itself included, in its segment."""
        rank = np.empty(len(rows), dtype=np.int64)
        by_offset = np.argsort(self._offset[rows], kind="stable")
        rank[by_offset] = np.arange(len(rows))
        return rows[by_offset[-running_max(-rank, self._segment[rows])]]


def _older(log: Log, groups: GroupRows, answers: tuple[Numbers, Numbers, Numbers]) -> list[tuple[int, int, int]]:
    """The answers that are too old: the row of each, the row that names its group, and the row of the commit."""
    commits = _Commits(log, groups)
    rows, of_groups, questions = answers
    few = commits.may_be_older(groups.segment[of_groups], questions, log.offset[rows])
    older = []
    for row, of_group, asked in zip(*(numbers[few].tolist() for numbers in answers), strict=True):
        commit = commits.lowest(int(groups.segment[of_group]), asked, int(log.index[row]))
        if commit >= 0 and log.offset[row] < log.offset[commit]:
            older.append((row, of_group, commit))
    return older


ANOMALY = Anomaly.documented("group-went-back", __doc__, OlderOffset, find, about=About.LOG)
