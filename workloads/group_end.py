"""The end of a group: after healing fresh members read what is left of it, and what it has committed is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from typing_extensions import override

from workloads.client import Membership, Offsets
from workloads.consumers import Readers, only_recorded
from workloads.members import MakesMember
from workloads.membership import CommitLine
from workloads.operations import NOTHING, EventType, Function, Reached
from workloads.polling_member import PollingMember

#: The pause before a question without a whole answer is put again.
ASK_AGAIN_MS: Final = 250


class CommittedQuestions:
    """Asks what a group has committed, by a client that does not join it."""

    def __init__(self, readers: Readers, membership: Membership, partitions: Sequence[str]) -> None:
        self._readers = readers
        self._partitions = tuple(partitions)
        number = readers.new_process()
        self.consumer = readers.clients.consumer(number, membership, readers.isolation)
        self._line = CommitLine(readers, number, membership, Function.COMMITTED)

    def ask(self, then: Callable[[Offsets | None], None]) -> None:
        """Put the question once; the answer is None where it is not whole."""
        self._line.begin(partitions=self._partitions)
        assert self.consumer.commits is not None  # noqa: S101 - it was made with a membership
        self.consumer.commits.ask_committed(self._partitions, partial(self._answered, then))

    def _answered(self, then: Callable[[Offsets | None], None], answer: Offsets) -> None:
        if answer.error is not None:
            self._line.end(EventType.INFO, (), answer.error)
            then(None)
            return
        reached = tuple(Reached(name, answer.offsets.get(name, NOTHING)) for name in self._partitions)
        self._line.end(EventType.OK, reached, None)
        then(answer)


class CommittedAgain:
    """Asks what the group has committed until the answer is whole (:class:`workloads.closings.Work`)."""

    def __init__(self, readers: Readers, membership: Membership) -> None:
        self._readers = readers
        self._membership = membership
        self._over = False
        self.finished = False

    def start(self, partitions: Iterable[str]) -> None:
        """Ask about these log partitions."""
        self._questions = CommittedQuestions(self._readers, self._membership, tuple(partitions))
        self.ask(self._finish)

    def ask(self, then: Callable[[Offsets], None]) -> None:
        """Ask until the answer is whole, or the question over."""

        def answered(answer: Offsets | None) -> None:
            if answer is None:
                self._later(partial(self.ask, then))
            elif not self._over:
                then(answer)

        if not self._over:
            self._questions.ask(answered)

    def end(self) -> None:
        """Close its clients. What was not answered is not known."""
        self._over = True
        self._questions.consumer.close()

    def _finish(self, _: Offsets) -> None:
        self.finished = True

    def _later(self, what: Callable[[], None]) -> None:
        if not self._over:
            self._readers.clock.call_at(self._readers.clock.now_us() + ASK_AGAIN_MS * 1000, what)


class GroupEnd(CommittedAgain):
    """Asks what the group has committed, reads the rest with fresh members, one for each of ``makes``, and asks again.

    It is done when the group has committed the end of each log partition.
    """

    def __init__(self, readers: Readers, membership: Membership, makes: Sequence[MakesMember]) -> None:
        super().__init__(readers, membership)
        self._makes = makes
        self._partitions: tuple[str, ...] = ()
        self._ends: dict[str, int] = {}
        self._reached: dict[str, int] = {}
        self._members: list[PollingMember] = []

    @override
    def start(self, partitions: Iterable[str]) -> None:
        """Ask, read and ask again."""
        self._partitions = tuple(partitions)
        self._questions = CommittedQuestions(self._readers, self._membership, self._partitions)
        self.ask(self._read)

    @override
    def end(self) -> None:
        super().end()
        for member in self._members:
            member.stop()

    def _read(self, committed: Offsets) -> None:
        self._advance(committed.offsets)
        self._members = [make(on_read=only_recorded, lost=self._replace) for make in self._makes]
        for member in self._members:
            member.start()
        self._ask_ends()

    def _replace(self, lost: PollingMember) -> None:
        if not self._over:
            number = self._members.index(lost)
            self._advance(lost.reached)
            fresh = self._members[number] = self._makes[number](on_read=only_recorded, lost=self._replace)
            fresh.start()

    def _ask_ends(self) -> None:
        if not self._over:
            self._questions.consumer.end_offsets(self._partitions, self._ends_known)

    def _ends_known(self, answer: Offsets) -> None:
        self._ends |= answer.offsets
        if len(self._ends) < len(self._partitions):
            self._later(self._ask_ends)
        else:
            self._look()

    def _look(self) -> None:
        if self._over:
            return
        for member in self._members:
            self._advance(member.reached)
        if all(self._reached.get(name, 0) >= end for name, end in self._ends.items()):
            self.ask(self._finish)
        else:
            self._later(self._look)

    def _advance(self, reached: Mapping[str, int]) -> None:
        for name, offset in reached.items():
            self._reached[name] = max(offset, self._reached.get(name, 0))
