"""The moments at which a history tells where a group was, and whether it may rightly have forgotten that by then.

A group's offsets go ``offsets.retention.minutes`` after it became empty; those of a group without members, and of one
by KIP-848, so long after their commit (KIP-211, rule 57). A history tells that time, and not when the group was empty.
So an offset may be forgotten from that time after its commit on, unless the member that committed it went on: it
commits again after the answer, and was not assigned the log partition again between the two::

    A commits 4   B is assigned   (60 s)   the group says: nothing             forgotten, if it keeps offsets for 60 s
    A commits 4                   (60 s)   the group says: nothing   A commits 6        A was its member all the time
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.columns.expiry import CLOCKS_US
from checkers.columns.group_commits import GroupCommits
from checkers.columns.group_rows import GroupRows
from checkers.columns.ids import Flags, Numbers, one_of
from checkers.columns.isolation_levels import OTHER_READ
from workloads import NOTHING
from workloads.history import INVOKE, Kind


class Answers(NamedTuple):
    """Rows that tell where a group was, the row that names the group, and the event index of the question (int64)."""

    rows: Numbers
    of_groups: Numbers
    asked: Numbers

    def where(self, which: Flags | Numbers) -> Answers:
        """The answers that ``which`` marks."""
        return Answers(self.rows[which], self.of_groups[which], self.asked[which])


def answers_of(groups: GroupRows) -> Answers:
    """Look up what was read back, and the first record that each member read of what it was assigned, by row."""
    back, begins = groups.read_back, first_reads(groups)
    asked = np.concatenate([groups.begun(back), begins.asked])
    answers = Answers(np.concatenate([back, begins.rows]), np.concatenate([back, begins.of_groups]), asked)
    return answers.where(np.argsort(answers.rows, kind="stable"))


def first_reads(groups: GroupRows) -> Answers:
    """The first record that each member read of a log partition that it was newly assigned; not where it sought."""
    log = groups.log
    reads = np.flatnonzero(one_of(log.kind, Kind.READ, OTHER_READ) & (log.type != INVOKE))
    position = groups.latest(groups.assigned, reads, log.index[reads], groups.member)
    reads, position = reads[position >= 0], position[position >= 0]
    position, first = np.unique(position, return_index=True)
    reads, assigned = reads[first], groups.ordered(groups.assigned, groups.member)[position]
    again = _goes_on(groups, assigned) | _sought(groups, reads, assigned)
    return Answers(reads[~again], assigned[~again], log.index[assigned[~again]])


def _goes_on(groups: GroupRows, assigned: Numbers) -> Flags:
    """Say which of these assignments may only repeat one, so that the member goes on from its own position (bool)."""
    log = groups.log
    dropped = (log.kind == Kind.DROPPED) & (groups.segment >= 0)
    touched = np.sort(np.concatenate([groups.assigned, np.flatnonzero(dropped)]))
    position = groups.latest(touched, assigned, log.index[assigned], groups.member)
    ordered = groups.ordered(touched, groups.member)
    goes_on: Flags = (position >= 0) & (log.kind[ordered[np.maximum(position, 0)]] == Kind.LISTED)
    return goes_on


def _sought(groups: GroupRows, reads: Numbers, assigned: Numbers) -> Flags:
    """Say before which of these reads the member set its position, after this assignment (bool)."""
    log = groups.log
    position = groups.latest(groups.seeks, reads, log.index[reads], groups.member)
    sought = position >= 0
    seeks = groups.ordered(groups.seeks, groups.member)[position[sought]]
    sought[sought] = log.index[seeks] > log.index[assigned[sought]]
    return sought


def forgotten(groups: GroupRows, answers: Answers) -> Flags:
    """Mark the answers before which the group may have forgotten what was committed; not those that tell an offset."""
    log, kept_us = groups.log, groups.retention_us
    if kept_us is None or not len(answers.rows):
        return np.zeros(len(answers.rows), dtype=bool)
    segments = groups.segment[answers.of_groups]
    newest = GroupCommits(groups).newest(segments, answers.asked)
    committed_us = np.where(log.invoke_us >= 0, log.invoke_us, log.time_us)[newest]
    forgets_us = committed_us + kept_us[segments] - CLOCKS_US
    says_offset = np.isin(answers.rows, groups.read_back) & (log.offset[answers.rows] != NOTHING)
    may_be: Flags = (newest >= 0) & (kept_us[segments] >= 0) & (log.time_us[answers.rows] >= forgets_us) & ~says_offset
    for number in np.flatnonzero(may_be).tolist():
        row, asked = int(answers.rows[number]), int(answers.asked[number])
        may_be[number] = not _has_a_member(groups, int(segments[number]), int(forgets_us[number]), asked, row)
    return may_be


def _has_a_member(groups: GroupRows, segment: int, from_us: int, asked: int, row: int) -> bool:
    """Say whether one member of the segment certainly was in the group from this moment on until after the answer."""
    log, taken = groups.log, groups.taken
    taken = taken[groups.segment[taken] == segment]
    assigned = groups.assigned[groups.segment[groups.assigned] == segment]
    for member in np.unique(groups.instance[taken]).tolist():
        mine, dealt = taken[groups.instance[taken] == member], assigned[groups.instance[assigned] == member]
        before = mine[(log.index[mine] < asked) & (log.time_us[mine] <= from_us)]
        after = mine[groups.begun(mine) > log.index[row]]
        if len(before) and len(after) and np.any(log.index[dealt] < log.index[before[-1]]):
            between = (log.index[dealt] > log.index[before[-1]]) & (log.index[dealt] < log.index[after[0]])
            if not between.any():
                return True
    return False
