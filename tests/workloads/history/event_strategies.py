"""Generated sequences of events for the tests of the history store."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from workloads.history import HistoryWriter
from workloads.operations import (
    NOTHING,
    Event,
    EventType,
    Function,
    MicroOperation,
    PayloadDefect,
    Poll,
    Reached,
    Record,
    Send,
)

KEYS = ("t-0", "t-1", "t-2")
_MICRO = tuple(
    map(Function, ("send", "poll", "txn", "commit", "committed", "process", "stable", "offsets", "delete-group"))
)
_MORE = 30 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 1


def examples(number: int, **more: Any) -> settings:
    """Hypothesis's settings with so many examples, thirty times as many where somebody explores."""
    return settings(max_examples=number * _MORE, deadline=None, **more)


keys = st.sampled_from(KEYS)
numbers = st.integers(0, 2**62)
records = st.builds(Record, numbers, st.integers(-1, 50), st.sampled_from(PayloadDefect))
offsets = st.none() | numbers
plain_sends = st.builds(Send, keys, st.integers(0, 50), offsets)
keyed_sends = st.builds(Send, keys, st.integers(0, 50), offsets, st.integers(0, 2**31 - 1), st.booleans())
sends = plain_sends | keyed_sends
reached = st.builds(Reached, keys, st.just(NOTHING) | numbers, offsets)
polls = st.builds(Poll, st.dictionaries(keys, st.lists(records, max_size=3).map(tuple), max_size=3))
texts = st.none() | st.text(max_size=4)
levels = st.sampled_from((None, "read_uncommitted", "read_committed"))


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Any events at all: processes overlap, completions repeat or contradict their invocations, or never come."""
    history: list[Event] = []
    for index in range(draw(st.integers(0, 12))):
        function = draw(st.sampled_from(Function))
        history.append(
            Event(
                index=index,
                time_us=index * 10,
                process=draw(st.integers(-2, 3)),
                instance=draw(st.integers(-1, 2)),
                type=draw(st.sampled_from(EventType)),
                function=function,
                isolation=draw(levels),
                **_content(draw, function),
            )
        )
        if draw(st.booleans()):
            history.append(_completion(draw, history[-1], len(history)))
    return [_numbered(event, index) for index, event in enumerate(history)]


def _content(draw: st.DrawFn, function: Function) -> dict[str, Any]:
    if function in _MICRO:
        micro: tuple[MicroOperation, ...] = tuple(draw(st.lists(sends | polls | reached, max_size=3)))
        return {"micro": micro, "node": draw(st.none() | st.integers(0, 5)), "error": draw(texts)}
    if function in (Function.ASSIGN, Function.SUBSCRIBE, Function.DRAIN, Function.REBALANCE):
        listed = tuple(draw(st.lists(keys, max_size=3, unique=True)))
        return {"partitions": listed, "offset": draw(st.none() | numbers)}
    return {"detail": draw(texts)}


def _completion(draw: st.DrawFn, event: Event, index: int) -> Event:
    micro = tuple(_answered(draw, operation) for operation in event.micro)
    kind = draw(st.sampled_from([EventType.OK, EventType.FAIL, EventType.INFO]))
    return Event(
        index=index,
        time_us=index * 10,
        process=event.process,
        instance=event.instance if draw(st.booleans()) else draw(st.integers(-1, 2)),
        type=kind,
        function=event.function,
        isolation=event.isolation if draw(st.booleans()) else draw(levels),
        micro=micro,
        partitions=event.partitions,
    )


def _answered(draw: st.DrawFn, operation: MicroOperation) -> MicroOperation:
    if isinstance(operation, Send):
        return msgspec.structs.replace(operation, offset=draw(offsets))
    return draw(reached if isinstance(operation, Reached) else polls)


def _numbered(event: Event, index: int) -> Event:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return Event(**fields | {"index": index, "time_us": index * 10})


def record_all(writer: HistoryWriter, history: list[Event]) -> None:
    """Record events as a conductor would."""
    for event in history:
        writer.record(event)


def normalised(event: Event) -> Event:
    """An event as the store keeps it: partitions of one poll have no order."""
    micro = tuple(Poll(dict(sorted(m.records.items()))) if isinstance(m, Poll) else m for m in event.micro)
    return Event(**{name: getattr(event, name) for name in event.__struct_fields__} | {"micro": micro})
