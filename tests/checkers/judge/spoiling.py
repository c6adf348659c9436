"""Spoils histories: a record dropped or doubled, an end turned into another one, an offset or a number moved."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.checkers.judge.small_worlds import COMMITTED, KINDS, UNCOMMITTED
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

Events = list[Event]
#: The functions whose ends may become others.
ENDING: Final = {
    Function.SEND,
    Function.TXN,
    Function.COMMIT,
    Function.DELETE_GROUP,
    Function.RESET,
    Function.OFFSETS,
    Function.POLL,
}


def history(kind: str, seed: int) -> Events:
    """The history of a kind and a seed: in one of four nothing is spoiled, else up to three times."""
    chance = random.Random(f"{kind} {seed}")
    events = KINDS[kind](chance).events
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        before = list(events)
        for _ in range(5):
            if events == before:
                chance.choice(SPOILS)(events, chance)
    return [msgspec.structs.replace(event, index=position) for position, event in enumerate(events)]


def _pick(events: Events, chance: random.Random, suits: Callable[[Event], bool]) -> int | None:
    places = [position for position, event in enumerate(events) if suits(event)]
    return chance.choice(places) if places else None


def _change_micro(event: Event, position: int, new: MicroOperation) -> Event:
    micro = list(event.micro)
    micro[position] = new
    return msgspec.structs.replace(event, micro=tuple(micro))


def _reads(event: Event) -> bool:
    return event.type is EventType.OK and any(isinstance(m, Poll) and m.records for m in event.micro)


def _change_records(events: Events, chance: random.Random, change: Callable[[list[Record]], list[Record]]) -> None:
    position = _pick(events, chance, _reads)
    if position is None:
        return
    event = events[position]
    (index, *_) = [index for index, micro in enumerate(event.micro) if isinstance(micro, Poll)]
    records = dict(event.micro[index].records)  # type: ignore[union-attr]
    log = chance.choice([*records])
    records[log] = tuple(change(list(records[log])))
    if not records[log]:
        del records[log]
    events[position] = _change_micro(event, index, Poll(records))


def drop_record(events: Events, chance: random.Random) -> None:
    _change_records(events, chance, lambda records: [r for r in records if r is not chance.choice(records)])


def double_record(events: Events, chance: random.Random) -> None:
    def twice(records: list[Record]) -> list[Record]:
        again = chance.choice(records)
        moved = chance.choice([0, 1, 2])
        return [*records, Record(records[-1].offset + moved, again.value)]

    _change_records(events, chance, twice)


def swap_records(events: Events, chance: random.Random) -> None:
    def swapped(records: list[Record]) -> list[Record]:
        chance.shuffle(records)
        return records

    _change_records(events, chance, swapped)


def swap_values(events: Events, chance: random.Random) -> None:
    def swapped(records: list[Record]) -> list[Record]:
        values = [record.value for record in records]
        chance.shuffle(values)
        return [Record(record.offset, value) for record, value in zip(records, values, strict=True)]

    _change_records(events, chance, swapped)


def move_record(events: Events, chance: random.Random) -> None:
    moved = chance.choice([-1, 1, 2])

    def elsewhere(records: list[Record]) -> list[Record]:
        index = chance.randrange(len(records))
        return [Record(max(0, r.offset + moved * (n == index)), r.value) for n, r in enumerate(records)]

    _change_records(events, chance, elsewhere)


def change_value(events: Events, chance: random.Random) -> None:
    def other(records: list[Record]) -> list[Record]:
        index, value = chance.randrange(len(records)), chance.randint(1, 12)
        return [Record(r.offset, value if n == index else r.value) for n, r in enumerate(records)]

    _change_records(events, chance, other)


def truncate_reader(events: Events, chance: random.Random) -> None:
    """A reader never gets what is behind an offset."""
    position = _pick(events, chance, _reads)
    if position is None:
        return
    process, (poll, *_) = events[position].process, [m for m in events[position].micro if isinstance(m, Poll)]
    log = chance.choice([*poll.records])
    limit = chance.choice(poll.records[log]).offset
    for index, event in enumerate(events):
        if event.process == process and _reads(event):
            (old, *_) = [m for m in event.micro if isinstance(m, Poll)]
            kept = {n: tuple(r for r in rs if n != log or r.offset < limit) for n, rs in old.records.items()}
            new = Poll({name: records for name, records in kept.items() if records})
            events[index] = msgspec.structs.replace(event, micro=tuple(new if m is old else m for m in event.micro))


def drop_everywhere(events: Events, chance: random.Random) -> None:
    """No final reader, or no reader at all, gets one record."""
    position = _pick(events, chance, _reads)
    if position is None:
        return
    (poll, *_) = [m for m in events[position].micro if isinstance(m, Poll)]
    log = chance.choice([*poll.records])
    gone = chance.choice(poll.records[log])
    since = chance.choice([0, position])
    for index, event in enumerate(events):
        if index >= since and _reads(event):
            (old, *_) = [m for m in event.micro if isinstance(m, Poll)]
            kept = {n: tuple(r for r in rs if n != log or r.value != gone.value) for n, rs in old.records.items()}
            new = Poll({name: records for name, records in kept.items() if records})
            events[index] = msgspec.structs.replace(event, micro=tuple(new if m is old else m for m in event.micro))


def change_end(events: Events, chance: random.Random) -> None:
    position = _pick(events, chance, lambda e: e.type is not EventType.INVOKE and e.function in ENDING)
    if position is not None:
        kind = chance.choice([EventType.OK, EventType.FAIL, EventType.INFO])
        if events[position].function is Function.TXN and '"asked":"commit"' not in (events[position].detail or ""):
            kind = EventType.INFO  # Only a commit that was asked for can be answered.
        events[position] = msgspec.structs.replace(events[position], type=kind)


def drop_end(events: Events, chance: random.Random) -> None:
    """A client never got an answer, and did nothing after that."""
    last = {event.process: event for event in events}
    position = _pick(
        events, chance, lambda e: e.type is not EventType.INVOKE and e.function in ENDING and e is last[e.process]
    )
    if position is not None:
        del events[position]


def change_offset(events: Events, chance: random.Random) -> None:
    """An answered offset, one that a group or a member reached, or the end of a final reader is another one."""
    position = _pick(
        events, chance, lambda e: e.type is not EventType.INVOKE and (bool(e.micro) or e.offset is not None)
    )
    if position is None:
        return
    event, moved = events[position], chance.choice([-2, -1, 1, 2])
    if event.offset is not None:
        events[position] = msgspec.structs.replace(event, offset=max(0, event.offset + moved))
        return
    index = chance.randrange(len(event.micro))
    micro = event.micro[index]
    if isinstance(micro, Send):
        offset = None if micro.offset is None or chance.randrange(4) == 0 else max(0, micro.offset + moved)
        events[position] = _change_micro(event, index, msgspec.structs.replace(micro, offset=offset))
    elif isinstance(micro, Reached):
        offset = NOTHING if chance.randrange(5) == 0 else max(0, micro.offset + moved)
        if event.function in (Function.COMMITTED, Function.STABLE) or offset != NOTHING:
            offset = max(0, offset) if event.function is Function.STABLE else offset
            events[position] = _change_micro(event, index, msgspec.structs.replace(micro, offset=offset))


def change_level(events: Events, chance: random.Random) -> None:
    position = _pick(events, chance, lambda e: e.isolation is not None)
    if position is None:
        return
    level = UNCOMMITTED if events[position].isolation == COMMITTED else COMMITTED
    for index, event in enumerate(events):
        if event.process == events[position].process and index != position:
            events[index] = msgspec.structs.replace(event, isolation=level)
    events[position] = msgspec.structs.replace(events[position], isolation=level)


def drop_operation(events: Events, chance: random.Random) -> None:
    """One operation never happened: the begin and the end."""
    position = _pick(events, chance, lambda e: e.type is EventType.INVOKE)
    if position is None:
        return
    process = events[position].process
    ends = [index for index, e in enumerate(events) if index > position and e.process == process]
    if ends and events[ends[0]].function is events[position].function and events[ends[0]].type is not EventType.INVOKE:
        del events[ends[0]]
    del events[position]


def drop_alone(events: Events, chance: random.Random) -> None:
    alone = {Function.DRAIN, Function.PROCESS, Function.REBALANCE, Function.LOG_START}
    position = _pick(events, chance, lambda e: e.function in alone)
    if position is not None:
        del events[position]


def swap_events(events: Events, chance: random.Random) -> None:
    """Two neighbours of different processes come the other way round."""
    if len(events) < 2:
        return
    position = chance.randrange(len(events) - 1)
    earlier, later = events[position], events[position + 1]
    if earlier.process != later.process:
        events[position] = msgspec.structs.replace(later, time_us=earlier.time_us)
        events[position + 1] = msgspec.structs.replace(earlier, time_us=later.time_us)


def change_detail(events: Events, chance: random.Random) -> None:
    position = _pick(events, chance, lambda e: e.detail is not None)
    if position is None:
        return
    event = events[position]
    detail: dict[str, Any] = msgspec.json.decode(event.detail or "{}")
    name = chance.choice([*detail])
    value = detail[name]
    if name == "asked" and event.type is not EventType.OK:
        detail[name] = chance.choice(["commit", "abort", None])
        if detail[name] is None:
            detail.pop("ending_us", None)
        else:
            detail.setdefault("ending_us", event.time_us)
    elif name == "superseded_us" and chance.randrange(2):
        values = [micro.value for micro in event.micro if isinstance(micro, Send)]
        detail["late"] = chance.sample(values, chance.randint(0, len(values)))
    elif name == "ending_us" and chance.randrange(2):
        detail["superseded_us"] = max(0, value + chance.choice([-500, 500]))
    elif name == "generation":
        detail[name] = max(0, value + chance.choice([-1, 1]))
    elif name == "group" and event.function is not Function.TXN:
        return
    elif isinstance(value, int) and name not in ("number",):
        detail[name] = max(0, value + chance.choice([-5000, -500, 500, 5000]))
    elif name == "transactional_id" and chance.randrange(2):
        failed = [micro.value for micro in event.micro if isinstance(micro, Send)]
        detail["failed"] = {str(value): "TIMEOUT" for value in failed[:1]}
    events[position] = msgspec.structs.replace(event, detail=msgspec.json.encode(detail).decode())


def answer_before(events: Events, chance: random.Random) -> None:
    """A group says an offset that it had at any time, or nothing."""
    position = _pick(events, chance, lambda e: e.function is Function.COMMITTED and bool(e.micro))
    if position is None:
        return
    told = [m.offset for e in events for m in e.micro if isinstance(m, Reached) and e.function is not Function.STABLE]
    (old,) = events[position].micro
    events[position] = _change_micro(
        events[position],
        0,
        msgspec.structs.replace(old, offset=chance.choice([NOTHING, *told])),  # type: ignore[type-var]
    )


def damage(events: Events, chance: random.Random) -> None:
    def broken(records: list[Record]) -> list[Record]:
        index = chance.randrange(len(records))
        return [Record(r.offset, -1, PayloadDefect.CHECKSUM) if n == index else r for n, r in enumerate(records)]

    _change_records(events, chance, broken)


def read_own(events: Events, chance: random.Random) -> None:
    """A transaction reads what it sends."""
    position = _pick(events, chance, lambda e: e.function is Function.TXN and any(isinstance(m, Send) for m in e.micro))
    if position is not None:
        send = chance.choice([m for m in events[position].micro if isinstance(m, Send)])
        poll = Poll({send.partition: (Record(send.offset or 0, send.value),)})
        events[position] = msgspec.structs.replace(events[position], micro=(*events[position].micro, poll))


def change_key(events: Events, chance: random.Random) -> None:
    def keyed(event: Event) -> bool:
        return any(isinstance(m, Send) and m.record_key is not None for m in event.micro)

    position = _pick(events, chance, keyed)
    if position is None:
        return
    sends = [m for m in events[position].micro if isinstance(m, Send) and m.record_key is not None]
    value, new = (
        chance.choice(sends).value,
        {"record_key": chance.randint(1, 3), "tombstone": bool(chance.randrange(2))},
    )
    for index, event in enumerate(events):
        changed = tuple(
            msgspec.structs.replace(m, **new) if isinstance(m, Send) and m.value == value else m for m in event.micro
        )
        events[index] = msgspec.structs.replace(event, micro=changed)


SPOILS: Final[tuple[Callable[[Events, random.Random], None], ...]] = (
    drop_record,
    double_record,
    swap_records,
    swap_values,
    move_record,
    change_value,
    truncate_reader,
    drop_everywhere,
    drop_everywhere,
    change_end,
    change_end,
    drop_end,
    change_offset,
    change_offset,
    change_level,
    drop_operation,
    drop_alone,
    swap_events,
    change_detail,
    change_detail,
    change_key,
    answer_before,
    answer_before,
    read_own,
    damage,
)
