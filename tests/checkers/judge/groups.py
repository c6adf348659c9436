"""The slow judge of consumer groups, and of groups whose members write in transactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.checkers.judge.logs import only_uncommitted, value_may_go
from tests.checkers.judge.told import Operation, Sent, Told
from tests.checkers.judge.transactions import is_committed, sent_by
from workloads.operations import NOTHING, Function, Poll

Finding = tuple[object, ...]
KINDS = {Function.COMMIT, Function.RESET, Function.DELETE_GROUP}


@dataclass(eq=False)
class Commit:
    """One thing that sets what a group has committed of a log partition: a deletion sets nothing."""

    op: Operation
    log: str
    offset: int
    begin: int

    @property
    def deletion(self) -> bool:
        return self.op.event.function is Function.DELETE_GROUP


def commits_of(told: Told, group: str) -> list[Commit]:
    """All that may have set the group's offsets: what was refused, or aborted, has not."""
    commits = []
    for op in told.operations:
        if op.failed or op.detail.get("group") != group:
            continue
        if op.event.function in KINDS or (op.event.function is Function.TXN and not told.never_committed(op)):
            commits += [Commit(op, reached.partition, reached.offset, op.begin) for reached in op.reached]
    return commits


def may_be_last(commits: list[Commit], begin: int, end: int) -> list[Commit]:
    """The commits after which no other one was acknowledged that had begun after their end, before the question."""
    return [
        commit
        for commit in commits
        if commit.begin < end
        and not any(
            other.op.happened
            and commit.op.kind != "info"
            and commit.op.end is not None
            and other.begin > commit.op.end
            and other.op.end is not None
            and other.op.end < begin
            for other in commits
        )
    ]


def groups_of(told: Told) -> set[str]:
    return {op.detail["group"] for op in told.operations if op.detail.get("group") is not None}


def answers(told: Told, group: str) -> Iterator[tuple[str, int, int, int, Operation]]:
    """Answers of the group about what it has committed: log partition, offset, begin, end, operation."""
    for op in told.operations:
        if op.event.function is Function.COMMITTED and op.happened and op.detail.get("group") == group:
            for reached in op.reached:
                assert op.end is not None
                yield reached.partition, reached.offset, op.begin, op.end, op


def first_reads(told: Told, group: str) -> Iterator[tuple[str, int, int, int]]:
    """The first record that a member reads of a log partition that it was newly assigned."""
    for op in told.operations:
        if op.event.function is not Function.REBALANCE or op.detail.get("group") != group:
            continue
        process = op.event.process
        for log in op.event.partitions:
            before = [o for o in rebalances(told, process) if o.begin < op.begin]
            if before and log in before[-1].event.partitions:
                continue
            after = [o for o in rebalances(told, process) if o.begin > op.begin and log in o.event.partitions]
            seeks = [
                o
                for o in told.operations
                if o.event.function is Function.SEEK
                and o.event.process == process
                and o.begin > op.begin
                and not o.failed
                if any(reached.partition == log for reached in o.reached)
            ]
            for seen in told.reads:
                if seen.op.event.process != process or seen.log != log:
                    continue
                if seen.op.begin < op.begin:
                    continue
                until = seen.op.event.index
                if not any(o.begin < until for o in after + seeks):
                    yield log, seen.offset, op.begin, until
                break


def rebalances(told: Told, process: int) -> list[Operation]:
    return [o for o in told.operations if o.event.function is Function.REBALANCE and o.event.process == process]


def forgotten(told: Told, group: str, log: str, begin: int, end: int) -> bool:
    """The group may have forgotten its offset: it is old enough, and no member is known to have been there since."""
    times = [op.detail.get("retention_ms") for op in told.operations if op.detail.get("group") == group]
    kept_us = min((1000 * each for each in times if each is not None), default=None)
    mine = [commit for commit in commits_of(told, group) if commit.log == log]
    earlier = [c for c in mine if c.op.happened and c.op.end is not None and c.op.end < begin]
    if kept_us is None or not earlier:
        return False
    newest = max(earlier, key=lambda commit: commit.begin)
    forgets_us = newest.op.begin_us + kept_us - 1_000_000
    if told.events[end].time_us < forgets_us:
        return False
    done = [op for name, of, _, op in taken(told) if (name, of) == (group, log) and op.ended is not None]
    for who in {op.who for op in done}:
        before = [op.event.index for op in done if op.who == who and op.event.index < begin]
        before = [index for index in before if told.events[index].time_us <= forgets_us]
        after = [op.event.index for op in done if op.who == who and op.begin > end]
        dealt = [a.index for a in assignments(told) if (a.group, a.log, a.who) == (group, log, who)]
        goes_on = before and after and not any(max(before) < index < min(after) for index in dealt)
        if goes_on and min(dealt, default=begin) < max(before):
            return False
    return True


def group_went_back(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        commits = commits_of(told, group)
        asked = [(log, offset, begin, end) for log, offset, begin, end, _ in answers(told, group)]
        of_aborted = {answer[1:] for answer in aborted_commit(told) if answer[0] == group}
        asked = [answer for answer in asked if answer[:2] not in of_aborted]
        asked = [a for a in asked if a[1] != NOTHING or not forgotten(told, group, a[0], a[2], a[3])]
        begins = [b for b in first_reads(told, group) if not forgotten(told, group, b[0], b[2], b[3])]
        for log, offset, begin, end in [*asked, *begins]:
            mine = [commit for commit in commits if commit.log == log]
            acknowledged = [c for c in mine if c.op.happened and c.op.end is not None and c.op.end < begin]
            possible = may_be_last(mine, begin, end)
            if acknowledged and possible and offset < min(commit.offset for commit in possible):
                yield group, log, offset


def returned_group(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        for log, offset, begin, end, _ in answers(told, group):
            commits = commits_of(told, group)
            possible = may_be_last(commits, begin, end)
            deleted = any(c.deletion and c.op.happened and c.op.end is not None and c.op.end < begin for c in commits)
            if offset != NOTHING and deleted and all(commit.deletion for commit in possible):
                yield group, log, offset


@dataclass(eq=False)
class Assigned:
    """An assignment of a log partition to a member."""

    group: str
    log: str
    who: int
    index: int
    name: str | None
    generation: int | None
    op: Operation


def assignments(told: Told) -> list[Assigned]:
    return [
        Assigned(
            op.detail["group"], log, op.who, op.begin, op.detail.get("instance_id"), op.detail.get("generation"), op
        )
        for op in told.operations
        if op.event.function is Function.REBALANCE and "group" in op.detail
        for log in op.event.partitions
    ]


def taken(told: Told) -> list[tuple[str, str, int, Operation]]:
    """Commits that a group took of a member, and offsets that it took for a transaction."""
    return [
        (op.detail["group"], reached.partition, reached.offset, op)
        for op in told.operations
        if op.event.function in (Function.COMMIT, Function.OFFSETS) and op.happened and "group" in op.detail
        for reached in op.reached
    ]


def last_assignment(told: Told, group: str, log: str, op: Operation) -> Assigned | None:
    mine = [a for a in assignments(told) if (a.group, a.log, a.who) == (group, log, op.who) and a.index < op.begin]
    return mine[-1] if mine else None


def two_owners(told: Told) -> Iterator[Finding]:
    for group, log, offset, stale in taken(told):
        mine = last_assignment(told, group, log, stale)
        for other_group, other_log, _, other in taken(told):
            if mine is None or (other_group, other_log) != (group, log) or other.who == stale.who:
                continue
            theirs = last_assignment(told, group, log, other)
            answered = other.end is not None and other.end < stale.begin
            if theirs is not None and answered and theirs.index > mine.index:
                yield group, log, offset


def unfenced_instance(told: Told) -> Iterator[Finding]:
    for group, log, offset, stale in taken(told):
        mine = last_assignment(told, group, log, stale)
        if mine is None or mine.name is None:
            continue
        for theirs in assignments(told):
            same = (theirs.group, theirs.log, theirs.name) == (group, log, mine.name) and theirs.who != mine.who
            first = min(op.begin for op in told.operations if op.who == theirs.who and names(op, log))
            if same and first > mine.index and theirs.index < stale.begin:
                yield group, log, offset


def stale_generation(told: Told) -> Iterator[Finding]:
    for earlier in assignments(told):
        for later in assignments(told):
            if earlier.index >= later.index or (earlier.group, earlier.log) != (later.group, later.log):
                continue
            if earlier.generation is None or later.generation is None:
                continue
            if any(d.begin < later.index for d in deletions(told, later.group)):
                continue
            dealt = [a.index for a in assignments(told) if (a.group, a.log) == (later.group, later.log)]
            if any(i <= later.index and forgotten(told, later.group, later.log, i, i) for i in dealt):
                continue
            heir = earlier.name is not None and earlier.name == later.name
            same = earlier.generation == later.generation and earlier.who != later.who and not heir
            joined = min(op.begin for op in told.operations if op.who == later.who and names(op, later.log))
            fresh = earlier.who == later.who or joined > earlier.index
            if same or (later.generation < earlier.generation and fresh):
                yield later.group, later.log, later.index


def names(op: Operation, log: str) -> bool:
    """The operation is about the log partition."""
    polled = any(log in micro.records for micro in op.micro if isinstance(micro, Poll))
    return log in op.event.partitions or polled or any(reached.partition == log for reached in op.reached)


def deletions(told: Told, group: str) -> list[Operation]:
    return [
        op
        for op in told.operations
        if op.event.function is Function.DELETE_GROUP and op.detail.get("group") == group and not op.failed
    ]


def committed_up_to(told: Told, group: str, log: str) -> int:
    """The highest offset that was acknowledged to a member, or read back."""
    read_back = [offset for name, offset, _, _, _ in answers(told, group) if name == log]
    told_so = [c.offset for c in commits_of(told, group) if c.log == log and c.op.event.function is Function.COMMIT]
    told_so = [c.offset for c in commits_of(told, group) if c.log == log and is_acknowledged(c)]
    return max([*read_back, *told_so], default=NOTHING)


def is_acknowledged(commit: Commit) -> bool:
    return commit.op.happened and commit.op.event.function in (Function.COMMIT, Function.TXN)


def set_to(told: Told, group: str, log: str) -> int:
    """The highest offset to which an operator set the group, a member itself, or a group that had forgotten its own."""
    begins = [b[1] for b in first_reads(told, group) if b[0] == log and forgotten(told, group, log, b[2], b[3])]
    set_by_hand = [
        reached.offset
        for op in told.operations
        if op.event.function in (Function.RESET, Function.SEEK) and op.detail.get("group") == group
        if not op.failed
        for reached in op.reached
        if reached.partition == log
    ]
    return max([*begins, *set_by_hand], default=NOTHING)


def due_records(told: Told, group: str, log: str) -> Iterator[tuple[int, int]]:
    """Offset and value of records below what a group has committed, which a poll brought and its members had to see."""
    bound = committed_up_to(told, group, log)
    members = {op.event.process for op in told.operations if op.detail.get("group") == group}
    polls = [seen.op for seen in told.ok_reads if seen.op.event.process in members]
    committed_level = not polls or not all(op.uncommitted for op in polls)
    last: dict[int, int] = {}
    for seen in told.ok_reads:
        if seen.log == log and not (committed_level and seen.op.uncommitted):
            last[seen.value] = max(seen.offset, last.get(seen.value, 0))
    for value, offset in last.items():
        passed = set_to(told, group, log) <= offset < bound
        unseen = committed_level and only_uncommitted(told, log, value)
        if passed and not unseen and not value_may_go(told, log, value):
            yield offset, value


def processed(told: Told, group: str, log: str) -> set[int]:
    """The values that members read and then said they had processed."""
    done = set()
    for seen in told.ok_reads:
        after = [
            op
            for op in told.operations
            if op.event.function is Function.PROCESS
            and op.event.process == seen.op.event.process
            and op.detail.get("group") == group
            and op.begin > seen.op.event.index
            and any(reached.partition == log for reached in op.reached)
        ]
        if seen.log == log and after:
            for reached in after[0].reached:
                since = reached.since if reached.since is not None else 0
                if reached.partition == log and since <= seen.offset < reached.offset:
                    done.add(seen.value)
    return done


def logs_of(told: Told, group: str) -> set[str]:
    return {reached.partition for op in told.operations if op.detail.get("group") == group for reached in op.reached}


def group_skip(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        for log in logs_of(told, group):
            done = processed(told, group, log)
            for offset, value in due_records(told, group, log):
                if value not in done:
                    yield group, log, offset


def effects(told: Told, group: str, log: str, offset: int) -> list[Sent]:
    """The sends that a group's members made of the record at the offset."""
    return [
        sent
        for op in told.transactions
        if op.detail.get("group") == group
        for sent, source in zip(sent_by(told, op), op.detail.get("sources", {}).get(log, ()), strict=False)
        if source == offset
    ]


def missing_effect(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        mine = [op.detail.get("sources", {}) for op in told.transactions if op.detail.get("group") == group]
        for log in logs_of(told, group) & {log for sources in mine for log in sources}:
            for offset, _ in due_records(told, group, log):
                if not any(has_effect(told, sent) for sent in effects(told, group, log, offset)):
                    yield group, log, offset


def has_effect(told: Told, sent: Sent) -> bool:
    """Say whether the transaction was committed, or may have been."""
    if is_committed(told, sent.op):
        return True
    if told.never_committed(sent.op):
        return False
    logs = {mine.log for mine in sent_by(told, sent.op)}
    return not all(any(not final.uncommitted for final in told.finals_of(log)) for log in logs)


def doubled_effect(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        for log in logs_of(told, group) | {log for op in told.transactions for log in op.detail.get("sources", {})}:
            offsets = {
                offset
                for op in told.transactions
                if op.detail.get("group") == group
                for offset in op.detail.get("sources", {}).get(log, ())
            }
            for offset in offsets:
                visible = {
                    (sent.log, sent.value)
                    for sent in effects(told, group, log, offset)
                    if not told.aborted(sent.op) and was_read(told, sent)
                }
                if len(visible) > 1:
                    yield log, offset


def was_read(told: Told, sent: Sent) -> bool:
    """Someone read it; where its commit was not answered, someone who reads nothing else."""
    readers = [seen.op for seen in told.ok_reads if (seen.log, seen.value) == (sent.log, sent.value)]
    return any(sent.acknowledged or not reader.uncommitted for reader in readers)


def aborted_commit(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        for log, offset, _, end, _ in answers(told, group):
            handed = [
                op
                for op in told.transactions
                if op.detail.get("group") == group and op.begin < end
                if any((r.partition, r.offset) == (log, offset) for r in op.reached)
            ]
            gone = [op for op in handed if told.never_committed(op)]
            others = [c for c in commits_of(told, group) if (c.log, c.offset) == (log, offset) and c.op.begin < end]
            if offset != NOTHING and gone and not others:
                yield group, log, offset


def unstable_offset(told: Told) -> Iterator[Finding]:
    for group in groups_of(told):
        for log, offset, _, _, op in answers(told, group):
            for txn in told.transactions:
                if txn.detail.get("group") != group or not txn.happened or txn.detail.get("asked") != "commit":
                    continue
                handed, ending = txn.detail.get("handed_us"), txn.detail.get("ending_us")
                if handed is None or ending is None or op.uncommitted:
                    continue
                names = any(r.partition == log and r.offset != offset for r in txn.reached)
                if names and handed <= op.begin_us and op.event.time_us <= ending:
                    yield group, log, offset
