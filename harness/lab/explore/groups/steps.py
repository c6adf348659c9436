"""Steps of a scope of groups in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.broker.core import messages
from harness.broker.core.messages import JOINS, Message
from harness.broker.core.types import NONE, ErrorCode
from harness.lab.explore.coordinator_node import COORDINATOR
from harness.lab.explore.groups.coordinators import GroupCopy
from harness.lab.explore.groups.members import MemberNode
from harness.lab.explore.groups.space import GroupSpace
from harness.lab.explore.searched import Action, State
from nemesis.cluster import CLIENTS


def group_text_of(space: GroupSpace, action: Action) -> str:
    """One step in a sentence."""
    kind, node = action.kind, action.broker
    if kind in {"deliver", "late"}:
        late = " late, after its sender has given it up" * (kind == "late")
        return f"{_described(space.nodes.messages[action.number])} arrives{late}"
    if node == COORDINATOR:
        return {
            "fetch": "the follower of the coordinator's log fetches",
            "look": "the coordinator looks at what is due",
            "fence": f"the coordinator gives m{action.peer} up, as silent for a session",
            "move": "the follower becomes the coordinator",
        }[kind]
    member = f"m{node - CLIENTS}"
    return {
        "join": f"{member} joins",
        "beat": f"{member} sends a heartbeat",
        "sync": f"{member} asks for its assignment",
        "place": f"{member} asks where the group is in partition {action.peer}",
        "process": f"{member} processes the next record of partition {action.peer}",
        "commit": f"{member} commits its position in partition {action.peer}",
        "again": f"{member} asks again, since no answer came",
    }[kind]


def group_columns_of(space: GroupSpace, state: State) -> tuple[str, ...]:
    """The coordinator and the members of a state."""
    coordinator: GroupCopy = space.nodes.coordinators[state[0]]
    return (_coordinator(coordinator), *map(_member, space.members_in(state)))


def _coordinator(copy: GroupCopy) -> str:
    if copy.generation != NONE:
        names = " ".join(copy.names) or "no member"
        return f"coordinator {copy.leader_epoch}: generation {copy.generation} {names}, offsets {list(copy.remembered)}"
    members = {} if copy.record is None else copy.record.members
    parts = [f"{name} {sorted(each.partition for each in member.held)}" for name, member in members.items()]
    return f"coordinator {copy.leader_epoch}: {' '.join(parts) or 'no member'}, offsets {list(copy.remembered)}"


def _member(member: MemberNode) -> str:
    if member.epoch == JOINS:
        return f"m{member.number}: not in the group"
    places = [f"{position.partition}@{position.offset}" for position in member.places]
    return f"m{member.number} in {member.epoch}: {' '.join(places) or 'no place'}"


def _described(message: Message) -> str:
    if isinstance(message, messages.GroupAnswer):
        error = f" {ErrorCode(message.error).name}" if message.error else ""
        return f"the answer{error} to {type(message).__name__.removesuffix('Response')}"
    words = _REQUESTS.get(type(message))
    return type(message).__name__ if words is None else words(message)


def _commit(message: messages.OffsetCommit) -> str:
    ((partition, committed),) = message.offsets
    return f"the commit of {committed.offset} in partition {partition.partition} by {message.member}"


_REQUESTS: Final[Mapping[type[Message], Callable[[Any], str]]] = {
    messages.ConsumerGroupHeartbeat: lambda asked: f"the heartbeat of {asked.member} in epoch {asked.member_epoch}",
    messages.GroupHeartbeat: lambda asked: f"the heartbeat of {asked.member} in generation {asked.member_epoch}",
    messages.GroupJoin: lambda asked: f"the joining of {asked.client_id}",
    messages.GroupSync: lambda asked: f"the question of {asked.member} for its assignment",
    messages.OffsetFetch: lambda asked: f"the question of {asked.member or 'a member'} where the group is",
    messages.OffsetCommit: _commit,
}
