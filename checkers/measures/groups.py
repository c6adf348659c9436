"""Counts of what consumer groups did, and whether rebalances put their commits to the test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from checkers.columns.group_rows import GroupRows, running_max
from checkers.columns.ids import Flags, Numbers, dense_ids
from checkers.columns.log import Log
from checkers.columns.phases import HEALED, RunMarks
from checkers.measures.measure import Measure
from workloads.history import INVOKE, NONE, OK


class GroupCounts(Measure, omit_defaults=True):
    """Counts of one history, or of some of its log partitions. None where no group read.

    Attributes:
        commits_acknowledged, commits_unanswered: log partitions in commits that the group took, and in all others.
        assignments: log partitions that members were assigned.
        processed, processed_again: records that members processed, and how many of these not for the first time.
        rebalanced_over_commits: assignments to another member than before while a commit was due or under way: the
            members had processed something else than the group had committed, by its acknowledgements and by what was
            read back. A commit that a library makes by itself and does not tell counts once it is read back.
        unfinished: log partitions whose end, as final readers name it, the group had not committed when it was asked
            last.
        unassigned: those of them that no member was assigned once everything was healed.
    """

    commits_acknowledged: int | None = None
    commits_unanswered: int | None = None
    assignments: int | None = None
    processed: int | None = None
    processed_again: int | None = None
    rebalanced_over_commits: int | None = None
    unfinished: int | None = None
    unassigned: int | None = None

    @classmethod
    @override
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[GroupCounts]:
        return _groups(log, phases)

    @override
    def add(self, other: Measure) -> None:
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None:
                setattr(self, name, theirs + (mine or 0))


def _groups(log: Log, phases: Sequence[RunMarks]) -> list[GroupCounts]:
    """O(n log n) in the rows of groups."""
    groups, histories = log.groups, len(phases)
    if groups is None:
        return [GroupCounts() for _ in range(histories)]
    rows, segment = groups.processed_reads
    pairs = dense_ids(segment, log.value_id[rows], groups.segments)
    first = np.empty(len(pairs), dtype=np.int64)
    first[pairs.of[::-1]] = np.arange(len(rows))[::-1]
    counted = {
        "commits_acknowledged": groups.acknowledged,
        "commits_unanswered": groups.commits[log.type[groups.commits] != OK],
        "assignments": groups.assigned,
        "processed": rows,
        "processed_again": rows[first[pairs.of] != np.arange(len(rows))],
        "rebalanced_over_commits": _over_commits(log, groups),
    }
    owner = {
        name: np.bincount(log.partition_history[log.partition[mine]], minlength=histories)
        for name, mine in counted.items()
    }
    unfinished = _unfinished(log, groups)
    for name, segments in (("unfinished", unfinished), ("unassigned", unfinished & _unassigned(log, groups, phases))):
        owner[name] = np.bincount(log.partition_history[groups.segment_partition[segments]], minlength=histories)
    grouped = np.bincount(log.partition_history[groups.segment_partition], minlength=histories) > 0
    return [
        GroupCounts(**{name: int(counts[history]) for name, counts in owner.items()})
        if grouped[history]
        else GroupCounts()
        for history in range(histories)
    ]


def _unfinished(log: Log, groups: GroupRows) -> Flags:
    """``bool[segment]``: the group had not committed the log end offset when it was asked last."""
    told = np.full(groups.segments, NONE, dtype=np.int64)
    told[groups.segment[groups.read_back]] = log.offset[groups.read_back]
    unfinished: Flags = told < log.drained_end[groups.segment_partition]
    return unfinished


def _unassigned(log: Log, groups: GroupRows, phases: Sequence[RunMarks]) -> Flags:
    """``bool[segment]``: no member was assigned it after healing; false where nothing says when."""
    healed = [of_history.phase_us(HEALED) for of_history in phases]
    healed_us = np.array([NONE if time_us is None else time_us for time_us in healed], dtype=np.int64)
    unassigned: Flags = healed_us[log.partition_history[groups.segment_partition]] != NONE
    late = groups.assigned[
        log.time_us[groups.assigned] > healed_us[log.partition_history[log.partition[groups.assigned]]]
    ]
    unassigned[groups.segment[late]] = False
    return unassigned


def _over_commits(log: Log, groups: GroupRows) -> Numbers:
    """Rows of assignments to another member than before, over something that was processed and not committed."""
    rows = groups.assigned
    changed = np.zeros(len(rows), dtype=bool)
    same_segment = groups.segment[rows[1:]] == groups.segment[rows[:-1]]
    changed[1:] = same_segment & (log.instance[rows[1:]] != log.instance[rows[:-1]])
    told = groups.joined(groups.acknowledged, groups.read_back)
    processed, committed = (_reached(log, groups, of, rows) for of in (groups.processed, told))
    due: Flags = (processed != committed) | (_open(log, groups, rows) > 0)
    over: Numbers = rows[changed & due]
    return over


def _reached(log: Log, groups: GroupRows, of: Numbers, rows: Numbers) -> Numbers:
    """The largest offset in the rows ``of`` of the same segment before each of ``rows``, -1 for none (int64)."""
    largest = running_max(log.offset[of], groups.segment[of])
    last = _before(groups, of, rows) - 1
    sound = last >= 0
    sound[sound] &= groups.segment[of[last[sound]]] == groups.segment[rows[sound]]
    reached = np.full(len(rows), NONE, dtype=np.int64)
    reached[sound] = largest[last[sound]]
    return reached


def _open(log: Log, groups: GroupRows, rows: Numbers) -> Numbers:
    """Commits of the same segment under way at each of ``rows`` (int64)."""
    commits = groups.commits
    begun = np.sort(groups.packed(commits, groups.begun(commits)))
    answered = commits[log.type[commits] != INVOKE]
    return np.searchsorted(begun, groups.packed(rows)) - _before(groups, answered, rows)


def _before(groups: GroupRows, of: Numbers, rows: Numbers) -> Numbers:
    """The number of the ascending rows ``of`` that are before each of ``rows``, those of earlier segments included."""
    return np.searchsorted(groups.packed(of), groups.packed(rows))
