"""Transactions of a client library behind the contract of workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from harness.worlds.clients.client_thread import Library, Owner, Pending, ThreadedClock
from workloads import TIME_LIMIT, Call, ErrorClass, EventType, MemberToken, SendOutcome

Called_contra = TypeVar("Called_contra", contravariant=True)

#: The waits that one call may take inside the library: find the coordinator, flush, add partitions, end.
_WAITS: Final = 4


class ToldError(NamedTuple):
    """An error by its name, with its words, and the class that the library itself gives it, if it gives one."""

    error: str
    own: ErrorClass | None = None

    @classmethod
    def by(cls, error: str, *, fatal: bool, abortable: bool, retriable: bool) -> ToldError:
        """An error that the library calls so; the first word counts."""
        said = {ErrorClass.FATAL: fatal, ErrorClass.ABORTABLE: abortable, ErrorClass.RETRIABLE: retriable}
        return cls(error, next((each for each, is_so in said.items() if is_so), None))


class LibraryTransactions(Protocol[Called_contra]):
    """The transactional calls of a library. Each may wait; it raises what the library raises."""

    def init(self, library: Called_contra) -> None:
        """Fence earlier producers."""
        ...

    def begin(self, library: Called_contra) -> None:
        """Open a transaction."""
        ...

    def send_offsets(self, library: Called_contra, offsets: Mapping[str, int], token: Any) -> None:
        """Add offsets of the group that ``token`` names."""
        ...

    def commit(self, library: Called_contra) -> None:
        """Commit the open transaction."""
        ...

    def abort(self, library: Called_contra) -> None:
        """Abort the open transaction."""
        ...

    def told(self, library: Called_contra, error: Exception, /) -> ToldError:
        """Say what the library tells of an error that one of these raised."""
        ...


class AdaptedTransactions(Generic[Library]):
    """The transactions of one producer behind :class:`workloads.client.Transactions`.

    Each call is done on the library's thread, and ends as INFO at its time limit.
    """

    def __init__(
        self, clock: ThreadedClock, owner: Owner[Library], limit_ms: int, calls: LibraryTransactions[Library]
    ) -> None:
        self._owner = owner
        self._limit_ms = _WAITS * limit_ms
        self._calls = calls
        self._pending: Pending[SendOutcome] = Pending(clock)
        self._ended: str | None = None

    def init(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the library fence earlier producers."""
        self._call("init", self._calls.init, done)

    def begin(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the library open a transaction."""
        self._call("begin", self._calls.begin, done)

    def send_offsets(
        self, offsets: Mapping[str, int], member: MemberToken, done: Callable[[SendOutcome], None]
    ) -> None:
        """Have the library add offsets to the transaction."""
        self._call("send_offsets", partial(self._calls.send_offsets, offsets=offsets, token=member.token), done)

    def commit(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the library commit."""
        self._call("commit", self._calls.commit, done)

    def abort(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the library abort."""
        self._call("abort", self._calls.abort, done)

    def end(self, error: str) -> None:
        """End every call that is open, and all later ones, as INFO with this error."""
        self._ended = error
        self._pending.answer_all(SendOutcome(EventType.INFO, error=error))

    def _call(self, name: Call, call: Callable[[Library], None], done: Callable[[SendOutcome], None]) -> None:
        ticket = self._pending.begin(done, self._limit_ms, SendOutcome.of_call(name, TIME_LIMIT))
        if self._ended is not None:
            self._pending.answer(ticket, SendOutcome.of_call(name, self._ended))
        else:
            self._owner.submit(partial(self._answer, ticket, name, call))

    def _answer(self, ticket: int, name: Call, call: Callable[[Library], None], library: Library) -> None:
        if not self._pending.waits(ticket):
            return
        try:
            call(library)
        except Exception as error:
            outcome = SendOutcome.of_call(name, *self._calls.told(library, error))
        else:
            outcome = SendOutcome(EventType.OK)
        self._pending.answer(ticket, outcome)
