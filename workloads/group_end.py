"""The end of a group: after healing a fresh member reads what is left of it, and what it has committed is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from workloads.client import Membership, Offsets
from workloads.consumers import Readers, only_recorded
from workloads.membership import CommitLine, Member
from workloads.operations import NOTHING, EventType, Function, Reached

#: The pause before a question without a whole answer is put again.
ASK_AGAIN_MS: Final = 250


class GroupEnd:
    """Asks what the group has committed, reads the rest as its only member, and asks again.

    The fresh member processes, then commits, whatever the members before did. It is done when the group has committed
    the end of each log partition.
    """

    def __init__(self, readers: Readers, membership: Membership, topics: Sequence[str]) -> None:
        self._readers = readers
        self._membership = membership
        self._topics = topics
        self._partitions: tuple[str, ...] = ()
        self._ends: dict[str, int] = {}
        self._over = False
        self._member: Member | None = None
        self.finished = False

    def start(self, partitions: Iterable[str]) -> None:
        """Ask, read and ask again."""
        self._partitions = tuple(partitions)
        self._number = self._readers.new_process()
        self._asker = self._readers.clients.consumer(self._number, self._membership)
        self._line = CommitLine(self._readers, self._number, self._membership, Function.COMMITTED)
        self._ask_committed(self._read)

    def end(self) -> None:
        """Close its clients. What was not answered is not known."""
        self._over = True
        self._asker.close()
        if self._member is not None:
            self._member.stop()

    def _ask_committed(self, then: Callable[[Offsets], None]) -> None:
        if self._over:
            return
        self._line.begin(partitions=self._partitions)
        assert self._asker.commits is not None  # noqa: S101 - it was made with a membership
        self._asker.commits.ask_committed(self._partitions, partial(self._answered, then))

    def _answered(self, then: Callable[[Offsets], None], answer: Offsets) -> None:
        if answer.error is not None:
            self._line.end(EventType.INFO, (), answer.error)
            self._later(partial(self._ask_committed, then))
            return
        reached = tuple(Reached(name, answer.offsets.get(name, NOTHING)) for name in self._partitions)
        self._line.end(EventType.OK, reached, None)
        if not self._over:
            then(answer)

    def _read(self, committed: Offsets) -> None:
        self._make(committed.offsets)
        self._ask_ends()

    def _make(self, reached: dict[str, int]) -> None:
        self._member = Member(
            self._readers,
            self._membership,
            "after-processing",
            topics=self._topics,
            partitions=self._partitions,
            on_read=only_recorded,
            lost=self._replace,
        )
        self._member.reached |= reached
        self._member.start()

    def _replace(self, lost: Member) -> None:
        if not self._over:
            self._make(lost.reached)

    def _ask_ends(self) -> None:
        if not self._over:
            self._asker.end_offsets(self._partitions, self._ends_known)

    def _ends_known(self, answer: Offsets) -> None:
        self._ends |= answer.offsets
        if len(self._ends) < len(self._partitions):
            self._later(self._ask_ends)
        else:
            self._look()

    def _look(self) -> None:
        if self._over or self._member is None:
            return
        if all(self._member.reached.get(name, 0) >= end for name, end in self._ends.items()):
            self._ask_committed(self._finish)
        else:
            self._later(self._look)

    def _finish(self, _: Offsets) -> None:
        self.finished = True

    def _later(self, what: Callable[[], None]) -> None:
        if not self._over:
            self._readers.clock.call_at(self._readers.clock.now_us() + ASK_AGAIN_MS * 1000, what)
