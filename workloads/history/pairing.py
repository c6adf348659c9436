"""Which invocation a completion belongs to: by process, and within one by what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from workloads.history.event_table import EventTable, Flags, Numbers
from workloads.operations import Event, Send

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

    def begin(self, index: int, invocation: Event) -> None:
        """Note an invocation. One of the same process that asked the same can never be completed from now on."""
        self._open.setdefault(invocation.process, {})[_token(invocation)] = index, invocation

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
    """As :attr:`EventTable.token`."""
    if event.micro and isinstance(first := event.micro[0], Send):
        return first.partition, first.value
    return event.function


def pair(events: Sequence[Begun], carried: int, table: EventTable, open_: OpenOperations) -> tuple[Numbers, Numbers]:
    """The places of invocations, and of the completion of each, among consecutive events; ``table`` has the same.

    Nearly every process does one thing after the other: each completion follows the invocation that asked the same. Of
    such a process only the edges are gone through one by one, of any other all.

    Args:
        events: with their indexes; first the ``carried`` ones, which are those of ``open_`` in its order.
        carried: how many of the events were open before.
        table: the events as numbers.
        open_: what is open; afterwards, what is open then.
    """
    process = table.events["process"]
    order = np.flatnonzero(process >= 0)
    order = order[np.argsort(process[order], kind="stable")]
    begins, token = table.begins[order], table.token[order]
    follows = np.diff(process[order], prepend=-1) == 0
    ends = follows & ~begins
    ends[1:] &= begins[:-1] & (token[1:] == token[:-1]).all(axis=1)
    entangled = follows & ~ends
    entangled[1:] &= begins[:-1] | ~begins[1:]
    whole = np.isin(process[order], np.unique(process[order][entangled]))
    usual = np.flatnonzero(ends & ~whole)
    firsts = np.flatnonzero(~follows)
    lasts = np.append(firsts, len(order))[1:] - 1
    for first, last in zip(firsts[~whole[firsts]].tolist(), lasts[~whole[firsts]].tolist(), strict=True):
        _go_over(events, order[first : last + 1], begins[first : last + 1], open_)
    invocations, completions = _one_by_one(events, carried, np.sort(order[whole]).tolist(), table.begins, open_)
    return np.append(order[usual - 1], invocations), np.append(order[usual], completions)


def _go_over(events: Sequence[Begun], places: Numbers, begins: Flags, open_: OpenOperations) -> None:
    """Bring ``open_`` to where a usual process leaves it."""
    open_.forget(events[places[0]][1].process)
    if not begins[0]:
        open_.end(*events[places[0]])
    if begins[-1]:
        open_.begin(*events[places[-1]])
    elif len(places) > 1:
        open_.begin(*events[places[-2]])
        open_.end(*events[places[-1]])


def _one_by_one(
    events: Sequence[Begun], carried: int, places: Sequence[int], begins: Flags, open_: OpenOperations
) -> tuple[Numbers, Numbers]:
    """As :func:`pair`, of the events at ``places``."""
    found: list[tuple[int, int]] = []
    place_of = {events[place][0]: place for place in places if begins[place]}
    for place in places:
        if not begins[place]:
            if (invocation := open_.end(*events[place])) is not None:
                found.append((place_of[invocation[0]], place))
        elif place >= carried:
            open_.begin(*events[place])
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
