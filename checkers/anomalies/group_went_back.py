"""``group-went-back``: what a group has committed, read back, is older than every commit that may be its last one.

Example: a member's commit of offset 10 of ``t-0`` is acknowledged; later the group, asked, says 7, or that it has
committed nothing. Or: the log partition is assigned to the next member, and the first record that this one reads is
that at 7. An acknowledged commit is on every in-sync replica of ``__consumer_offsets``, as a record that was sent with
acks=all is.

A commit may be the last one unless another one was acknowledged that had begun after its end, both before the question.
One without an answer may take effect at any time later, so it may always be the last one; one that was refused has
none, nor has a transaction that was aborted, or whose commit was not asked for (``aborted-commit`` says where its
offset is there all the same).

False alarms avoided: commits that overlap in time; commits whose outcome is not known; groups without an acknowledged
commit before; a first record that is later than the committed offset; a member that set its position itself. A later
commit of a lower offset is what it says, and so is what an operator set: the group then may be there.

A group forgets its offsets after ``offsets.retention.minutes`` without members (KIP-211). Where the history tells that
time (``retention_ms``), a group may have nothing so long after the newest commit that was acknowledged, and a member
may begin anywhere. Not if a member that had committed by then commits again after the answer, and was not assigned the
log partition again between the two: then it was a member all the time.

Not found: what lies between the lowest of several commits that may be the last one and the others; what is forgotten
too early of a group that kept members that committed nothing.

Findings, one an answer: key, group, offset (-1: nothing), committed (the lowest that is possible), op, commit.
Source: Kafka's design, "the last offset that has been stored securely". O(n log n), and for each answer
that may be too old the commits that may be its last one.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.group_places import group_place
from checkers.anomalies.view import CommitsView
from checkers.columns.group_answers import answers_of, forgotten
from checkers.columns.group_commits import GroupCommits, aborted_answers
from checkers.columns.group_rows import GroupRows
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads import NOTHING


class OlderOffset(Finding, kw_only=True):
    """A group that forgot a commit."""

    group: str
    offset: int
    committed: int
    op: EventPlace
    commit: EventPlace

    @override
    def words(self) -> str:
        reached = "it had committed nothing" if self.offset == NOTHING else f"it was at {self.offset}"
        return (
            f"Group {self.group} had acknowledged commits of {self.key}, and none that may have been the last one "
            f"was below {self.committed} (operation {self.commit.number} of the history). Asked later, or when its "
            f"next member began to read (operation {self.op.number}), {reached}."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.commit,
            against=self.op,
            words=("the commit that counts", "the group was here"),
        )


def find(log: Log) -> Found:
    """Answers that are older than what was committed, in order."""
    groups = log.groups
    if groups is None:
        return Found.nothing()
    of_aborted, _ = aborted_answers(groups)
    older = [answer for answer in _older(log, groups) if answer[0] not in of_aborted]
    rows = np.array([row for row, _, _ in older], dtype=np.int64)

    def describe(number: int) -> OlderOffset:
        row, of_group, commit = older[number]
        answer = group_place(log, row, named_by=of_group)
        return OlderOffset(**answer, committed=int(log.offset[commit]), commit=log.op(commit))

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def _older(log: Log, groups: GroupRows) -> list[tuple[int, int, int]]:
    """The answers that are too old: the row of each, the row that names its group, and the row of the commit."""
    commits, answers = GroupCommits(groups), answers_of(groups)
    newest = commits.newest(groups.segment[answers.of_groups], answers.asked)
    answers = answers.where((newest >= 0) & (log.offset[newest] > log.offset[answers.rows]))
    answers = answers.where(~forgotten(groups, answers))
    older = []
    for row, of_group, asked in zip(*(numbers.tolist() for numbers in answers), strict=True):
        commit = commits.possible(int(groups.segment[of_group]), asked, int(log.index[row])).lowest
        if commit >= 0 and log.offset[row] < log.offset[commit]:
            older.append((row, of_group, commit))
    return older


ANOMALY = Anomaly.documented(
    "group-went-back",
    __doc__,
    OlderOffset,
    find,
    about=About.LOG,
    title="A group forgot a commit that was acknowledged",
    rule="A commit is acknowledged once every in-sync replica of __consumer_offsets has it (KAFKA-16736).",
)
