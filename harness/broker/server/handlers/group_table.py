"""All groups of one coordinator that have the classic protocol. Sans-IO, as :mod:`membership`, which has one group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.broker.core.types import NONE, ErrorCode
from harness.broker.server.codec.wire import ApiKey
from harness.broker.server.handlers.gateway import Call
from harness.broker.server.handlers.membership import Answers, ServedGroup, State, left, refused

#: Groups with members at one coordinator.
GROUPS_MAX: Final = 1_000

_ENTRIES: Final[Mapping[int, Callable[[ServedGroup, int, Call], None]]] = {
    ApiKey.JOIN_GROUP: ServedGroup.join,
    ApiKey.SYNC_GROUP: ServedGroup.sync,
    ApiKey.HEARTBEAT: ServedGroup.heartbeat,
    ApiKey.LEAVE_GROUP: ServedGroup.leave,
}


class Groups:
    """All groups of one coordinator, those that anybody joined since it is one.

    ``incarnation`` makes member names unique across restarts.
    """

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self.groups: dict[str, ServedGroup] = {}
        self._members = 0

    def handle(self, now_us: int, call: Call) -> Answers:
        """Take one call of a member. A join makes the group where there is room for one more."""
        name, key = call.request.group_id, call.header.api_key
        group = self.groups.get(name)
        if group is None and key == ApiKey.JOIN_GROUP:
            if not self._room():
                return [(call, refused(call, ErrorCode.COORDINATOR_NOT_AVAILABLE))]
            group = self.groups[name] = ServedGroup(name, self._new_name)
        if group is not None:
            _ENTRIES[key](group, now_us, call)
            return group.take()
        if key == ApiKey.LEAVE_GROUP:
            return [(call, left(call, lambda _: ErrorCode.UNKNOWN_MEMBER_ID))]
        return [(call, refused(call, ErrorCode.UNKNOWN_MEMBER_ID))]

    def commit_error(self, now_us: int, group_name: str, member: str, generation: int) -> ErrorCode:
        """The error of committing offsets (rule 55); who is outside any generation may while there are no members."""
        group = self.groups.get(group_name)
        if group is None or not group.members:
            return ErrorCode.NONE if generation == NONE else ErrorCode.UNKNOWN_MEMBER_ID
        error = group.membership_error(member, generation)
        if not error:
            group.members[member].heard(now_us)
        if not error and group.state == State.SYNCING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def delete(self, name: str, *, remembered: bool) -> ErrorCode:
        """Forget a group without members, or say why not (rule 56); ``remembered`` says that it has offsets."""
        group = self.groups.get(name)
        if group is None:
            return ErrorCode.NONE if remembered else ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not State.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        del self.groups[name]
        return ErrorCode.NONE

    def offset_deletion_error(self, name: str, topic: str) -> ErrorCode:
        """The error of deleting the offsets that a group has for a topic."""
        group = self.groups.get(name)
        return ErrorCode.NONE if group is None else group.offset_deletion_error(topic)

    def expire(self, now_us: int) -> Answers:
        """Time has passed."""
        for group in self.groups.values():
            group.expire(now_us)
        return [answer for group in self.groups.values() for answer in group.take()]

    def abandon(self, mine: Callable[[str], bool]) -> Answers:
        """Forget every group for which ``mine`` is not true any more."""
        others = [group for name, group in self.groups.items() if not mine(name)]
        for group in others:
            group.abandon()
            del self.groups[group.name]
        return [answer for group in others for answer in group.take()]

    def _room(self) -> bool:
        if len(self.groups) >= GROUPS_MAX:
            self.groups = {n: g for n, g in self.groups.items() if g.members or g.named}
        return len(self.groups) < GROUPS_MAX

    def _new_name(self, client_id: str) -> str:
        self._members += 1
        return f"{client_id}-{self._incarnation:x}-{self._members}"
