"""Which invocation a completion belongs to: by process, and within one by what was asked."""

from __future__ import annotations

from collections.abc import Iterator

from workloads.operations import Event, MicroOperation, Poll, Send

#: An invocation and its index.
Begun = tuple[int, Event]


class OpenOperations:
    """Operations that were begun and not completed, by process."""

    def __init__(self) -> None:
        self._open: dict[int, dict[object, Begun]] = {}

    def __iter__(self) -> Iterator[Begun]:
        for begun in self._open.values():
            yield from begun.values()

    def __contains__(self, process: int) -> bool:
        return bool(self._open.get(process))

    def begin(self, index: int, invocation: Event) -> Begun | None:
        """Note an invocation. One that no completion can be known to belong to from now on is returned.

        That is one of the same process that asked the same.
        """
        begun, token = self._open.setdefault(invocation.process, {}), _token(invocation)
        given_up = begun.get(token)
        begun[token] = index, invocation
        return given_up

    def end(self, index: int, completion: Event) -> Begun | None:  # noqa: ARG002 - for those who note what has none
        """Take the invocation of a completion, which has this index; None if there is none."""
        return self.same(completion) or self.similar(completion)

    def same(self, completion: Event) -> Begun | None:
        """Take the open operation of the process that asked for what was completed."""
        begun = self._open.get(completion.process)
        return begun.pop(_token(completion), None) if begun else None

    def similar(self, completion: Event) -> Begun | None:
        """Take the first open operation of the process that has the same function."""
        begun = self._open.get(completion.process, {})
        same = next((token for token, (_, event) in begun.items() if event.function == completion.function), None)
        return None if same is None else begun.pop(same)

    def forget(self, process: int) -> None:
        """Give up all open operations of a process."""
        self._open.pop(process, None)


def _token(event: Event) -> object:
    """What tells one open operation of a process from another: the first value it sends (values are unique)."""
    if event.micro and isinstance(first := event.micro[0], Send):
        return first.partition, first.value
    return event.function


def says_nothing_new(invocation: Event, done: Event) -> bool:
    """The invocation can be rebuilt from its completion."""
    if not (invocation.error is None and invocation.detail is None and invocation.offset is None):
        return False
    if invocation.node is not None or invocation.instance != done.instance or invocation.function != done.function:
        return False
    if invocation.partitions is not done.partitions and invocation.partitions != done.partitions:
        return False
    return len(invocation.micro) == len(done.micro) and all(map(_invokes, invocation.micro, done.micro))


def _invokes(asked: MicroOperation, done: MicroOperation) -> bool:
    if isinstance(asked, Send):
        same = isinstance(done, Send) and asked.partition == done.partition and asked.value == done.value
        return same and asked.offset is None
    return isinstance(done, Poll) and not asked.records
