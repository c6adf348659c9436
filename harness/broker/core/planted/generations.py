"""Wrong forms of the classic protocol of groups: of generations, of their assignments, and of commits in them.

Each is a coordinator with a wrong :class:`ClassicGroup`.
"""

from __future__ import annotations

from harness.broker.core.groups.classic import ClassicGroup, State
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.types import ErrorCode


class _KeepsGeneration(ClassicGroup):
    def _next_generation(self) -> int:
        return max(self.generation, 1)


class KeepsGeneration(GroupCoordinator):
    """A joining that ends does not raise the generation (rule 52): who was in the one before may go on."""

    def _classic_group(self) -> type[ClassicGroup]:
        return _KeepsGeneration


class _HandsOutEarly(ClassicGroup):
    def _may_hand_out(self) -> bool:
        early = self.state is State.SYNCING and any(member.told.assignment for member in self.members.values())
        return early or super()._may_hand_out()


class HandsOutOldAssignments(GroupCoordinator):
    """A member that asks before the leader has brought assignments gets its own of the generation before (rule 53)."""

    def _classic_group(self) -> type[ClassicGroup]:
        return _HandsOutEarly


class _TakesCommitsOfEarlierGenerations(ClassicGroup):
    def commit_error(self, now_us: int, member: str, generation: int) -> ErrorCode:
        return super().commit_error(now_us, member, max(generation, self.generation))


class TakesOldCommits(GroupCoordinator):
    """A commit is taken of a member in an earlier generation (rule 55): of what it has no more."""

    def _classic_group(self) -> type[ClassicGroup]:
        return _TakesCommitsOfEarlierGenerations
