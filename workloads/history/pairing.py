"""Gives each completion its invocation: one of the same process, and among these one that asked the same.

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

    def of(self, process: int) -> list[Begun]:
        """The open operations of a process, first the one that began first."""
        return [*self._open.get(process, {}).values()]

    def begin(self, index: int, invocation: Event) -> None:
        """Note an invocation. An earlier one of the same process that asked the same can no longer be completed."""
        self._open.setdefault(invocation.process, {})[_token(invocation)] = index, invocation

    def end(self, index: int, completion: Event) -> Begun | None:  # noqa: ARG002 - for a subclass
        """Take the invocation of a completion with this index; None without an invocation.

        It is the open operation of the process that asked the same, or else its first of the same function.
        """
        begun = self._open.get(completion.process, {})
        token = _token(completion)
        if token not in begun:
            token = next((asked for asked, (_, event) in begun.items() if event.function == completion.function), None)
        return begun.pop(token, None)

    def look_before(self, process: int) -> None:
        """Note that what the process began before these operations counts; for a subclass."""

    def forget(self, process: int) -> None:
        """Give up all open operations of a process."""
        self._open.pop(process, None)


def _token(event: Event) -> object:
    """The token of one event, equal where :attr:`EventTable.token` is."""
    if event.micro and isinstance(first := event.micro[0], Send):
        return first.partition, first.value
    return event.function


def pair(events: Sequence[Begun], carried: int, table: EventTable, open_: OpenOperations) -> tuple[Numbers, Numbers]:
    """The places of invocations, and of the completion of each, among consecutive events.

    Usually every completion of a process ends the operation that asked the same. Then pairs are found for all events at
    once, and only open operations are gone through one by one. Otherwise all events of the process are.

    Args:
        events: events with their indexes; the ``carried`` ones come first, those of ``open_`` in its order.
        carried: number of events that were open before.
        table: the same events as numbers.
        open_: the open operations before; afterwards, those that are open then.
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
    for index in np.sort(order[left]).tolist():
        (open_.begin if table.begins[index] else open_.end)(*events[index])
    return np.append(order[pairs - 1], invocations), np.append(order[pairs], completions)


def _by_token(table: EventTable) -> tuple[Numbers, Flags]:
    """The places of clients' events, ordered by process, then token, then place; and a mark where process and token are
    those of the one before."""
    process, (label, value) = table.events["process"], table.token
    order = np.flatnonzero((process >= 0) & (process < NAMELESS))
    group = process[order] * (int(label.max(initial=0)) + 1) + label[order]
    sorted_ = np.lexsort((value[order], group))
    order, group = order[sorted_], group[sorted_]
    same = np.zeros(len(order), dtype=bool)
    same[1:] = (group[1:] == group[:-1]) & (np.diff(value[order]) == 0)
    return order, same


def _unanswered(begins: Flags, same: Flags) -> Flags:
    """``bool[event in order of tokens]``: it is an invocation, and no completion with its token follows."""
    token = np.cumsum(~same) - 1
    answered = np.full(token.max(initial=-1) + 1, -1)
    answered[token[~begins]] = np.flatnonzero(~begins)
    unanswered: Flags = begins & (np.arange(len(begins)) > answered[token])
    return unanswered


def _one_by_one(
    events: Sequence[Begun], places: Sequence[int], begins: Flags, open_: OpenOperations
) -> tuple[Numbers, Numbers]:
    """Pair the events at ``places`` as :func:`pair` does, one after the other."""
    pairs: list[tuple[int, int]] = []
    place_of = {events[number][0]: number for number in places if begins[number]}
    for number in places:
        if begins[number]:
            open_.begin(*events[number])
        elif (invocation := open_.end(*events[number])) is not None:
            pairs.append((place_of[invocation[0]], number))
    paired = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return paired[:, 0], paired[:, 1]
