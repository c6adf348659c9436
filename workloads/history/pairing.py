"""Give each completion the invocation that it belongs to: of its process, and there by what was asked.

Processes of producers have several operations open. A completion takes the one that asked the same::

    0  process 7  invoke  send  t-0 value 1
    1  process 7  invoke  send  t-0 value 2
    2  process 7  ok      send  t-0 value 2     belongs to 1
    3  process 7  ok      send  t-0 value 1     belongs to 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from workloads.history.event_table import EventTable, Flags, Numbers
from workloads.history.schema import NAMELESS
from workloads.operations import Event, Send

#: An invocation and its index.
Begun = tuple[int, Event]


class OpenOperations:
    """Operations that were begun and not completed, by process."""

    def __init__(self, begun: Iterable[Begun] = ()) -> None:
        self._open: dict[int, dict[object, Begun]] = {}
        for index, invocation in begun:
            self.begin(index, invocation)

    def __iter__(self) -> Iterator[Begun]:
        for begun in self._open.values():
            yield from begun.values()

    def __contains__(self, process: int) -> bool:
        return bool(self._open.get(process))

    def begin(self, index: int, invocation: Event) -> None:
        """Note an invocation. One of the same process that asked the same can never be completed from now on."""
        self._open.setdefault(invocation.process, {})[_token(invocation)] = index, invocation

    def end(self, index: int, completion: Event) -> Begun | None:  # noqa: ARG002 - for those who note what has none
        """Take the invocation of a completion, which has this index; None if there is none.

        It is the open operation of the process that asked for what was completed, else its first of the same function.
        """
        begun = self._open.get(completion.process, {})
        token = _token(completion)
        if token not in begun:
            token = next((asked for asked, (_, event) in begun.items() if event.function == completion.function), None)
        return begun.pop(token, None)

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

    Where every completion of a process ends the operation that asked the same, as is usual, pairs are found for all
    events at once, and only what stays open is gone through one by one; else all events of the process are.

    Args:
        events: with their indexes; first the ``carried`` ones, which are those of ``open_`` in its order.
        carried: how many of the events were open before.
        table: the events as numbers.
        open_: what is open; afterwards, what is open then.
    """
    order, same = _by_token(table)
    process, begins = table.events["process"][order], table.begins[order]
    ends = same & ~begins
    ends[1:] &= begins[:-1]
    alone = ~begins & ~ends
    number = np.cumsum(np.diff(process, prepend=-1) != 0) - 1
    first = np.full(number.max(initial=-1) + 1, len(events))
    np.minimum.at(first, number[begins], order[begins])
    entangled = np.zeros(len(first), dtype=bool)
    entangled[number[alone & (order > first[number])]] = True
    usual = ~entangled[number]
    for _, event in events[:carried]:
        open_.forget(event.process)
    invocations, completions = _one_by_one(events, np.sort(order[~usual]).tolist(), table.begins, open_)
    pairs = np.flatnonzero(ends & usual)
    some = np.full(len(first), -1)  # a pair of each process, which shows that it began something
    some[number[pairs]] = pairs
    some = some[some >= 0]
    left = usual & (alone | _unanswered(begins, same))
    left[some] = left[some - 1] = True
    for place in np.sort(order[left]).tolist():
        (open_.begin if table.begins[place] else open_.end)(*events[place])
    return np.append(order[pairs - 1], invocations), np.append(order[pairs], completions)


def _by_token(table: EventTable) -> tuple[Numbers, Flags]:
    """The places of events of clients with a process by it, then by token, then in their order; and which have both in
    common with the one before."""
    process, (label, value) = table.events["process"], table.token
    order = np.flatnonzero((process >= 0) & (process < NAMELESS))
    group = process[order] * (int(label.max(initial=0)) + 1) + label[order]
    sorted_ = np.lexsort((value[order], group))
    order, group = order[sorted_], group[sorted_]
    same = np.zeros(len(order), dtype=bool)
    same[1:] = (group[1:] == group[:-1]) & (np.diff(value[order]) == 0)
    return order, same


def _unanswered(begins: Flags, same: Flags) -> Flags:
    """Of invocation in order of tokens: whether no completion with its token follows (bool)."""
    token = np.cumsum(~same) - 1
    answered = np.full(token.max(initial=-1) + 1, -1)
    answered[token[~begins]] = np.flatnonzero(~begins)
    unanswered: Flags = begins & (np.arange(len(begins)) > answered[token])
    return unanswered


def _one_by_one(
    events: Sequence[Begun], places: Sequence[int], begins: Flags, open_: OpenOperations
) -> tuple[Numbers, Numbers]:
    """As :func:`pair`, of the events at ``places``."""
    found: list[tuple[int, int]] = []
    place_of = {events[place][0]: place for place in places if begins[place]}
    for place in places:
        if begins[place]:
            open_.begin(*events[place])
        elif (invocation := open_.end(*events[place])) is not None:
            found.append((place_of[invocation[0]], place))
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
