"""A consumer group by the classic protocol: members, a leader and its assignments (rules 51 to 54).

Members compute who reads what, and the coordinator tells them. A group goes through four states, and this module owns
every transition:

    EMPTY --a member joins--> JOINING --all joined, or time is over--> SYNCING --assignments are committed--> STABLE
      ^                          ^                                        |                                     |
      +-- the last one left --   +---------- a member joins, leaves, or falls silent ---------------------------+

A *generation* begins when a joining ends. It is one record, which is ``due`` when its leader has brought the
assignments, or when the last member has gone; the assignments count, and are told, once that record is committed. So a
new coordinator knows the members of the last such generation, and they go on in it.

Every entry takes the present time in microseconds, and leaves the answers that fell due in ``answers``: each call of a
member is answered exactly once, at once or by a later entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from harness.broker.core.messages import (
    GroupAnswer,
    GroupHeartbeat,
    GroupHeartbeatResponse,
    GroupJoin,
    GroupJoinResponse,
    GroupLeave,
    GroupLeaveResponse,
    GroupRequest,
    GroupSync,
    GroupSyncResponse,
    Offer,
)
from harness.broker.core.types import NO_ERROR, ErrorCode, NodeId

#: Members of a group.
MEMBERS_MAX: Final = 1_000
#: The kind of protocol of groups of consumers.
CONSUMER: Final = "consumer"
#: Bounds of a session; Kafka allows 6 s to 30 min by default, tests want shorter ones.
SESSION_MS_MIN: Final = 100
SESSION_MS_MAX: Final = 1_800_000
_MICROSECONDS: Final = 1_000

#: Answers, each with the client that waits for it.
Answers: TypeAlias = list[tuple[NodeId, GroupAnswer]]


class State(StrEnum):
    """See the picture above. The values are the names of Kafka's tools."""

    EMPTY = "Empty"
    JOINING = "PreparingRebalance"
    SYNCING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicMember(msgspec.Struct, frozen=True):
    """A member in a generation: what it offered, and what the leader has assigned to it."""

    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    offers: tuple[Offer, ...]
    assignment: bytes = b""

    def offer(self, protocol: str | None) -> Offer:
        """Its offer of this protocol; an empty one where it has none."""
        return next((offer for offer in self.offers if offer.protocol == protocol), Offer(""))


class ClassicRecord(msgspec.Struct, frozen=True, tag="classic"):
    """A generation: the value of a record of the coordinator's log."""

    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: dict[str, ClassicMember] = {}


class _Call(NamedTuple):
    """A call that waits for its answer."""

    client: NodeId
    message: GroupRequest


class _Member(msgspec.Struct, eq=False):
    """A member that ``told`` of itself; ``join`` and ``sync`` wait for the group."""

    told: ClassicMember
    expires_us: int = 0
    join: _Call | None = None
    sync: _Call | None = None

    def heard(self, now_us: int) -> None:
        self.expires_us = now_us + self.told.session_ms * _MICROSECONDS

    @property
    def waits(self) -> bool:
        return self.join is not None or self.sync is not None


class ClassicGroup(msgspec.Struct, eq=False):
    """One group. Members are kept in the order in which they came; the first one leads unless a leader is left.

    ``read`` are the topics of the members of this generation, None where that is not known. ``named`` were given a
    name and have not joined yet (KIP-394), each with the end of its time. ``brought`` is the generation that is being
    written, with the assignments that its leader has brought.
    """

    state: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: dict[str, _Member] = {}
    read: set[str] | None = None
    named: dict[str, int] = {}
    deadline_us: int = 0
    answers: Answers = []
    due: ClassicRecord | None = None
    brought: ClassicRecord | None = None

    @classmethod
    def loaded(cls, record: ClassicRecord) -> ClassicGroup:
        """The group as the log has it; its sessions do not run yet."""
        group = cls(
            State.STABLE if record.members else State.EMPTY,
            record.generation,
            record.protocol_type,
            record.protocol,
            record.leader,
            {name: _Member(told) for name, told in record.members.items()},
        )
        group.read = group._topics()
        return group

    def resume(self, now_us: int) -> None:
        """Begin all sessions, at a new coordinator."""
        for member in self.members.values():
            member.heard(now_us)

    @property
    def untouched(self) -> bool:
        """No member has come yet."""
        return self.state is State.EMPTY and not self.generation and not self.named

    def take(self) -> Answers:
        """The answers that fell due."""
        answers, self.answers = self.answers, []
        return answers

    # --- what members ask ------------------------------------------------------------------------------------------

    def handle(self, now_us: int, client: NodeId, message: GroupRequest, new_name: str) -> None:
        """Take one call; ``new_name`` is for a newcomer without one."""
        call = _Call(client, message)
        if isinstance(message, GroupJoin):
            self._join(now_us, call, message, new_name)
        elif isinstance(message, GroupSync):
            self._sync(now_us, call, message)
        elif isinstance(message, GroupHeartbeat):
            self._heartbeat(now_us, call)
        elif isinstance(message, GroupLeave):
            self._answer(call, GroupLeaveResponse(message.correlation, self._leave(now_us, message.member)))

    def _join(self, now_us: int, call: _Call, message: GroupJoin, new_name: str) -> None:
        """Join or rejoin; a newcomer whose client knows that step is given its name first (KIP-394)."""
        error, name = self._join_error(message), message.member
        if not error and not name:
            name = new_name
            if message.named_first:
                self.named[name] = now_us + message.session_timeout_ms * _MICROSECONDS
                error = ErrorCode.MEMBER_ID_REQUIRED
        if error:
            self._answer(call, GroupJoinResponse(message.correlation, error, name))
        else:
            self._admit(now_us, call, message, name)

    def _sync(self, now_us: int, call: _Call, message: GroupSync) -> None:
        """Bring (leader) and fetch assignments."""
        error = self._membership_error(message.member, message.member_epoch)
        if not error and self.state is State.JOINING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            self._answer(call, GroupSyncResponse(message.correlation, error))
            return
        member = self.members[message.member]
        member.heard(now_us)
        self._refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync = call
        if self._may_hand_out():
            self._hand_out(now_us)
        elif message.member == self.leader and self.brought is None:
            self.due = self.brought = self._record(dict(message.assignments))

    def _may_hand_out(self) -> bool:
        """The assignments that members have are those of this generation."""
        return self.state is State.STABLE

    def _heartbeat(self, now_us: int, call: _Call) -> None:
        """A member is alive; it learns whether it has to join again."""
        message = call.message
        error = self._membership_error(message.member, message.member_epoch)
        if not error:
            self.members[message.member].heard(now_us)
            error = ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.JOINING else NO_ERROR
        self._answer(call, GroupHeartbeatResponse(message.correlation, error))

    def _leave(self, now_us: int, name: str) -> ErrorCode:
        if self.named.pop(name, None) is not None:
            return NO_ERROR
        if name not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._remove(now_us, name)
        return NO_ERROR

    def _membership_error(self, member: str, generation: int) -> ErrorCode:
        """The error of acting as ``member`` in ``generation``, NONE where its owner may."""
        if member not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return NO_ERROR if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def commit_error(self, now_us: int, member: str, generation: int) -> ErrorCode:
        """The error of committing offsets as ``member`` in ``generation`` (rule 55)."""
        error = self._membership_error(member, generation)
        if not error:
            self.members[member].heard(now_us)
            error = ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.SYNCING else NO_ERROR
        return error

    def reads(self, topic: str) -> bool:
        """Members of this generation read this topic, or may (rule 56)."""
        return self.read is None or topic in self.read

    def expire(self, now_us: int) -> None:
        """Drop members that fell silent; end a joining whose time is over. Who waits for an answer is not silent."""
        self.named = {name: until for name, until in self.named.items() if until > now_us}
        for name, member in list(self.members.items()):
            if member.expires_us <= now_us and not member.waits:
                self._remove(now_us, name)
        if self.state is not State.JOINING:
            return
        if now_us >= self.deadline_us:
            self.named.clear()
            self.members = {name: member for name, member in self.members.items() if member.join is not None}
        self._complete_if_all_joined(now_us)

    def abandon(self) -> None:
        """Another broker coordinates this group from now on."""
        for name, member in self.members.items():
            self._release(name, member, ErrorCode.NOT_COORDINATOR)

    def written(self, now_us: int, record: ClassicRecord, error: ErrorCode) -> None:
        """Take the answer of the log about what was due, maybe in an earlier generation; on an error all join again."""
        if record != self.brought:
            return
        self.brought = None
        if error:
            for member in self.members.values():
                self._refuse_sync(member, error)
            self._rebalance(now_us)
            return
        for name, member in self.members.items():
            member.told = replace(member.told, assignment=record.members[name].assignment)
        self.state = State.STABLE
        self._hand_out(now_us)

    # --- transitions -----------------------------------------------------------------------------------------------

    def _join_error(self, message: GroupJoin) -> ErrorCode:
        name = message.member
        if not SESSION_MS_MIN <= message.session_timeout_ms <= SESSION_MS_MAX:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if name and name not in self.members and name not in self.named:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if len(self.members) + len(self.named) >= MEMBERS_MAX and not name:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        others = [member.told.offers for other, member in self.members.items() if other != name]
        if not _common([message.offers, *others]) or (others and message.protocol_type != self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return NO_ERROR

    def _admit(self, now_us: int, call: _Call, message: GroupJoin, name: str) -> None:
        self.named.pop(name, None)
        told = ClassicMember(
            message.client_id,
            message.client_host,
            message.session_timeout_ms,
            max(message.rebalance_timeout_ms, message.session_timeout_ms),
            message.offers,
        )
        member = self.members.setdefault(name, _Member(replace(told, offers=())))
        unchanged = message.offers == member.told.offers
        self._refuse_join(name, member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.join = call
        member.told = replace(told, assignment=member.told.assignment)
        member.heard(now_us)
        self.protocol_type = message.protocol_type
        settled = self.state is State.SYNCING or (self.state is State.STABLE and name != self.leader)
        if unchanged and settled:
            self._answer_join(now_us, name, member)
        else:
            self._rebalance(now_us)

    def _rebalance(self, now_us: int) -> None:
        """All members have to join again; those that do not in time are removed."""
        if self.state is not State.JOINING:
            self.state, self.brought = State.JOINING, None
            longest_ms = max(member.told.rebalance_ms for member in self.members.values())
            self.deadline_us = now_us + longest_ms * _MICROSECONDS
            for member in self.members.values():
                self._refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        self._complete_if_all_joined(now_us)

    def _complete_if_all_joined(self, now_us: int) -> None:
        if not self.named and all(member.join is not None for member in self.members.values()):
            self._complete(now_us)

    def _complete(self, now_us: int) -> None:
        self.generation = self._next_generation()
        self.brought = None
        if not self.members:
            self.state, self.leader, self.protocol, self.read = State.EMPTY, "", None, set()
            self.due = self._record({})
            return
        self.state = State.SYNCING
        self.protocol = self._vote()
        self.read = self._topics()
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        for name, member in self.members.items():
            self._answer_join(now_us, name, member)

    def _next_generation(self) -> int:
        return self.generation + 1

    def _vote(self) -> str:
        """The protocol that most members like best among those that all of them know."""
        offers = [member.told.offers for member in self.members.values()]
        common = _common(offers)
        votes = Counter(next(offer.protocol for offer in each if offer.protocol in common) for each in offers)
        return votes.most_common(1)[0][0]

    def _topics(self) -> set[str] | None:
        """The topics that the members read by what they offered; None where some cannot be told."""
        read = set[str]()
        for member in self.members.values():
            topics = member.told.offer(self.protocol).topics
            if topics is None:
                return None
            read.update(topics)
        return read

    def _record(self, assignments: Mapping[str, bytes]) -> ClassicRecord:
        """The present generation, as the log is to have it."""
        members = {
            name: replace(member.told, assignment=assignments.get(name, b"")) for name, member in self.members.items()
        }
        return ClassicRecord(self.generation, self.protocol_type, self.protocol, self.leader, members)

    def _answer_join(self, now_us: int, name: str, member: _Member) -> None:
        """The new generation, with the members' metadata for the group's leader only."""
        if member.join is None or self.protocol is None:
            return
        shown = self.members.items() if name == self.leader else ()
        answer = GroupJoinResponse(
            member.join.message.correlation,
            NO_ERROR,
            name,
            self.generation,
            self.protocol_type,
            self.protocol,
            self.leader,
            tuple((each, other.told.offer(self.protocol).metadata) for each, other in shown),
        )
        self._answer(member.join, answer)
        member.join = None
        member.heard(now_us)

    def _hand_out(self, now_us: int) -> None:
        for member in self.members.values():
            if member.sync is not None:
                correlation, assignment = member.sync.message.correlation, member.told.assignment
                answer = GroupSyncResponse(correlation, NO_ERROR, self.protocol_type, self.protocol, assignment)
                self._answer(member.sync, answer)
                member.sync = None
                member.heard(now_us)

    def _remove(self, now_us: int, name: str) -> None:
        self._release(name, self.members.pop(name), ErrorCode.UNKNOWN_MEMBER_ID)
        if self.members:
            self._rebalance(now_us)
        else:
            self._complete(now_us)

    def _release(self, name: str, member: _Member, error: ErrorCode) -> None:
        self._refuse_join(name, member, error)
        self._refuse_sync(member, error)

    def _refuse_join(self, name: str, member: _Member, error: ErrorCode) -> None:
        if member.join is not None:
            self._answer(member.join, GroupJoinResponse(member.join.message.correlation, error, name))
            member.join = None

    def _refuse_sync(self, member: _Member, error: ErrorCode) -> None:
        if member.sync is not None:
            self._answer(member.sync, GroupSyncResponse(member.sync.message.correlation, error))
            member.sync = None

    def _answer(self, call: _Call, answer: GroupAnswer) -> None:
        self.answers.append((call.client, answer))


def _common(offers: list[tuple[Offer, ...]]) -> set[str]:
    """The protocols that all of them offer."""
    first, *others = [{offer.protocol for offer in each} for each in offers]
    return first.intersection(*others)
