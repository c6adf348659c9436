"""The anomalies of consumer groups once more, in plain Python over events."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tests.checkers.brute_force import Findings, Log, sound
from workloads.operations import NOTHING, Event, EventType, Function, GroupMember, Poll, Reached

OK, FAIL, INVOKE = EventType.OK, EventType.FAIL, EventType.INVOKE
EVER = 10**9


def group_of(event: Event) -> str:
    return msgspec.json.decode(event.detail or "", type=GroupMember).group


def reached(event: Event) -> dict[str, int]:
    return {m.partition: m.offset for m in event.micro if isinstance(m, Reached)}


class Commit:
    """One commit of one log partition: ``end`` is EVER where it may still take effect."""

    def __init__(self, begun: Event, done: Event | None, key: str, offset: int) -> None:
        self.begun, self.key, self.offset, self.group = begun.index, key, offset, group_of(begun)
        self.instance, self.op = begun.instance, begun.index if done is None else done.index
        self.taken = done is not None and done.type == OK
        # The offsets of an aborted transaction are those of aborted-commit, and excuse this.
        self.refused = done is not None and done.type == FAIL and done.function is not Function.TXN
        self.end = done.index if done is not None and done.type in (OK, FAIL) else EVER


def operations(events: list[Event], function: Function) -> Iterator[tuple[Event, Event | None]]:
    for index, begun in enumerate(events):
        if begun.function == function and begun.type == INVOKE:
            rest = (e for e in events[index + 1 :] if e.process == begun.process and e.function == function)
            yield begun, next(rest, None)


def commits_of(events: list[Event], function: Function = Function.COMMIT) -> list[Commit]:
    commits = []
    for begun, done in operations(events, function):
        asked = reached(begun if done is None else done)
        commits += [Commit(begun, done, key, offset) for key, offset in asked.items()]
    return commits


def assigned_at(events: list[Event], instance: int, group: str, key: str, before: int) -> int | None:
    """The last event before ``before`` that lists the log partition for the member."""
    listing = [
        e.index
        for e in events
        if e.function == Function.REBALANCE and e.instance == instance and key in e.partitions and e.index < before
    ]
    return max(listing, default=None)


def two_owners(events: list[Event]) -> Findings:
    taken = [c for c in commits_of(events) if c.taken]
    findings = set()
    for stale in taken:
        mine = assigned_at(events, stale.instance, stale.group, stale.key, stale.begun)
        for other in taken:
            theirs = assigned_at(events, other.instance, other.group, other.key, other.begun)
            same = (other.key, other.group) == (stale.key, stale.group)
            if same and mine is not None and theirs is not None and theirs > mine and other.end < stale.begun:
                findings.add((stale.key, stale.op))
    return sorted(findings)


def unfenced_instance(events: list[Event]) -> Findings:
    findings = set()
    for commit in [*commits_of(events), *commits_of(events, Function.OFFSETS)]:
        mine = assigned_at(events, commit.instance, commit.group, commit.key, commit.begun)
        name = _static_name(events[commit.op])
        if not commit.taken or mine is None or name is None:
            continue
        for other in events[: commit.begun]:
            listed = other.function == Function.REBALANCE and commit.key in other.partitions
            if listed and other.instance != commit.instance and _static_name(other) == name:
                began = min(e.index for e in events if e.instance == other.instance and _names(e, commit.key))
                if began > mine:
                    findings.add((commit.key, commit.op, name[1]))
    return sorted(findings)


class Assigned(NamedTuple):
    """One log partition of one assignment, in a generation that is known."""

    event: Event
    key: str
    group: str
    generation: int

    @property
    def who(self) -> object:
        return _static_name(self.event) or self.event.instance


def stale_generation(events: list[Event]) -> Findings:
    assigned = [*_assigned(events)]
    findings = []
    for late in assigned:
        mine = [e for e in events if e.instance == late.event.instance and _names(e, late.key)]
        began = min(_begun(events, e) for e in mine)
        wrong = [
            (early.generation, -early.event.index)
            for early in assigned
            if early[1:3] == late[1:3] and early.event.index < late.event.index and _contradict(early, late, began)
        ]
        if wrong:
            latest, minus_first = max(wrong)
            findings.append((late.key, late.event.index, late.generation, latest, -minus_first))
    return sorted(findings)


def _contradict(early: Assigned, late: Assigned, began: int) -> bool:
    if early.generation == late.generation:
        return early.who != late.who
    knew = early.event.instance == late.event.instance or early.event.index < began
    return knew and early.generation > late.generation


def _assigned(events: list[Event]) -> Iterator[Assigned]:
    deleted = set[tuple[str, str]]()
    for event in events:
        if event.function == Function.DELETE_GROUP:
            deleted |= {(key, group_of(event)) for key in reached(event)}
        generation = _generation(event) if event.function == Function.REBALANCE else None
        for key in event.partitions if generation is not None else ():
            if (key, group_of(event)) not in deleted:
                yield Assigned(event, key, group_of(event), generation or 0)


def _generation(event: Event) -> int | None:
    return msgspec.json.decode(event.detail or "", type=GroupMember).generation


def _begun(events: list[Event], event: Event) -> int:
    """The index of the invocation that this event completes, or its own."""
    if event.type == INVOKE:
        return event.index
    for before in reversed(events[: event.index]):
        if before.process == event.process and before.function == event.function:
            return before.index if before.type == INVOKE else event.index
    return event.index


def _static_name(event: Event) -> tuple[str, str] | None:
    member = msgspec.json.decode(event.detail or "", type=GroupMember)
    return None if member.instance_id is None else (member.group, member.instance_id)


def _names(event: Event, key: str) -> bool:
    """The event says something of the log partition."""
    polled = any(key in micro.records for micro in event.micro if isinstance(micro, Poll))
    return polled or key in event.partitions or key in reached(event)


Answers = Iterator[tuple[str, str, int, int, int]]


def group_went_back(events: list[Event]) -> Findings:
    answers = [*_read_back(events), *_first_reads(events)]
    return sorted(
        (answer[0], answer[3], answer[4], min(possible))
        for answer in answers
        if (possible := _possible(events, answer)) and answer[4] < min(possible)
    )


def returned_group(events: list[Event]) -> Findings:
    answers = _read_back(events)
    return sorted((a[0], a[3], a[4]) for a in answers if set(_possible(events, a)) == {NOTHING} and a[4] != NOTHING)


def _possible(events: list[Event], answer: tuple[str, str, int, int, int]) -> list[int]:
    """The offsets that may be the last ones; none if no commit or deletion was acknowledged before the question."""
    key, group, asked, told, _ = answer
    acts = [*commits_of(events), *commits_of(events, Function.DELETE_GROUP)]
    own = [c for c in acts if (c.key, c.group) == (key, group) and c.begun < told and not c.refused]
    before = [c for c in own if c.taken and c.end < asked]
    return [c.offset for c in own if before and not any(later.begun > c.end for later in before)]


def _read_back(events: list[Event]) -> Answers:
    for begun, done in operations(events, Function.COMMITTED):
        if done is not None and done.type == OK:
            for key, offset in reached(done).items():
                yield key, group_of(begun), begun.index, done.index, offset


def _first_reads(events: list[Event]) -> Answers:
    """The first record after each assignment that does not go on from the one before, as far as is known."""
    for event in events:
        if event.function != Function.REBALANCE:
            continue
        for key in event.partitions:
            if _goes_on(events, event, key):
                continue
            for later in events[event.index + 1 :]:
                if later.instance != event.instance:
                    continue
                if later.function == Function.REBALANCE and key in later.partitions:
                    break
                if later.type != INVOKE and (read := [r.offset for k, r in sound(later) if k == key]):
                    yield key, group_of(event), event.index, later.index, read[0]
                    break


def _goes_on(events: list[Event], event: Event, key: str) -> bool:
    """The member had the log partition before, and it is not known that it lost it meanwhile."""
    before = assigned_at(events, event.instance, "", key, event.index)
    if before is None:
        return False
    return not any(
        e.function == Function.REBALANCE
        and before < e.index < event.index
        and e.instance == event.instance
        and key not in e.partitions
        and _had(events, e, key)
        for e in events
    )


def _had(events: list[Event], event: Event, key: str) -> bool:
    """The process of this event had read the log partition, or was assigned it, since it last lost it."""
    held = False
    for e in events[: event.index]:
        if e.process == event.process and e.type != INVOKE:
            if e.function in {Function.REBALANCE, Function.SUBSCRIBE}:
                held = key in e.partitions
            elif e.function == Function.POLL:
                held |= any(k == key for k, _ in sound(e))
    return held


def group_skip(events: list[Event]) -> Findings:
    log, findings = Log(events), set()
    furthest: dict[tuple[str, str], int] = {}
    for event in events:
        if event.function in {Function.COMMIT, Function.COMMITTED} and event.type == OK:
            for key, offset in reached(event).items():
                furthest[key, group_of(event)] = max(offset, furthest.get((key, group_of(event)), -1))
    groups = {(key, group_of(e)) for e in events if e.function == Function.PROCESS for key in reached(e)} | {*furthest}
    for key, group in groups:
        done = {value for k, g, value in _processed(events) if (k, g) == (key, group)}
        for k, value in log.read_ok:
            offsets = [
                r.offset
                for e in events
                if e.type == OK
                for partition, r in sound(e)
                if (partition, r.value) == (k, value)
            ]
            if k == key and value not in done and max(offsets) < furthest.get((key, group), -1):
                findings.add((key, group, value))
    return sorted(findings)


def _processed(events: list[Event]) -> Iterator[tuple[str, str, int]]:
    for event in events:
        if event.type != OK:
            continue
        for key, record in sound(event):
            for later in events[event.index + 1 :]:
                own = later.function == Function.PROCESS and later.process == event.process
                ranges = [m for m in later.micro if isinstance(m, Reached) and m.partition == key] if own else []
                if ranges:
                    if (ranges[0].since or 0) <= record.offset < ranges[0].offset:
                        yield key, group_of(later), record.value
                    break
