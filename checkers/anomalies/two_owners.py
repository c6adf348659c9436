"""``two-owners``: a group took a commit of a member that had lost the log partition to another one.

Example: A is assigned ``t-0``, then B is; B's commit of ``t-0`` is acknowledged; after that A, which never heard of it,
begins a commit of ``t-0``, and the group acknowledges this, too. Kafka fences a member that was given up: its
generation, member epoch or name is no longer valid (KIP-429, KIP-848, KIP-345).

A member's assignment counts from its last REBALANCE that lists the log partition. The commit that is accused began
after the successor's had been answered, so commits under way while partitions change hands are not accused. Neither is
work: that a member goes on processing what it had polled is a duplicate, which at-least-once permits.

Offsets that a member hands over to a transaction count as a commit, from the call to its answer, whatever becomes of
the transaction (KIP-447).

False alarms avoided: commits without an answer; clients that were assigned nothing by a group; a member that got the
log partition back.

Not found: a stale commit before the successor's first one. It has no effect that lasts.

Findings, one a commit: key, group, offset, op (the stale commit), successor (a commit of the later assignment).
Source: FENCED_MEMBER_EPOCH and ILLEGAL_GENERATION in Kafka's ``Errors.java``. O(n log n) in the rows of groups.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.group_places import group_place
from checkers.anomalies.view import CommitsView
from checkers.columns.group_rows import running_max
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace


class StaleCommit(Finding, kw_only=True):
    """A commit of a member whose successor had committed."""

    group: str
    offset: int
    op: EventPlace
    successor: EventPlace

    @override
    def words(self) -> str:
        return (
            f"A successor had {self.key} and had committed in group {self.group} (operation "
            f"{self.successor.number} of the history). After that the member before it began a commit of offset "
            f"{self.offset}, and the group took it (operation {self.op.number})."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.successor,
            against=self.op,
            words=("the commit that counts", "taken from the member before"),
        )


def find(log: Log) -> Found:
    """Commits taken from members that were superseded, in order."""
    groups = log.groups
    if groups is None or not len(groups.taken):
        return Found.nothing()
    commits, index = groups.taken, log.index
    assigned = groups.ordered(groups.assigned, groups.member)
    position = groups.latest(groups.assigned, commits, groups.begun(commits), groups.member)
    owned = position >= 0
    commits, since = commits[owned], index[assigned[position[owned]]]
    segment = groups.segment[commits]
    newest = running_max(since, segment)
    # The last commit in the segment that was answered before this one began.
    before = np.searchsorted(groups.packed(commits), groups.packed(commits, groups.begun(commits))) - 1
    valid = before >= 0
    valid[valid] &= segment[before[valid]] == segment[valid]
    stale = np.flatnonzero(valid)[newest[before[valid]] > since[valid]]
    rows = commits[stale]

    def describe(number: int) -> StaleCommit:
        row, last = int(rows[number]), int(before[stale[number]])
        successor = _first_with(since, int(newest[last]), segment, int(segment[last]))
        return StaleCommit(**group_place(log, row), successor=log.op(int(commits[successor])))

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def _first_with(since: Numbers, wanted: int, segment: Numbers, of: int) -> int:
    """The first commit of the assignment that began at event ``wanted``."""
    return int(np.flatnonzero((segment == of) & (since == wanted))[0])


ANOMALY = Anomaly.documented(
    "two-owners",
    __doc__,
    StaleCommit,
    find,
    about=About.READERS,
    title="A group took a commit of a member that it had given up",
    rule="The group's coordinator refuses commits of a member that was given up (KIP-345, KIP-429, KIP-848).",
)
