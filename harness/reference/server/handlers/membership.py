"""Consumer groups, classic protocol: who is a member, who leads, who reads what. Sans-IO.

A group goes through four states, and this module owns every transition:

    EMPTY --a member joins--> JOINING --all joined, or time is over--> SYNCING --the leader brings assignments--> STABLE
      ^                          ^                                        |                                        |
      +-- the last one left --   +---------- somebody joins, leaves, or falls silent ------------------------------+

Every call takes the present time and answers with (ticket, response) pairs: a ticket is what the caller gave with a
request, and each is answered exactly once, at once or by a later call. Times of requests are milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Final

from harness.reference.core.types import NONE, ErrorCode
from harness.reference.server import requests

#: Groups with members at one coordinator, and members of a group.
GROUPS_MAX: Final = 1_000
MEMBERS_MAX: Final = 1_000
#: What a session may last; Kafka allows 6 s to 30 min by default, tests want shorter ones.
SESSION_MS_MIN: Final = 100
SESSION_MS_MAX: Final = 1_800_000

Ticket = int
Answers = list[tuple[Ticket, requests.Response]]
MemberRequest = (
    requests.JoinGroupRequest | requests.SyncGroupRequest | requests.HeartbeatRequest | requests.LeaveGroupRequest
)


def refused(request: MemberRequest, error: ErrorCode) -> requests.Response:
    """The response to ``request`` that says only ``error``."""
    match request:
        case requests.JoinGroupRequest():
            return requests.JoinGroupResponse(error, member=request.member)
        case requests.SyncGroupRequest():
            return requests.SyncGroupResponse(error)
        case requests.HeartbeatRequest():
            return requests.HeartbeatResponse(error)
        case requests.LeaveGroupRequest():
            return requests.LeaveGroupResponse(error)


class State(Enum):
    """See the picture above."""

    EMPTY = "empty"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


class _Member:
    def __init__(self, name: str) -> None:
        self.name = name
        self.session_us = 0
        self.rebalance_us = 0
        self.protocols: tuple[tuple[str, bytes], ...] = ()
        self.assignment = b""
        self.expires_us = 0
        self.join: Ticket | None = None
        self.sync: Ticket | None = None

    def metadata(self, protocol: str) -> bytes:
        return dict(self.protocols)[protocol]

    def heard(self, now_us: int) -> None:
        self.expires_us = now_us + self.session_us


class Group:
    """One group. Members are kept in the order in which they came; the first one leads unless a leader is left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader = ""
        self.members: dict[str, _Member] = {}
        self.named: dict[str, int] = {}  # given a name, not joined yet (KIP-394), and until when
        self.deadline_us = 0
        self._answers: Answers = []

    def handle(self, now_us: int, request: MemberRequest, ticket: Ticket, new_name: Callable[[str], str]) -> None:
        """Take one request of a member; it is answered at once, or by a later call."""
        match request:
            case requests.JoinGroupRequest():
                self._join(now_us, request, ticket, new_name)
            case requests.SyncGroupRequest():
                self._sync(now_us, request, ticket)
            case requests.HeartbeatRequest():
                self._answers.append((ticket, requests.HeartbeatResponse(self._heartbeat(now_us, request))))
            case requests.LeaveGroupRequest():
                left = tuple((name, self._leave(now_us, name)) for name in request.members)
                self._answers.append((ticket, requests.LeaveGroupResponse(ErrorCode.NONE, left)))

    def take(self) -> Answers:
        """The answers that fell due."""
        answers, self._answers = self._answers, []
        return answers

    # --- what members ask ------------------------------------------------------------------------------------------

    def _join(
        self, now_us: int, request: requests.JoinGroupRequest, ticket: Ticket, new_name: Callable[[str], str]
    ) -> None:
        """Join, rejoin, or be given a name first."""
        error = self._join_error(request)
        if error:
            self._answers.append((ticket, requests.JoinGroupResponse(error, member=request.member)))
        elif not request.member and request.knows_member_id_required:
            name = new_name(request.client_id)
            self.named[name] = now_us + request.session_timeout_ms * 1000
            self._answers.append((ticket, requests.JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member=name)))
        else:
            self._admit(now_us, request, ticket, request.member or new_name(request.client_id))

    def _sync(self, now_us: int, request: requests.SyncGroupRequest, ticket: Ticket) -> None:
        """Bring (leader) and fetch assignments."""
        error = self.membership_error(request.member, request.generation)
        if not error and self.state == State.JOINING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            self._answers.append((ticket, requests.SyncGroupResponse(error)))
            return
        member = self.members[request.member]
        member.heard(now_us)
        if member.sync is not None:
            self._answers.append((member.sync, requests.SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)))
        member.sync = ticket
        if self.state == State.SYNCING and request.member == self.leader:
            assignments = dict(request.assignments)
            for each in self.members.values():
                each.assignment = assignments.get(each.name, b"")
            self.state = State.STABLE
        if self.state == State.STABLE:
            self._hand_out(now_us)

    def _heartbeat(self, now_us: int, request: requests.HeartbeatRequest) -> ErrorCode:
        """A member is alive; it learns whether it has to join again."""
        error = self.membership_error(request.member, request.generation)
        if error:
            return error
        self.members[request.member].heard(now_us)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state == State.JOINING else ErrorCode.NONE

    def _leave(self, now_us: int, name: str) -> ErrorCode:
        """A member leaves by itself."""
        if self.named.pop(name, None) is not None:
            return ErrorCode.NONE
        if name not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._remove(now_us, name)
        return ErrorCode.NONE

    def membership_error(self, member: str, generation: int) -> ErrorCode:
        """Why somebody may not speak as ``member`` in ``generation``, NONE if he may."""
        if member not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    # --- time ------------------------------------------------------------------------------------------------------

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

    def _join_error(self, request: requests.JoinGroupRequest) -> ErrorCode:
        if not SESSION_MS_MIN <= request.session_timeout_ms <= SESSION_MS_MAX:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.member and request.member not in self.members and request.member not in self.named:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if len(self.members) + len(self.named) >= MEMBERS_MAX and not request.member:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        others = [member for name, member in self.members.items() if name != request.member]
        common = set(dict(request.protocols)).intersection(*(set(dict(other.protocols)) for other in others))
        if not common or (others and request.protocol_type != self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _admit(self, now_us: int, request: requests.JoinGroupRequest, ticket: Ticket, name: str) -> None:
        self.named.pop(name, None)
        member = self.members.get(name)
        unchanged = member is not None and member.protocols == request.protocols
        if member is None:
            member = self.members[name] = _Member(name)
        if member.join is not None:
            self._answers.append(
                (member.join, requests.JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, member=name))
            )
        member.join = ticket
        member.session_us = request.session_timeout_ms * 1000
        member.rebalance_us = max(request.rebalance_timeout_ms, request.session_timeout_ms) * 1000
        member.protocols = request.protocols
        member.heard(now_us)
        self.protocol_type = request.protocol_type
        settled = self.state == State.SYNCING or (self.state == State.STABLE and name != self.leader)
        if unchanged and settled:
            self._answer_join(now_us, member)
        else:
            self._rebalance(now_us)

    def _rebalance(self, now_us: int) -> None:
        """Everybody has to join again; whoever does not in time is out."""
        if self.state != State.JOINING:
            self.state = State.JOINING
            self.deadline_us = now_us + max(member.rebalance_us for member in self.members.values())
            for member in self.members.values():
                if member.sync is not None:
                    self._answers.append((member.sync, requests.SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)))
                    member.sync = None
        self._complete_if_all_joined(now_us)

    def _complete_if_all_joined(self, now_us: int) -> None:
        if not self.named and all(member.join is not None for member in self.members.values()):
            self._complete(now_us)

    def _complete(self, now_us: int) -> None:
        self.generation += 1
        if not self.members:
            self.state, self.leader, self.protocol = State.EMPTY, "", None
            return
        self.state = State.SYNCING
        self.protocol = self._vote()
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        for member in self.members.values():
            member.assignment = b""
            self._answer_join(now_us, member)

    def _vote(self) -> str:
        """The protocol that most members like best among those that all of them know."""
        members = list(self.members.values())
        common = set(dict(members[0].protocols)).intersection(*(set(dict(member.protocols)) for member in members))
        votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members)
        return votes.most_common(1)[0][0]

    def _answer_join(self, now_us: int, member: _Member) -> None:
        if member.join is None or self.protocol is None:
            return
        leads = member.name == self.leader
        members = tuple((each.name, each.metadata(self.protocol)) for each in self.members.values()) if leads else ()
        answer = requests.JoinGroupResponse(
            ErrorCode.NONE, self.generation, self.protocol_type, self.protocol, self.leader, member.name, members
        )
        self._answers.append((member.join, answer))
        member.join = None
        member.heard(now_us)

    def _hand_out(self, now_us: int) -> None:
        for member in self.members.values():
            if member.sync is not None:
                answer = requests.SyncGroupResponse(
                    ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment
                )
                self._answers.append((member.sync, answer))
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
            self._answers.append((member.join, requests.JoinGroupResponse(error, member=member.name)))
        if member.sync is not None:
            self._answers.append((member.sync, requests.SyncGroupResponse(error)))
        member.join = member.sync = None


class Groups:
    """All groups of one coordinator. ``incarnation`` makes member names unique across restarts."""

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self._groups: dict[str, Group] = {}
        self._members = 0

    def handle(self, now_us: int, request: MemberRequest, ticket: Ticket) -> Answers:
        """Take one request of a member. A join makes the group where there is room for one more."""
        group = self._groups.get(request.group)
        if group is None and isinstance(request, requests.JoinGroupRequest):
            if not self._room():
                return [(ticket, refused(request, ErrorCode.COORDINATOR_NOT_AVAILABLE))]
            group = self._groups[request.group] = Group(request.group)
        if group is not None:
            group.handle(now_us, request, ticket, self._new_name)
            return group.take()
        if isinstance(request, requests.LeaveGroupRequest):
            left = tuple((name, ErrorCode.UNKNOWN_MEMBER_ID) for name in request.members)
            return [(ticket, requests.LeaveGroupResponse(ErrorCode.NONE, left))]
        return [(ticket, refused(request, ErrorCode.UNKNOWN_MEMBER_ID))]

    def commit_error(self, now_us: int, group_name: str, member: str, generation: int) -> ErrorCode:
        """Why offsets may not be committed; a consumer outside any generation may where the group has no members."""
        group = self._groups.get(group_name)
        if group is None or not group.members:
            return ErrorCode.NONE if generation == NONE else ErrorCode.UNKNOWN_MEMBER_ID
        error = group.membership_error(member, generation)
        if not error:
            group.members[member].heard(now_us)
        if not error and group.state == State.SYNCING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def expire(self, now_us: int) -> Answers:
        """Time has passed."""
        answers: Answers = []
        for group in self._groups.values():
            group.expire(now_us)
            answers += group.take()
        return answers

    def abandon(self, mine: Callable[[str], bool]) -> Answers:
        """Forget every group for which ``mine`` is not true any more."""
        answers: Answers = []
        for name in [name for name in self._groups if not mine(name)]:
            group = self._groups.pop(name)
            group.abandon()
            answers += group.take()
        return answers

    def _room(self) -> bool:
        if len(self._groups) >= GROUPS_MAX:
            self._groups = {n: g for n, g in self._groups.items() if g.members or g.named}
        return len(self._groups) < GROUPS_MAX

    def _new_name(self, client_id: str) -> str:
        self._members += 1
        return f"{client_id or 'member'}-{self._incarnation:x}-{self._members}"
