"""Tells whether the states of a script hold, and what is so instead where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from harness.runs.stories import steps as s
from harness.runs.stories.group_states import GroupIsEmpty, GroupState, HasCommitted, IsAssigned, IsDone
from harness.runs.stories.story_world import NoSuchRoleError, StoryWorld
from harness.runs.stories.trace import broker_words, leader_words
from workloads import NOTHING


def all_hold(states: Iterable[s.State], world: StoryWorld) -> bool:
    """True if each of the states holds now.

    Raises:
        StepError: one speaks of a record that was not sent.
    """
    return all(holds(state, world) for state in states)


def holds(state: s.State, world: StoryWorld) -> bool:
    """True if ``state`` holds now; one about a role that no broker has does not hold yet.

    Raises:
        StepError: it speaks of a record that was not sent.
    """
    try:
        return _kind_of(state).holds(state, world)
    except NoSuchRoleError:
        return False


def instead(state: s.State, world: StoryWorld) -> str:
    """The facts of the cluster while ``state`` does not hold, in words."""
    try:
        return _kind_of(state).instead(state, world)
    except NoSuchRoleError as error:
        return str(error)


# --- of replication --------------------------------------------------------------------------------------------------


def _holds_of_replication(state: s.ReplicationState, world: StoryWorld) -> bool:
    match state:
        case s.Leads(broker):
            answer = world.leads(world.node(broker))
        case s.SomebodyLeads():
            answer = world.leads(world.view.leader)
        case s.NobodyLeads():
            answer = world.view.leader is None
        case s.LeaderEpochIs(epoch):
            answer = world.view.leader_epoch == epoch
        case s.ElectionsPrefer(brokers):
            answer = world.view.replicas == tuple(map(world.node, brokers))
        case s.IsFenced(broker, expected):
            answer = (world.node(broker) in world.fenced()) == expected
        case s.InIsr(broker, expected):
            answer = (world.node(broker) in world.view.isr) == expected
        case s.IsrIs(brokers):
            answer = world.is_isr(set(map(world.node, brokers)))
        case s.AllInSync():
            answer = world.all_in_sync(world.view.replicas)
    return answer


def _instead_of_replication(state: s.ReplicationState, world: StoryWorld) -> str:
    if isinstance(state, s.Leads | s.IsFenced | s.InIsr):
        world.node(state.broker)
    match state:
        case s.Leads() | s.SomebodyLeads() | s.NobodyLeads():
            return _leader_in_words(world)
        case s.LeaderEpochIs():
            return f"the leader epoch is {world.view.leader_epoch}"
        case s.ElectionsPrefer():
            return f"elections prefer {broker_words(world.view.replicas)}"
        case s.IsFenced():
            return f"fenced: {broker_words(world.fenced(), 'no broker')}"
        case s.InIsr() | s.IsrIs() | s.AllInSync():
            ends = ", ".join(f"{replica.node}: {replica.log_end}" for replica in world.replicas() if replica.running)
            more = f"; log ends {ends}" if isinstance(state, s.AllInSync) else ""
            return f"isr is {broker_words(world.view.isr, 'no broker')}, and {_leader_in_words(world)}{more}"


def _leader_in_words(world: StoryWorld) -> str:
    leader = world.view.leader
    if leader is None or world.leads(leader):
        return leader_words(leader)
    return f"the controller names {leader} as leader, but {leader} does not act as one"


# --- of single records -----------------------------------------------------------------------------------------------


def _holds_of_records(state: s.RecordState, world: StoryWorld) -> bool:
    record = world.record(state.record)
    match state:
        case s.Has(broker, name, expected):
            return (world.offset_of(name, world.node(broker)) is not None) == expected
        case s.Covers(broker, name, expected):
            node = world.node(broker)
            return _covers(world, world.replica(node).known_high_watermark, node, name) == expected
        case s.Answered(_, acknowledged):
            return record.acknowledged if acknowledged else record.answered
        case s.Refused(_, error):
            return record.answered and not record.acknowledged and error in {None, record.end().error}


def _instead_of_records(state: s.RecordState, world: StoryWorld) -> str:
    match state:
        case s.Has(broker, _, _):
            node = world.node(broker)
            on_it = [name for name in world.names.values() if world.offset_of(name, node) is not None]
            return f"broker {node} has {' '.join(on_it) or 'nothing'}"
        case s.Covers(broker, record, _):
            node = world.node(broker)
            mark, offset = world.replica(node).known_high_watermark, world.offset_of(record, node)
            return f"the high watermark is {mark}, and {_placed(record, offset)}"
        case s.Answered(record, _):
            return "it has an error for an answer" if world.record(record).answered else "it has no answer"
        case s.Refused(record, _):
            end = world.record(record).end()
            return f"it is {end.outcome}{f' ({end.error})' if end.error else ''}"


def _covers(world: StoryWorld, mark: int | None, node: int, record: s.Record) -> bool:
    """True if a broker's log has the record below this mark."""
    offset = world.offset_of(record, node)
    return offset is not None and mark is not None and mark > offset


def _placed(record: s.Record, offset: int | None) -> str:
    return f"it lacks {record}" if offset is None else f"{record} is at offset {offset}"


# --- of transactions and groups --------------------------------------------------------------------------------------


def _holds_of_transactions(state: s.TransactionState, world: StoryWorld) -> bool:
    match state:
        case s.IsReady(producer):
            return world.transactions.instance(producer).ready
        case s.TransactionEnded(transaction, how):
            return world.transactions.transaction(transaction).end is how
        case s.Coordinates(broker, alone):
            node = world.node(broker)
            return world.coordinator == node and (not alone or world.isr_of_coordinator == (node,))
        case s.Stable(broker, record, expected):
            node = world.node(broker)
            replica = world.replica(node)
            # Where the end of the log on disk is known to be stable, what is below need not be replicated yet.
            marks = (replica.last_stable_offset, *((replica.known_high_watermark,) if expected else ()))
            return all(_covers(world, mark, node, record) for mark in marks) == expected


def _instead_of_transactions(state: s.TransactionState, world: StoryWorld) -> str:
    match state:
        case s.IsReady(producer):
            return world.transactions.instance(producer).in_words
        case s.TransactionEnded(transaction, _):
            return world.transactions.transaction(transaction).in_words
        case s.Coordinates(_, alone):
            isr = f", and the isr of its log is {broker_words(world.isr_of_coordinator)}" if alone else ""
            return f"{'no broker' if world.coordinator is None else world.coordinator} coordinates{isr}"
        case s.Stable(broker, record, _):
            node = world.node(broker)
            mark, offset = world.replica(node).last_stable_offset, world.offset_of(record, node)
            return f"the last stable offset is {mark}, and {_placed(record, offset)}"


def _holds_of_groups(state: GroupState, world: StoryWorld) -> bool:
    if isinstance(state, GroupIsEmpty):
        return world.group_is_empty is True
    member = world.members.member(state.member)
    match state:
        case IsAssigned(_, expected):
            return member.assigned == expected
        case IsDone():
            return not member.busy
        case HasCommitted(_, record):
            behind = world.next_offset(record)
            return behind is not None and member.committed.get(world.partition, NOTHING) >= behind


def _instead_of_groups(state: GroupState, world: StoryWorld) -> str:
    if isinstance(state, GroupIsEmpty):
        return "no coordinator knows the group" if world.group_is_empty is None else "it has members"
    member = world.members.member(state.member)
    match state:
        case IsAssigned():
            return "it is assigned the log partition" if member.assigned else "it is assigned nothing"
        case IsDone():
            return "it stops halfway" if member.halfway else "it waits for an answer"
        case HasCommitted():
            return f"its commits were taken up to {member.committed.get(world.partition, 'nothing')}"


class _Kind(NamedTuple):
    """A kind of states: which they are, whether one of them holds, and what is so instead."""

    states: Any
    holds: Callable[[Any, StoryWorld], bool]
    instead: Callable[[Any, StoryWorld], str]


_KINDS: Final = (
    _Kind(s.ReplicationState, _holds_of_replication, _instead_of_replication),
    _Kind(s.RecordState, _holds_of_records, _instead_of_records),
    _Kind(s.TransactionState, _holds_of_transactions, _instead_of_transactions),
    _Kind(GroupState, _holds_of_groups, _instead_of_groups),
)


def _kind_of(state: s.State) -> _Kind:
    return next(kind for kind in _KINDS if isinstance(state, kind.states))
