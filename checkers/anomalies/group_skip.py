"""``group-skip``: a group has committed past a record that none of its members processed.

Example: a member reads ``a@0 b@1`` and processes both; another one reads and processes ``d@3``; the group commits 4 of
``t-0``, and some client read ``c@2``. A member that processes before it commits never leaves a record behind: when it
loses the log partition, the next one begins at the last commit ("at least once by default", Kafka's design).

A record counts as processed if a member read it in a poll, and its next PROCESS of the log partition covers the offset.
The group has committed what was acknowledged to a member, or read back.

False alarms avoided: records that no poll brought (they may be lost, which ``lost-write`` says), or, for a group of
readers of committed records, none of such a reader, or of an aborted transaction; a record that is in the log twice,
where it counts where it is last, and was processed once; records behind the last commit; records before an offset to
which an operator set the group, or a member itself, for they may have meant to pass over them; records before the
first one of a member for which the group may have forgotten its offset (as for ``group-went-back``); records that a
cleaner or their age may have removed before the group came.

Permitted where members commit before they process, or begin at the end where the group has no offset.

Findings, one a record: key, group, value, offset, committed. O(n log n).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.view import CommitsView
from checkers.columns.group_answers import first_reads, forgotten
from checkers.columns.group_rows import GroupRows
from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.words import written
from workloads.history import NONE, OK


class SkippedRecord(Finding, kw_only=True):
    """A record that a group passed over."""

    group: str
    value: Any
    offset: int
    committed: int

    @override
    def words(self) -> str:
        skipped = f"{written(self.value).capitalize()} at offset {self.offset} of {self.key} was read"
        return (
            f"{skipped}, but no member of group {self.group} processed it, and the group has committed "
            f"{self.committed}: its next member begins behind it."
        )

    @override
    def view(self) -> CommitsView:
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.committed,
            against=None,
            words=("the group committed past it", "read, and processed by no member"),
        )


class Passed(NamedTuple):
    """Records that a group has committed past and had to see; int64. ``commit`` is the row of its furthest commit."""

    segment: Numbers
    value: Numbers
    offset: Numbers
    commit: Numbers

    def where(self, which: Flags) -> Passed:
        """The records that ``which`` marks."""
        return Passed(self.segment[which], self.value[which], self.offset[which], self.commit[which])


def find(log: Log) -> Found:
    """Records that were passed over, by log partition and value."""
    groups = log.groups
    if groups is None:
        return Found.nothing()
    passed = passed_records(log, groups)
    rows, of = groups.processed_reads
    span = len(log.values) + 1
    done = np.isin(passed.segment * span + passed.value, of * span + log.value_id[rows])
    skipped = passed.where(~done)

    def describe(number: int) -> SkippedRecord:
        row, value = int(skipped.commit[number]), int(skipped.value[number])
        return SkippedRecord(
            key=log.key(row),
            group=log.group_of(row),
            value=int(log.values.number[value]),
            offset=int(skipped.offset[number]),
            committed=int(log.offset[row]),
        )

    return Found(partition=log.partition[skipped.commit], describe=describe, row=skipped.commit)


def passed_records(log: Log, groups: GroupRows) -> Passed:
    """Records below the furthest commit of each group, and not below an offset to which it was set."""
    commit_of, set_to = _furthest_commits(log, groups), _set_to(log, groups)
    segment, value = _all_pairs(log, groups)
    committed = ~groups.uncommitted[segment]
    offset = np.where(committed, _largest_offset(log, log.committed_reads)[value], _largest_offset(log)[value])
    bound = np.where(commit_of >= 0, log.offset[commit_of], NONE)
    due = (offset != NONE) & (offset < bound[segment]) & (offset >= set_to[segment])
    due &= ~log.removable[value] & ~(committed & log.aborted[value])
    return Passed(segment, value, offset, commit_of[segment]).where(due)


def _furthest_commits(log: Log, groups: GroupRows) -> Numbers:
    """``int64[segment]``: the row of the furthest commit that the group has, -1 for none."""
    rows = np.concatenate([groups.acknowledged, groups.read_back])
    rows = rows[np.argsort(log.offset[rows], kind="stable")]
    furthest = np.full(groups.segments, NONE, dtype=np.int64)
    furthest[groups.segment[rows]] = rows
    return furthest


def _set_to(log: Log, groups: GroupRows) -> Numbers:
    """``int64[segment]``: the largest offset to which an operator set the group, or a member itself, -1 without any.

    Or at which a member began for which the group may have forgotten where it was.
    """
    rows = np.concatenate([groups.resets, groups.seeks])
    largest = np.full(groups.segments, NONE, dtype=np.int64)
    np.maximum.at(largest, groups.segment[rows], log.offset[rows])
    if groups.retention_us is not None:
        begins = first_reads(groups)
        begins = begins.where(forgotten(groups, begins))
        np.maximum.at(largest, groups.segment[begins.of_groups], log.offset[begins.rows])
    return largest


def _largest_offset(log: Log, reads: Numbers | None = None) -> Numbers:
    """``int64[value]``: the largest offset at which an ok poll, or one of these rows, read it, -1 for none."""
    rows = log.all_reads[log.type[log.all_reads] == OK] if reads is None else reads
    largest = np.full(len(log.values), NONE, dtype=np.int64)
    np.maximum.at(largest, log.value_id[rows], log.offset[rows])
    return largest


def _all_pairs(log: Log, groups: GroupRows) -> tuple[Numbers, Numbers]:
    """Pairs of a segment and a value of its log partition."""
    first = np.searchsorted(log.values.partition, np.arange(log.partition_count + 1))
    sizes = np.diff(first)[groups.segment_partition]
    base = np.cumsum(sizes) - sizes
    segment = np.repeat(np.arange(groups.segments), sizes)
    value = np.arange(int(sizes.sum())) - np.repeat(base, sizes) + np.repeat(first[groups.segment_partition], sizes)
    return segment, value


ANOMALY = Anomaly.documented(
    "group-skip",
    __doc__,
    SkippedRecord,
    find,
    about=About.READERS,
    title="A group committed past a record that no member processed",
    rule="A member processes before it commits, and its successor begins at the last commit: at least once.",
)
