"""Consumer groups, classic protocol: members, leaders and assignments (rules 51 to 54). Sans-IO.

A group goes through four states, and this module owns every transition:

    EMPTY --a member joins--> JOINING --all joined, or time is over--> SYNCING --the leader brings assignments--> STABLE
      ^                          ^                                        |                                        |
      +-- the last one left --   +---------- a member joins, leaves, or falls silent ------------------------------+

Every entry takes the present time in microseconds and returns the answers that fell due, as (call, fields) pairs: each
call of a member is answered exactly once, at once or by a later entry. Nothing is answered inside a transition, because
a client may ask again at once. Static membership (KIP-345) is not offered: an instance id is ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import msgspec

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec import subscribed_topics
from harness.broker.server.codec.wire import ApiKey, Fields
from harness.broker.server.handlers.gateway import Call

#: Members of a group.
MEMBERS_MAX: Final = 1_000
#: The kind of protocol of groups of consumers.
CONSUMER: Final = "consumer"
#: Bounds of a session; Kafka allows 6 s to 30 min by default, tests want shorter ones.
SESSION_MS_MIN: Final = 100
SESSION_MS_MAX: Final = 1_800_000
#: From these versions on: a member gets its id before it joins (KIP-394), the protocol's name may be null, several
#: members leave at once.
_JOIN_NAMED: Final = 4
_JOIN_TYPED: Final = 7
_LEAVE_SEVERAL: Final = 3

Answers = list[tuple[Call, Fields]]


class State(Enum):
    """See the picture above. The values are the names of Kafka's tools."""

    EMPTY = "Empty"
    JOINING = "PreparingRebalance"
    SYNCING = "CompletingRebalance"
    STABLE = "Stable"


class _Member(msgspec.Struct, eq=False):
    """A member; ``join`` and ``sync`` wait for the group. ``protocols`` are metadata by name, best liked first."""

    name: str
    client_id: str
    client_host: str
    session_us: int = 0
    rebalance_us: int = 0
    expires_us: int = 0
    protocols: dict[str, bytes] = {}
    assignment: bytes = b""
    join: Call | None = None
    sync: Call | None = None

    def heard(self, now_us: int) -> None:
        self.expires_us = now_us + self.session_us


class ServedGroup:
    """One group. Members are kept in the order in which they came; the first one leads unless a leader is left.

    Every method that may answer members leaves the answers in ``answers``.
    """

    def __init__(self, name: str, new_name: Callable[[str], str]) -> None:
        self.name = name
        self._new_name = new_name
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader = ""
        self.members: dict[str, _Member] = {}
        self.read: set[str] | None = None  # by the members of this generation; None where that is not known
        self.named: dict[str, int] = {}  # given a name, not joined yet (KIP-394), and until when
        self.deadline_us = 0
        self.answers: Answers = []

    def take(self) -> Answers:
        """The answers that fell due."""
        answers, self.answers = self.answers, []
        return answers

    # --- what members ask ------------------------------------------------------------------------------------------

    def join(self, now_us: int, call: Call) -> None:
        """Join or rejoin; a newcomer whose client knows that step is given its name first (KIP-394)."""
        request = call.request
        error, name = self._join_error(request), request.member_id
        if not error and not name:
            name = self._new_name(call.header.client_id or "member")
            if call.header.version >= _JOIN_NAMED:
                self.named[name] = now_us + request.session_timeout_ms * 1000
                error = ErrorCode.MEMBER_ID_REQUIRED
        if error:
            self._refuse(call, error, name)
        else:
            self._admit(now_us, call, name)

    def sync(self, now_us: int, call: Call) -> None:
        """Bring (leader) and fetch assignments."""
        request = call.request
        error = self.membership_error(request.member_id, request.generation_id)
        if not error and self.state == State.JOINING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            self._refuse(call, error)
            return
        member = self.members[request.member_id]
        member.heard(now_us)
        if member.sync is not None:
            self._refuse(member.sync, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync = call
        if self.state == State.SYNCING and request.member_id == self.leader:
            assignments = {row.member_id: bytes(row.assignment) for row in request.assignments}
            for each in self.members.values():
                each.assignment = assignments.get(each.name, b"")
            self.state = State.STABLE
        if self.state == State.STABLE:
            self._hand_out(now_us)

    def heartbeat(self, now_us: int, call: Call) -> None:
        """A member is alive; it learns whether it has to join again."""
        member = call.request.member_id
        error = self.membership_error(member, call.request.generation_id)
        if not error:
            self.members[member].heard(now_us)
            error = ErrorCode.REBALANCE_IN_PROGRESS if self.state == State.JOINING else ErrorCode.NONE
        self._refuse(call, error)

    def leave(self, now_us: int, call: Call) -> None:
        """Members leave by themselves."""
        self.answers.append((call, left(call, lambda name: self._leave(now_us, name))))

    def _leave(self, now_us: int, name: str) -> ErrorCode:
        if self.named.pop(name, None) is not None:
            return ErrorCode.NONE
        if name not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._remove(now_us, name)
        return ErrorCode.NONE

    def membership_error(self, member: str, generation: int) -> ErrorCode:
        """The error of acting as ``member`` in ``generation``, NONE where its owner may."""
        if member not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def described(self) -> Fields:
        """The group as DescribeGroups shows it: metadata and assignments only while they are settled."""
        stable = self.state == State.STABLE
        return {
            "group_id": self.name,
            "group_state": self.state.value,
            "protocol_type": self.protocol_type or "",
            "protocol_data": (self.protocol or "") if stable else "",
            "members": [
                {
                    "member_id": member.name,
                    "client_id": member.client_id,
                    "client_host": member.client_host,
                    "member_metadata": member.protocols[self.protocol] if stable and self.protocol else b"",
                    "member_assignment": member.assignment if stable else b"",
                }
                for member in self.members.values()
            ],
        }

    def offset_deletion_error(self, topic: str) -> ErrorCode:
        """The error of deleting offsets of ``topic``: members of this generation read it, or may (rule 56)."""
        if self.protocol_type != CONSUMER:
            return ErrorCode.NONE if self.state is State.EMPTY else ErrorCode.NON_EMPTY_GROUP
        kept = self.read is None or topic in self.read
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if kept else ErrorCode.NONE

    def expire(self, now_us: int) -> None:
        """Drop members that fell silent; end a joining whose time is over. Who waits for an answer is not silent."""
        self.named = {name: until for name, until in self.named.items() if until > now_us}
        for member in list(self.members.values()):
            if member.expires_us <= now_us and member.join is None and member.sync is None:
                self._remove(now_us, member.name)
        if self.state != State.JOINING:
            return
        if now_us >= self.deadline_us:
            self.named.clear()
            self.members = {name: member for name, member in self.members.items() if member.join is not None}
        self._complete_if_all_joined(now_us)

    def abandon(self) -> None:
        """Another broker coordinates this group from now on."""
        for member in self.members.values():
            self._release(member, ErrorCode.NOT_COORDINATOR)

    # --- transitions -----------------------------------------------------------------------------------------------

    def _join_error(self, request: Any) -> ErrorCode:
        name = request.member_id
        if not SESSION_MS_MIN <= request.session_timeout_ms <= SESSION_MS_MAX:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if name and name not in self.members and name not in self.named:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if len(self.members) + len(self.named) >= MEMBERS_MAX and not name:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        others = [member.protocols for other, member in self.members.items() if other != name]
        common = {protocol.name for protocol in request.protocols}.intersection(*others)
        if not common or (others and request.protocol_type != self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _admit(self, now_us: int, call: Call, name: str) -> None:
        request = call.request
        self.named.pop(name, None)
        member = self.members.setdefault(name, _Member(name, call.header.client_id or "", call.client_host))
        if member.join is not None:
            self._refuse(member.join, ErrorCode.REBALANCE_IN_PROGRESS, name)
        member.join = call
        member.session_us = request.session_timeout_ms * 1000
        member.rebalance_us = max(request.rebalance_timeout_ms, request.session_timeout_ms) * 1000
        protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
        unchanged = list(protocols.items()) == list(member.protocols.items())
        member.protocols = protocols
        member.heard(now_us)
        self.protocol_type = request.protocol_type
        settled = self.state == State.SYNCING or (self.state == State.STABLE and name != self.leader)
        if unchanged and settled:
            self._answer_join(now_us, member)
        else:
            self._rebalance(now_us)

    def _rebalance(self, now_us: int) -> None:
        """All members have to join again; those that do not in time are removed."""
        if self.state != State.JOINING:
            self.state = State.JOINING
            self.deadline_us = now_us + max(member.rebalance_us for member in self.members.values())
            for member in self.members.values():
                if member.sync is not None:
                    self._refuse(member.sync, ErrorCode.REBALANCE_IN_PROGRESS)
                    member.sync = None
        self._complete_if_all_joined(now_us)

    def _complete_if_all_joined(self, now_us: int) -> None:
        if not self.named and all(member.join is not None for member in self.members.values()):
            self._complete(now_us)

    def _complete(self, now_us: int) -> None:
        self.generation += 1
        if not self.members:
            self.state, self.leader, self.protocol, self.read = State.EMPTY, "", None, set()
            return
        self.state = State.SYNCING
        self.protocol = self._vote()
        asked = [subscribed_topics(member.protocols[self.protocol]) for member in self.members.values()]
        self.read = None if None in asked else set().union(*(topics for topics in asked if topics))
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        for member in self.members.values():
            member.assignment = b""
            self._answer_join(now_us, member)

    def _vote(self) -> str:
        """The protocol that most members like best among those that all of them know."""
        offers = [member.protocols for member in self.members.values()]
        common = set(offers[0]).intersection(*offers)
        votes = Counter(next(name for name in protocols if name in common) for protocols in offers)
        return votes.most_common(1)[0][0]

    def _answer_join(self, now_us: int, member: _Member) -> None:
        """The new generation, with the members' metadata for the group's leader only."""
        if member.join is None or self.protocol is None:
            return
        shown = self.members.values() if member.name == self.leader else ()
        fields = {
            "error_code": ErrorCode.NONE,
            "generation_id": self.generation,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol,
            "leader": self.leader,
            "member_id": member.name,
            "members": [{"member_id": each.name, "metadata": each.protocols[self.protocol]} for each in shown],
        }
        self.answers.append((member.join, fields))
        member.join = None
        member.heard(now_us)

    def _hand_out(self, now_us: int) -> None:
        for member in self.members.values():
            if member.sync is not None:
                fields = {
                    "error_code": ErrorCode.NONE,
                    "protocol_type": self.protocol_type,
                    "protocol_name": self.protocol,
                    "assignment": member.assignment,
                }
                self.answers.append((member.sync, fields))
                member.sync = None
                member.heard(now_us)

    def _remove(self, now_us: int, name: str) -> None:
        self._release(self.members.pop(name), ErrorCode.UNKNOWN_MEMBER_ID)
        if self.members:
            self._rebalance(now_us)
        else:
            self._complete(now_us)

    def _release(self, member: _Member, error: ErrorCode) -> None:
        if member.join is not None:
            self._refuse(member.join, error, member.name)
        if member.sync is not None:
            self._refuse(member.sync, error)
        member.join = member.sync = None

    def _refuse(self, call: Call, error: ErrorCode, member: str = "") -> None:
        self.answers.append((call, refused(call, error, member)))


def refused(call: Call, error: ErrorCode, member: str = "") -> Fields:
    """The answer to a member's call that gives ``error`` alone; that to a join also names the member."""
    if call.header.api_key != ApiKey.JOIN_GROUP:
        return {"error_code": error}
    protocol = None if call.header.version >= _JOIN_TYPED else ""
    return {"error_code": error, "member_id": member or call.request.member_id, "protocol_name": protocol}


def left(call: Call, leave: Callable[[str], ErrorCode]) -> Fields:
    """The answer to LeaveGroup, with what ``leave`` gives for each member; before version 3 there is only one."""
    if call.header.version < _LEAVE_SEVERAL:
        return {"error_code": leave(call.request.member_id)}
    rows = [{"member_id": each.member_id, "error_code": leave(each.member_id)} for each in call.request.members]
    return {"error_code": ErrorCode.NONE, "members": rows}
