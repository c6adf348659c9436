"""``returned-group``: a deleted group is back.

Asked, it says that it has committed an offset, though nothing was committed since it was deleted.

Example: a group commits 5 of ``t-0``; an operator deletes it, which is answered; later the group, asked, says 5. Its
tombstone in ``__consumer_offsets`` is gone, and a replica that missed it leads: as with a deleted key (`returned-key`).

A deletion counts as a commit of nothing. A commit or a deletion may be the last one unless another one was acknowledged
that had begun after its end, both before the question. One without an answer may take effect at any time later, one
that was refused has none. The group is back where only deletions may be the last one.

False alarms avoided: commits that overlap the deletion; commits and deletions whose outcome is not known; a group that
commits again after its deletion.

Not found: offsets that are back for a group to which commits of other log partitions were made since.

Findings, one an answer: key, group, offset, op, deletion. Source: a group is deleted "from the cluster"
(Admin.deleteConsumerGroups). O(n log n), and for each answer the commits that may be the last one before it.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.group_places import group_place
from checkers.anomalies.view import CommitsView
from checkers.columns.group_commits import GroupCommits
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads import NOTHING


class ReturnedGroup(Finding, kw_only=True):
    """An offset of a group that was deleted."""

    group: str
    offset: int
    op: EventPlace
    deletion: EventPlace

    @override
    def words(self) -> str:
        deleted = f"Group {self.group} was deleted (operation {self.deletion.number} of the history)"
        return (
            f"{deleted}, and committed nothing of {self.key} after that. Asked later (operation "
            f"{self.op.number}), it was at {self.offset}."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.deletion,
            against=self.op,
            words=("the group was deleted", "the group was here"),
        )


def find(log: Log) -> Found:
    """Answers of groups that were deleted and did not commit since, in order."""
    groups = log.groups
    if groups is None or not len(groups.deletions):
        return Found.nothing()
    commits = GroupCommits(groups)
    answers = groups.read_back[log.offset[groups.read_back] != NOTHING]
    answers = answers[np.isin(groups.segment[answers], groups.segment[groups.deletions])]
    back = []
    for row, asked in zip(answers.tolist(), groups.begun(answers).tolist(), strict=True):
        last = commits.possible(int(groups.segment[row]), asked, int(log.index[row])).highest
        if last >= 0 and log.offset[last] == NOTHING:
            back.append((row, last))
    rows = np.array([row for row, _ in back], dtype=np.int64)

    def describe(number: int) -> ReturnedGroup:
        row, deletion = back[number]
        return ReturnedGroup(**group_place(log, row), deletion=log.op(deletion))

    return Found(partition=log.partition[rows], describe=describe, row=rows)


ANOMALY = Anomaly.documented(
    "returned-group",
    __doc__,
    ReturnedGroup,
    find,
    about=About.LOG,
    title="A deleted group is back",
    rule="A deletion is answered once every in-sync replica of __consumer_offsets has it.",
)
