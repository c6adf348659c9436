"""The members of a script's consumer group."""

from __future__ import annotations

from collections.abc import Iterable

from harness.runs.stories.trace import StepError
from workloads.driver import SteppedMember, Workload


class ScriptMembers:
    """All members of one performance, by name, each a client of its own."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._members: dict[str, SteppedMember] = {}

    def member(self, name: str) -> SteppedMember:
        """The member of that name: a script names none that no line before lets join."""
        return self._members[name]

    def everybody(self) -> Iterable[tuple[str, SteppedMember]]:
        """All members with their names, in the order in which they joined; those too that are gone."""
        return self._members.items()

    def join(self, name: str) -> SteppedMember:
        """Make a member, and let it poll."""
        made = self._members[name] = self._workload.begin_member(len(self._members))
        made.start()
        return made

    def awake(self, name: str) -> SteppedMember:
        """A member that can do something now.

        Raises:
            StepError: it cannot; the text says why.
        """
        member = self.member(name)
        if member.gone:
            raise StepError(f"the member {name} is gone")
        if member.frozen:
            raise StepError(f"the member {name} stands still; write: thaw {name}")
        return member

    def at_rest(self, name: str) -> SteppedMember:
        """A member that can begin something now.

        Raises:
            StepError: it cannot; the text says why.
        """
        member = self.awake(name)
        if member.busy:
            raise StepError(f"the member {name} has not done its work; write: finish {name}")
        return member

    def between_calls(self, name: str) -> SteppedMember:
        """A member whose library has nothing to do: a call that is open would go on without it.

        Raises:
            StepError: there is none; the text says why.
        """
        member = self.awake(name)
        if member.busy and not member.halfway:
            raise StepError(f"the member {name} waits for an answer; write: wait until {name} is done")
        return member

    def close(self) -> None:
        """Let every member leave that has not died."""
        for member in self._members.values():
            member.stop()
