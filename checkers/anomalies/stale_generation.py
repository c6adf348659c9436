"""``stale-generation``: a group assigned a log partition in a generation that was another member's, or that was over.

Example: A is assigned ``t-0`` in generation 7; B subscribes after that, and is assigned ``t-0`` in generation 7, or in
generation 5. A group's generation, and a member's epoch (KIP-848), only go up; the coordinator keeps them in
``__consumer_offsets``, so they outlive it. A log partition has one owner in each.

Two assignments of the log partition contradict each other where they are of one generation and of two members, or where
the later one has the lower generation: of the same member, or of one whose first event about the log partition came
after the first was recorded.

False alarms avoided: clients that do not tell the generation; members that hear late of what is over; an instance of a
static member that takes its name over (KIP-345), which gets the same log partitions in the same generation; anything
after a deletion of the group, or an assignment before which it may have forgotten its offsets (as for
``group-went-back``): it begins again. A classic group that has committed nothing may be removed and begin
again, too; a workload's groups commit.

Not found: a generation that went back and was passed again before anyone was assigned anything.

Findings, one an assignment: key, group, generation, op, earlier (the other assignment), earlier-generation.
Source: KIP-848, Kafka's group coordinator. O(n log n) in the rows of groups.
"""

from __future__ import annotations

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.group_answers import Answers, forgotten
from checkers.columns.group_rows import GroupRows, running_max
from checkers.columns.ids import Flags, Numbers, dense_ids, smallest_of, stable_order
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads.history import FAIL, NONE


class StaleGeneration(Finding, kw_only=True):
    """An assignment whose generation is not later than one that it follows."""

    group: str
    generation: int
    op: EventPlace
    earlier: EventPlace
    earlier_generation: int = msgspec.field(name="earlier-generation")

    @override
    def words(self) -> str:
        first = (
            f"A member of group {self.group} was assigned {self.key} in generation {self.earlier_generation} "
            f"(operation {self.earlier.number} of the history)."
        )
        if self.generation == self.earlier_generation:
            return f"{first} Another one was assigned it in the same generation (operation {self.op.number})."
        return f"{first} After that it was assigned in generation {self.generation} (operation {self.op.number})."


def find(log: Log) -> Found:
    """Assignments of a generation that was another member's, or that was over, in order."""
    groups, generation = log.groups, log.generation
    if groups is None or generation is None:
        return Found.nothing()
    assigned = _assigned(groups, generation)
    if not len(assigned):
        return Found.nothing()
    began = groups.member_began[groups.member[assigned]]
    newest = np.maximum(
        _before_it_joined(groups, generation, assigned, began), _of_itself(groups, generation, assigned)
    )
    shared = _shared(groups, generation, assigned)
    back = newest > generation[assigned]
    places = np.flatnonzero(back | (shared >= 0))

    def describe(number: int) -> StaleGeneration:
        assignment = int(places[number])
        row = int(assigned[assignment])
        earlier = int(shared[assignment])
        if back[assignment]:
            before = groups.segment[assigned] == groups.segment[row]
            before &= generation[assigned] == newest[assignment]
            of_itself = (groups.instance[assigned] == groups.instance[row]) & (log.index[assigned] < log.index[row])
            before &= of_itself | (log.index[assigned] < began[assignment])
            earlier = int(assigned[np.flatnonzero(before)[0]])
        return StaleGeneration(
            key=log.key(row),
            group=log.group_of(row),
            generation=int(generation[row]),
            op=log.op(row),
            earlier=log.op(earlier),
            earlier_generation=int(generation[earlier]),
        )

    rows = assigned[places]
    return Found(partition=log.partition[rows], describe=describe, row=rows)


def _assigned(groups: GroupRows, generation: Numbers) -> Numbers:
    """Rows of assignments whose generation is known, before any deletion of the group, and before it is forgotten."""
    rows: Numbers = groups.assigned[generation[groups.assigned] != NONE]
    deletions = groups.deletions[groups.log.type[groups.deletions] != FAIL]
    gone = rows[forgotten(groups, Answers(rows, rows, groups.log.index[rows]))]
    ended = np.full(groups.segments, groups.span)
    np.minimum.at(ended, groups.segment[deletions], groups.begun(deletions))
    np.minimum.at(ended, groups.segment[gone], groups.log.index[gone])
    before: Numbers = rows[groups.log.index[rows] < ended[groups.segment[rows]]]
    return before


def _before_it_joined(groups: GroupRows, generation: Numbers, assigned: Numbers, began: Numbers) -> Numbers:
    """For each assignment the latest generation of the segment that was recorded before its member began, or -1."""
    newest = running_max(generation[assigned], groups.segment[assigned])
    last = groups.latest(assigned, assigned, began, groups.segment)
    return np.where(last >= 0, newest[last], NONE)


def _of_itself(groups: GroupRows, generation: Numbers, assigned: Numbers) -> Numbers:
    """For each assignment the latest generation of those of the same member before it, or -1."""
    member = dense_ids(groups.segment[assigned], groups.instance[assigned], groups.segments).of
    order = stable_order(member)
    newest = running_max(generation[assigned[order]], member[order])
    same: Flags = member[order[1:]] == member[order[:-1]]
    before = np.full(len(assigned), NONE, dtype=np.int64)
    before[order[1:][same]] = newest[:-1][same]
    return before


def _shared(groups: GroupRows, generation: Numbers, assigned: Numbers) -> Numbers:
    """For each assignment the row of the first one before it in the same generation of another member, or -1."""
    log = groups.log
    member = groups.instance[assigned]
    if log.static is not None:
        name = log.static[assigned]
        member = np.where(name >= 0, int(member.max()) + 1 + name, member)
    same = dense_ids(groups.segment[assigned], generation[assigned], groups.segments).of
    places = np.arange(len(assigned))
    first = smallest_of(same, places)[same]
    differs = member != member[first]
    second = smallest_of(same, np.where(differs, places, len(assigned)))[same]
    earlier = np.where(differs, first, np.where(second < places, second, NONE))
    return np.where(earlier >= 0, assigned[np.maximum(earlier, 0)], NONE)


ANOMALY = Anomaly.documented(
    "stale-generation",
    __doc__,
    StaleGeneration,
    find,
    about=About.LOG,
    title="A group assigned in a generation that was over, or another member's",
    rule="A group's generations only go up, and a log partition has one owner in each (KIP-848).",
)
