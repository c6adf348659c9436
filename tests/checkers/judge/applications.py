"""The slow judge of applications under test: what became of every input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.checkers.judge.told import Told
from workloads import number_of
from workloads.operations import Effect, EventType, Function

Finding = tuple[object, ...]


def facts_of(told: Told) -> dict[str, Any]:
    """The facts that the run tells of its application; nothing without one."""
    said = [event.detail for event in told.events if event.function is Function.APPLICATION]
    return dict(msgspec.json.decode(said[-1] or "{}")) if said else {}


def outputs_of(told: Told) -> list[tuple[Effect, str]]:
    """Each output that counts, with the log partition that it is in."""
    names = facts_of(told).get("outputs", ())
    return [
        (effect, names[event.node or 0])
        for event in told.events
        if event.function is Function.EFFECT and event.type is EventType.OK
        for effect in event.micro
        if isinstance(effect, Effect)
    ]


def made_of(told: Told, log: str, value: int) -> int:
    """The number of outputs of an input."""
    return sum((effect.partition, effect.value) == (log, value) for effect, _ in outputs_of(told))


def should_have(told: Told, value: int) -> int:
    """The outputs that an input has each time that it is in the log."""
    facts = facts_of(told)
    every = facts.get("every", 1)
    return facts.get("outputs_each", 1) if every <= 1 or number_of(value) % every == 0 else 0


def places_of(told: Told, log: str, value: int) -> set[int]:
    """The offsets at which final readers read an input."""
    return {
        seen.offset for final in told.finals_of(log) for seen in final.seen if seen.value == value and not seen.damaged
    }


def inputs_of(told: Told) -> set[tuple[str, int]]:
    return {(sent.log, sent.value) for sent in told.sends} | {(seen.log, seen.value) for seen in told.ok_reads}


def lacking(told: Told) -> Iterator[tuple[str, int, bool]]:
    """The inputs in the log without all their outputs, and whether the application has passed them."""
    facts = facts_of(told)
    if not facts or facts.get("unread"):
        return
    committed = facts.get("committed", {})
    for log, value in inputs_of(told):
        places = places_of(told, log, value)
        if not places or made_of(told, log, value) >= len(places) * should_have(told, value):
            continue
        done = [
            max(places_of(told, log, other), default=-1)
            for name, other in inputs_of(told)
            if name == log and made_of(told, log, other)
        ]
        upto = committed.get(log, 0) if committed else max(done, default=0)
        yield log, value, max(places) < upto


def missing_effect(told: Told) -> Iterator[Finding]:
    for log, value, passed in lacking(told):
        if passed:
            yield facts_of(told)["group"], log, max(places_of(told, log, value))


def doubled_effect(told: Told) -> Iterator[Finding]:
    if facts_of(told):
        for log, value in inputs_of(told):
            places, each = places_of(told, log, value), should_have(told, value)
            every = facts_of(told).get("every", 1)
            wanted = every <= 1 or number_of(value) % every == 0
            if told.finals_of(log) and wanted and made_of(told, log, value) > max(1, len(places)) * each:
                yield log, max(places, default=-1)


def unexplained_output(told: Told) -> Iterator[Finding]:
    every = facts_of(told).get("every", 1)
    for effect, output in outputs_of(told):
        writers = told.sends_of(effect.partition, effect.value) or told.was_read(effect.partition, effect.value)
        if not writers or (every > 1 and number_of(effect.value) % every):
            yield output, effect.offset


def stalled_application(told: Told) -> Iterator[Finding]:
    left = [(log, max(places_of(told, log, value))) for log, value, passed in lacking(told) if not passed]
    for log in {log for log, _ in left}:
        yield log, min(offset for name, offset in left if name == log)


def crash_loop(told: Told) -> Iterator[Finding]:
    facts = facts_of(told)
    for instance in facts.get("crash_loops", ()):
        if any(facts["inputs"][0] in (*event.partitions, *told.logs) for event in told.events):
            yield facts["inputs"][0], instance
