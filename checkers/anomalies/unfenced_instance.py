"""``unfenced-instance``: a group took a commit of a static member whose name another instance had taken over.

Example: A, whose group.instance.id is ``m``, is assigned ``t-0``, and freezes. B starts with the same name, and is
assigned ``t-0``. After that A begins a commit of ``t-0``, and the group acknowledges it. Kafka fences A
(FENCED_INSTANCE_ID) as soon as B has joined, before B has committed anything; with KIP-848 it refuses B as long as A
is a member (UNRELEASED_INSTANCE_ID), so that B is assigned nothing.

B has taken over where its first event came after A's last assignment of the log partition, and B was assigned this,
too, before A's commit began. So which of them was in charge later does not depend on when a client heard of it.
Offsets that A hands over to a transaction count as a commit.

False alarms avoided: commits that began before B was assigned anything; a member that got the log partition back after
that; members of other groups with the same name; instances that ran side by side from the begin.

Not found: an instance that goes on with a log partition that B was not assigned; a static member that came back within
session.timeout.ms, and cost a rebalance all the same.

Findings, one a commit: key, group, offset, op, instance-id, successor (the assignment of the other instance).
Source: KIP-345. O(n log n) in the rows of groups.
"""

from __future__ import annotations

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.group_places import group_place
from checkers.anomalies.view import CommitsView
from checkers.columns.group_rows import running_max
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace


class UnfencedCommit(Finding, kw_only=True):
    """A commit of a static member whose name had gone to another instance."""

    group: str
    offset: int
    op: EventPlace
    instance_id: str = msgspec.field(name="instance-id")
    successor: EventPlace

    @override
    def words(self) -> str:
        return (
            f"Another instance of the static member {self.instance_id} of group {self.group} had started and was "
            f"assigned {self.key} (operation {self.successor.number} of the history). After that the instance "
            f"before it began a commit of offset {self.offset}, and the group took it (operation "
            f"{self.op.number})."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.successor,
            against=self.op,
            words=("another instance began", "taken from the instance before"),
        )


def find(log: Log) -> Found:
    """Commits taken from instances whose name had gone to another one, in order."""
    groups, static = log.groups, log.static
    if groups is None or static is None:
        return Found.nothing()
    assigned = groups.assigned[static[groups.assigned] >= 0]
    commits = groups.taken[static[groups.taken] >= 0]
    position = groups.latest(assigned, commits, groups.begun(commits), groups.member)
    commits, position = commits[position >= 0], position[position >= 0]
    since = log.index[groups.ordered(assigned, groups.member)[position]]
    name = groups.segment * len(log.static_names) + static
    assigned = groups.ordered(assigned, name)
    newest = running_max(groups.member_began[groups.member[assigned]], name[assigned])
    before = groups.latest(assigned, commits, groups.begun(commits), name)
    late = (before >= 0) & (newest[before] > since)
    rows, before = commits[late], before[late]

    def describe(number: int) -> UnfencedCommit:
        row, last = int(rows[number]), int(before[number])
        mine = np.flatnonzero((name[assigned[: last + 1]] == name[row]) & (newest[: last + 1] == newest[last]))
        _, instance_id = log.static_names[int(static[row])]
        successor = log.op(int(assigned[mine[0]]))
        return UnfencedCommit(**group_place(log, row), instance_id=instance_id, successor=successor)

    return Found(partition=log.partition[rows], describe=describe, row=rows)


ANOMALY = Anomaly.documented(
    "unfenced-instance",
    __doc__,
    UnfencedCommit,
    find,
    about=About.LOG,
    title="A group took a commit of a static member whose name another instance had",
    rule="A static member fences the instance that had its name before (KIP-345).",
)
