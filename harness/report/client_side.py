"""Reads from a history what the clients of a run saw of one log partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from workloads import Event, EventType, Function, Poll, Send

#: The name of OUT_OF_ORDER_SEQUENCE_NUMBER in histories, whichever the client library.
OUT_OF_ORDER: Final = "OutOfOrderSequenceNumberError"


class AcknowledgedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write as its producer saw it.

    ``node`` is the broker that answered, None if it is not known: as the client says (``node_certain``), or the one
    that must have been, by what brokers reported. ``offset`` is None where the producer got none (acks=0).
    """

    value: int
    invoked_us: int
    acknowledged_us: int
    offset: int | None
    node: int | None
    node_certain: bool = True


class ClientSide(msgspec.Struct):
    """Everything that clients saw of one log partition.

    ``acknowledged`` is by value; ``reads`` holds for each offset the value that was read there last; ``end_offset`` is
    as in :class:`Timeline`. ``out_of_order`` counts the writes that ended with OUT_OF_ORDER_SEQUENCE_NUMBER.
    """

    acknowledged: dict[int, AcknowledgedWrite] = {}
    reads: dict[int, int] = {}
    end_offset: int | None = None
    out_of_order: int = 0


def client_side(events: Iterable[Event], partition: str) -> ClientSide:
    """Acknowledgements, last reads and the final log end offset of ``partition``, from all events of a history."""
    invoked: dict[int, int] = {}
    side = ClientSide()
    for event in events:
        if event.function is Function.DRAIN and event.type is EventType.OK and partition in event.partitions:
            side.end_offset = event.offset
        for micro in event.micro:
            if isinstance(micro, Poll):
                for record in micro.records.get(partition, ()):
                    side.reads[record.offset] = record.value
            elif isinstance(micro, Send) and micro.partition == partition:
                side.out_of_order += (event.error or "").startswith(OUT_OF_ORDER)
                _note_send(event, micro, invoked, side.acknowledged)
    return side


def _note_send(event: Event, send: Send, invoked: dict[int, int], acknowledged: dict[int, AcknowledgedWrite]) -> None:
    if event.function not in {Function.SEND, Function.TXN}:
        return
    if event.type is EventType.INVOKE:
        invoked[send.value] = event.time_us
    elif event.type is EventType.OK:
        acknowledged[send.value] = AcknowledgedWrite(
            value=send.value,
            invoked_us=invoked.get(send.value, event.time_us),
            acknowledged_us=event.time_us,
            offset=send.offset,
            node=event.node,
        )
