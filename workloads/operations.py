"""Operations and their outcomes: what a client asked of the log and what it saw.

A history is a sequence of :class:`Event`. An operation is an ``invoke`` followed by one completion of the same process:
``ok`` (it certainly happened), ``fail`` (it certainly did not), ``info`` (nobody knows). A process is one client
instance, so positions and sequence numbers never outlive it; a producer that has several sends in flight is several
processes (docs/decisions/004-lanes.md).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

#: The process id under which faults stand in a history; clients count from 0.
NEMESIS: Final = -1
#: The process id of the harness's own marks (phases of a run).
HARNESS: Final = -2


class EventType(StrEnum):
    """The four kinds of event; see the module's text."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Function(StrEnum):
    """What an operation does.

    ``DRAIN`` is a final reader's statement without an invoke: OK if it read the partition from its start to ``offset``.
    """

    SEND = "send"
    POLL = "poll"
    TXN = "txn"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    CRASH = "crash"
    DRAIN = "drain"
    FAULT = "fault"
    PHASE = "phase"


class Defect(StrEnum):
    """What was wrong with a payload that was read."""

    NONE = ""
    CHECKSUM = "checksum"
    WRONG_PARTITION = "wrong-partition"
    WRONG_KEY = "wrong-key"
    UNREADABLE = "unreadable"


class Send(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Micro-operation: append ``value`` to ``partition``. ``offset`` is None while, or if, it is not known."""

    partition: str
    value: int
    offset: int | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record as read. ``value`` is -1 where the payload could not be decoded."""

    offset: int
    value: int
    defect: Defect = Defect.NONE


class Poll(msgspec.Struct, frozen=True, tag=True):
    """Micro-operation: read. ``records`` maps a log partition to what was read of it, in the order received."""

    records: dict[str, tuple[Record, ...]] = {}


MicroOperation = Send | Poll


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a history.

    Attributes:
        index: position in the history, strictly increasing, unique.
        time_us: microseconds since the run began, on the run's one clock.
        process: client instance, or NEMESIS, or HARNESS.
        type: see EventType.
        function: see Function.
        micro: sends and polls, in the order in which the client did them.
        partitions: log partitions of an assign, subscribe or drain.
        offset: for DRAIN, the log end offset asked after healing and reached by the reader.
        node: broker that answered, where known.
        error: the client's error, by name, with the broker's words if there were any.
        detail: JSON of a fault's receipt, or of a phase.
    """

    index: int
    time_us: int
    process: int
    type: EventType
    function: Function
    micro: tuple[MicroOperation, ...] = ()
    partitions: tuple[str, ...] = ()
    offset: int | None = None
    node: int | None = None
    error: str | None = None
    detail: str | None = None
