"""From events to rows of integers, cheaply: the work that is done once per event while a run goes on.

A row is a stretch of :data:`WIDTH` numbers in one flat array; texts (log partitions, errors, details) are replaced by
codes into lists that only grow. Nothing here touches a file.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.history.schema import DEFECT_CODE, FUNCTION_CODE, INVOKE, NONE, SCHEMA, TYPE_CODE, Kind
from workloads.operations import EventType, Function, MicroOperation, Poll, Send

Matrix = npt.NDArray[np.int64]
WIDTH: Final = len(SCHEMA.names)

_EVENT, _SEND, _READ, _EMPTY, _BARE, _LISTED = (
    int(k) for k in (Kind.EVENT, Kind.SEND, Kind.READ, Kind.EMPTY, Kind.BARE, Kind.LISTED)
)


class Texts:
    """A list of different texts, each known by its place; None is -1."""

    def __init__(self, *texts: str) -> None:
        self.names: list[str] = list(texts)
        self._codes = {text: code for code, text in enumerate(texts)}

    def code(self, text: str | None) -> int:
        """The place of ``text``, which is added if it is new."""
        if text is None:
            return NONE
        known = self._codes.get(text)
        if known is None:
            known = self._codes[text] = len(self.names)
            self.names.append(text)
        return known


class Invocation(NamedTuple):
    """An operation that has begun. ``plain`` says that it carries nothing but micro-operations and partitions."""

    event: int
    time_us: int
    function: Function
    micro: Sequence[MicroOperation]
    partitions: Sequence[str]
    plain: bool


class Rows:
    """Rows in the making, in the order of events. The columns are those of :data:`schema.SCHEMA`."""

    def __init__(self) -> None:
        self.keys = Texts("")
        self.errors = Texts()
        self.details = Texts()
        self.events = 0
        self.last_us = 0
        self._numbers = array("q")
        self._open: dict[int, dict[object, Invocation]] = {}

    def add(
        self,
        *,
        time_us: int,
        process: int,
        type: EventType,  # noqa: A002 - the field's word
        function: Function,
        micro: Sequence[MicroOperation],
        partitions: Sequence[str],
        offset: int | None,
        node: int | None,
        error: str | None,
        detail: str | None,
    ) -> None:
        """Add one event; it gets the next index."""
        index = self.events
        self.events = index + 1
        self.last_us = time_us
        event_type = TYPE_CODE[type]
        invoke_index, invoke_us, folded = NONE, NONE, 0
        plain = error is None and detail is None and offset is None and node is None
        if process >= 0:
            token = _token(function, micro)
            if event_type == INVOKE:
                begun = Invocation(index, time_us, function, micro, partitions, plain)
                self._open.setdefault(process, {})[token] = begun
            else:
                invocation = self._invocation(process, function, token)
                if invocation is not None:
                    invoke_index, invoke_us = invocation.event, invocation.time_us
                    folded = int(_says_nothing_new(invocation, function, micro, partitions))
        who = (index, time_us, process, event_type, FUNCTION_CODE[function])
        tail = (
            NONE if node is None else node,
            invoke_index,
            invoke_us,
            NONE,
            folded,
            NONE if error is None else self.errors.code(error),
            NONE if detail is None else self.details.code(detail),
        )
        end = NONE if offset is None else offset
        if len(micro) == 1 and not partitions and isinstance(only := micro[0], Send):
            at = NONE if only.offset is None else only.offset
            self._numbers.extend((self.keys.code(only.partition), *who, 0, _SEND, at, only.value, 0, *tail))
        elif micro:
            self._micro(who, micro, tail)
        elif partitions:
            for place, name in enumerate(partitions):
                self._numbers.extend((self.keys.code(name), *who, place, _LISTED, end, 0, 0, *tail))
        else:
            self._numbers.extend((0, *who, 0, _EVENT, end, 0, 0, *tail))

    def _micro(self, who: tuple[int, ...], micro: Sequence[MicroOperation], tail: tuple[int, ...]) -> None:
        put, code = self._numbers.extend, self.keys.code
        for place, operation in enumerate(micro):
            if isinstance(operation, Send):
                at = NONE if operation.offset is None else operation.offset
                put((code(operation.partition), *who, place, _SEND, at, operation.value, 0, *tail))
            elif not operation.records:
                put((0, *who, place, _BARE, NONE, 0, 0, *tail))
            else:
                for name, records in operation.records.items():
                    key = code(name)
                    for record in records:
                        defect = DEFECT_CODE[record.defect]
                        put((key, *who, place, _READ, record.offset, record.value, defect, *tail))
                    if not records:
                        put((key, *who, place, _EMPTY, NONE, 0, 0, *tail))

    def skip(self) -> None:
        """Let one index pass without an event."""
        self.events += 1

    def mark_rebalanced(self, names: Sequence[str]) -> None:
        """Say of the event added last that a group rebalance touched these log partitions inside it."""
        last = tuple(self._numbers[-WIDTH:])
        for name in names:
            self._numbers.extend((self.keys.code(name), *last[1:6], 0, int(Kind.REBALANCED), NONE, 0, 0, *last[11:]))

    def _invocation(self, process: int, function: Function, token: object) -> Invocation | None:
        begun = self._open.get(process)
        if not begun:
            return None
        if token in begun:
            return begun.pop(token)
        same = next((key for key, invocation in begun.items() if invocation.function == function), None)
        return None if same is None else begun.pop(same)

    def __len__(self) -> int:
        return len(self._numbers) // WIDTH

    def take(self) -> Matrix:
        """The rows so far as a matrix (rows, WIDTH), which are then forgotten. Codes of texts stay valid."""
        taken, self._numbers = self._numbers, array("q")
        return np.frombuffer(taken, dtype=np.int64).reshape(-1, WIDTH)


def _token(function: Function, micro: Sequence[MicroOperation]) -> object:
    """What tells one open operation of a process from another: the first value it sends (values are unique)."""
    if micro and isinstance(first := micro[0], Send):
        return first.partition, first.value
    return function


def _says_nothing_new(
    invocation: Invocation, function: Function, micro: Sequence[MicroOperation], partitions: Sequence[str]
) -> bool:
    """Whether the invocation can be rebuilt from its completion."""
    if not invocation.plain or invocation.function != function or len(invocation.micro) != len(micro):
        return False
    if invocation.partitions is not partitions and tuple(invocation.partitions) != tuple(partitions):
        return False
    return all(map(_invokes, invocation.micro, micro))


def _invokes(asked: MicroOperation, done: MicroOperation) -> bool:
    if isinstance(asked, Send):
        same = isinstance(done, Send) and asked.partition == done.partition and asked.value == done.value
        return same and asked.offset is None
    return isinstance(done, Poll) and not asked.records
