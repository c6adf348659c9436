"""The steps of scripts that members of a consumer group take. :mod:`harness.runs.stories.steps` has all others."""

from __future__ import annotations

from typing import Final

from harness.runs.stories.steps import Record, State, Step


class MemberStep(Step, frozen=True, kw_only=True):
    """A step of one member of the group. Between its steps a member sends heartbeats, and does nothing else."""

    member: str


class JoinGroup(MemberStep, frozen=True, kw_only=True):
    """Make a member, and let it poll once: what it reads it processes and commits, in the order of the column."""


class PollOnce(MemberStep, frozen=True, kw_only=True):
    """Let it poll once more. It stops ``halfway``, between processing and committing; its library may commit later."""

    halfway: bool = False


class PollUntil(MemberStep, frozen=True, kw_only=True):
    """Let it poll again and again, as an application does, until all ``states`` hold at one moment."""

    states: tuple[State, ...]


class FinishWork(MemberStep, frozen=True, kw_only=True):
    """Let a member that stopped halfway go on, or wait a moment for what it waits for."""


class FreezeMember(MemberStep, frozen=True, kw_only=True):
    """Let it stand still: it sends no heartbeats."""


class ThawMember(MemberStep, frozen=True, kw_only=True):
    """Let it go on; it does not know that it stood still."""


class LeaveGroup(MemberStep, frozen=True, kw_only=True):
    """Let it leave in order."""


class CrashMember(MemberStep, frozen=True, kw_only=True):
    """Let it die without a word."""


class HandOver(MemberStep, frozen=True, kw_only=True):
    """Commit the offset behind a record with a transaction, in the name of a member as its library has it (KIP-447)."""

    record: Record
    transaction: str


class AskGroup(Step, frozen=True, kw_only=True):
    """Ask what the group has committed; ``last_record`` is the last one below that offset, none where it is empty."""

    last_record: tuple[Record, ...] | None = None


class SetGroup(Step, frozen=True, kw_only=True):
    """Commit for a group without members that it is behind this ``record``: at once, or with a ``transaction``.

    The group is the script's own, or one of ``others``, whose commits only fill the log of groups.
    """

    record: Record
    others: bool
    transaction: str | None = None


class ForgetGroup(Step, frozen=True, kw_only=True):
    """Ask the coordinator to forget the group, which has no members, with its offsets."""


#: All of them: of stories in virtual time only, as the states of members are.
OF_GROUPS: Final = (
    JoinGroup, PollOnce, PollUntil, FinishWork, FreezeMember, ThawMember, LeaveGroup, CrashMember, HandOver,
    AskGroup, SetGroup, ForgetGroup,
)  # fmt: skip
