"""The columns of a stored history: one row per thing an event did to one log partition.

An event that touches no log partition still has one row, with an empty ``key``, so that every event can be rebuilt from
the rows. A row also has what a kernel needs of the rest of the history: the invocation's index and time. Rows of kind
``DROPPED`` are added where an assignment took a partition away. Conventions: -1 is "not known" in every integer column
but ``value``, where -1 is a payload that could not be decoded.

| column | meaning | |---|---| | key | log partition, or "" | | index, time_us | the event's place and microseconds
since the run began | | process, type, function | the process, and the codes below | | instance | the client instance
whose operation it is; from layout 3 on, -1 in a row of an older one | | position | micro-operation within the event,
from 0; records of one poll share it, in the order received | | kind | see :class:`Kind` | | offset, value, defect |
those of the record sent or read; of a drain, the log end offset; of REACHED, offset and since; of EFFECT, the offset of
the output and the value of the input | | record_key, tombstone | of a record sent by a workload about keys; from layout
4 on | | node | broker that answered; of EFFECT, the place of the output | | isolation | the code of a reader's
isolation level; from layout 6 on, -1 in a row of an older one | | invoke_index, invoke_us | the
invocation that this event completes | | waited_us | derived: begin of the process's last ok poll that left the
partition alone since its previous row there | | folded | the invocation says nothing that this completion does not say,
so its rows may be left out | | error, detail | texts, or null; from layout 5 on the detail of a transaction has the id
and epoch of its producer |
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import pyarrow as pa

from workloads.operations import EventType, Function, PayloadDefect
from workloads.settings import IsolationLevel

#: Layout of the rows; a reader refuses one that it does not know.
VERSION: Final = "6"
#: Layouts that are read; columns that they lack are filled in (:func:`workloads.history.files.completed`).
VERSIONS_READ: Final = ("2", "3", "4", "5", VERSION)
META_VERSION: Final = b"ackproof.history"
META_RUN: Final = b"ackproof.run"
#: "true" where the writer was closed in order, "false" where the history was cut off and clustered afterwards.
META_COMPLETE: Final = b"ackproof.complete"
#: "true" where some uncertain operation sent to more than one log partition, so that proofs must be looked for.
META_SPREAD: Final = b"ackproof.spread"
#: "true" where some operation that sends does anything else, so that dependencies cross log partitions.
META_JOINED: Final = b"ackproof.joined"
#: "true" where some operation is a consumer group's, so that rows name groups.
META_GROUPED: Final = b"ackproof.grouped"
#: "true" where some operation is a transaction of our own, or says what a broker answered of one.
META_TRANSACTIONS: Final = b"ackproof.transactions"
#: "true" where some send has a key of its own: the topic is compacted, and checkers need the columns of keys.
META_KEYED: Final = b"ackproof.keyed"
#: "true" where some final reader says for how long records stay.
META_AGED: Final = b"ackproof.aged"
#: The flags of :class:`workloads.history.clustering.Subjects`, in its order.
META_SUBJECTS: Final = (META_GROUPED, META_TRANSACTIONS, META_KEYED, META_AGED)
#: Number of events in the history.
META_EVENTS: Final = b"ackproof.events"

NONE: Final = -1
#: Operations without a process get one each, from here upwards.
NAMELESS: Final = 1_000_000_000


class Kind(IntEnum):
    """The kinds of row."""

    EVENT = 0
    """The event touched no log partition (the key is empty)."""
    SEND = 1
    READ = 2
    EMPTY = 3
    """A poll that named the partition and brought no record of it."""
    BARE = 4
    """A poll that named no partition (the key is empty)."""
    LISTED = 5
    """The partition is listed in an assign, subscribe or drain."""
    DROPPED = 6
    """Derived: an assign or subscribe left the partition out, so the process forgets its position there."""
    REBALANCED = 7
    """The partition was taken or given by a group rebalance inside the operation."""
    WAITED = 8
    """Derived: the process polled once more, at ``waited_us``, after its last row of the partition."""
    REACHED = 9
    """A member or a group is at this offset of the partition."""
    EFFECT = 10
    """An output of an application was made of this record of the partition."""


TYPES: Final[tuple[EventType, ...]] = tuple(EventType)
FUNCTIONS: Final[tuple[Function, ...]] = tuple(Function)
DEFECTS: Final[tuple[PayloadDefect, ...]] = tuple(PayloadDefect)
ISOLATIONS: Final[tuple[IsolationLevel, ...]] = ("read_uncommitted", "read_committed")

TYPE_CODE: Final = {name: code for code, name in enumerate(TYPES)}
FUNCTION_CODE: Final = {name: code for code, name in enumerate(FUNCTIONS)}
DEFECT_CODE: Final = {name: code for code, name in enumerate(DEFECTS)}
ISOLATION_CODE: Final = {name: code for code, name in enumerate(ISOLATIONS)}
UNCOMMITTED: Final = ISOLATION_CODE["read_uncommitted"]
COMMITTED: Final = ISOLATION_CODE["read_committed"]

#: Codes of the functions that tell of the run as a whole, in the order of the functions.
MARKS: Final = tuple(
    FUNCTION_CODE[f]
    for f in (
        Function.FAULT,
        Function.PHASE,
        Function.RETIRE,
        Function.RECOVERY,
        Function.INVARIANT,
        Function.REFUSED,
        Function.APPLICATION,
    )
)

#: Codes of the functions of consumer groups; the detail of such an event is a :class:`workloads.GroupMember`.
GROUPED: Final = tuple(
    FUNCTION_CODE[f]
    for f in (
        Function.COMMIT,
        Function.COMMITTED,
        Function.PROCESS,
        Function.REBALANCE,
        Function.OFFSETS,
        Function.DELETE_GROUP,
        Function.RESET,
        Function.SEEK,
    )
)

INVOKE, OK, FAIL, INFO = (TYPE_CODE[t] for t in (EventType.INVOKE, EventType.OK, EventType.FAIL, EventType.INFO))

_TEXT = pa.dictionary(pa.int32(), pa.string())

SCHEMA: Final = pa.schema(
    [
        pa.field("key", _TEXT, nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("time_us", pa.int64(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("instance", pa.int32(), nullable=False),
        pa.field("type", pa.int8(), nullable=False),
        pa.field("function", pa.int8(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("defect", pa.int8(), nullable=False),
        pa.field("record_key", pa.int32(), nullable=False),
        pa.field("tombstone", pa.bool_(), nullable=False),
        pa.field("node", pa.int32(), nullable=False),
        pa.field("isolation", pa.int8(), nullable=False),
        pa.field("invoke_index", pa.int64(), nullable=False),
        pa.field("invoke_us", pa.int64(), nullable=False),
        pa.field("waited_us", pa.int64(), nullable=False),
        pa.field("folded", pa.bool_(), nullable=False),
        pa.field("error", _TEXT),
        pa.field("detail", _TEXT),
    ]
)

#: Kinds of row that follow from others.
DERIVED: Final = (Kind.DROPPED, Kind.WAITED)

#: Columns whose rows hold a code into a list of texts.
TEXT_COLUMNS: Final = ("key", "error", "detail")


def or_none(number: int) -> int | None:
    """The number that a row holds; None where it holds :data:`NONE`."""
    return None if number == NONE else number
