"""The slow judge of applications under test: what became of every input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.checkers.judge.told import Told
from workloads import key_of, number_of
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


def results_of(told: Told) -> dict[tuple[str, int], int]:
    """The result that each output has, by its log partition and offset."""
    names = facts_of(told).get("outputs", ())
    return {
        (names[event.node or 0], effect.offset): effect.value
        for event in told.events
        if event.function is Function.EFFECT and event.type is EventType.INFO
        for effect in event.micro
        if isinstance(effect, Effect)
    }


def key_number(told: Told, value: int) -> int:
    return key_of(value, max(1, facts_of(told).get("keys", 1)))


def of_one_key(told: Told, log: str, value: int) -> list[tuple[int, int]]:
    """The places of the inputs of the same key, with their values, in order."""
    return sorted(
        (offset, other)
        for name, other in inputs_of(told)
        if name == log and key_number(told, other) == key_number(told, value)
        for offset in places_of(told, log, other)
    )


def every_of(told: Told) -> int:
    facts = facts_of(told)
    return 1 if facts.get("fold") else int(facts.get("every", 1))


def should_have(told: Told, value: int) -> int:
    """The outputs that an input has each time that it is in the log."""
    facts, every = facts_of(told), every_of(told)
    return facts.get("outputs_each", 1) if every <= 1 or number_of(value) % every == 0 else 0


def places_of(told: Told, log: str, value: int) -> set[int]:
    """The offsets at which final readers read an input."""
    return {
        seen.offset for final in told.finals_of(log) for seen in final.seen if seen.value == value and not seen.damaged
    }


def inputs_of(told: Told) -> set[tuple[str, int]]:
    return {(sent.log, sent.value) for sent in told.sends} | {(seen.log, seen.value) for seen in told.ok_reads}


def has_all(told: Told, log: str, value: int, places: set[int]) -> bool:
    """Tell if an input has all outputs; in a fold, one of a later input of its key is enough."""
    if facts_of(told).get("fold"):
        later = {other for offset, other in of_one_key(told, log, value) if offset >= max(places)}
        return any(made_of(told, log, other) for other in later)
    return made_of(told, log, value) >= len(places) * should_have(told, value)


def lacking(told: Told) -> Iterator[tuple[str, int, bool]]:
    """The inputs in the log without all their outputs, and whether the application has passed them."""
    facts = facts_of(told)
    if not facts or facts.get("unread"):
        return
    for log, value, passed in everything_passed(told):
        blind = not facts.get("outputs")
        if not passed if blind else not has_all(told, log, value, places_of(told, log, value)):
            yield log, value, passed


def everything_passed(told: Told) -> Iterator[tuple[str, int, bool]]:
    """Each input in the log, and whether the application will not do it any more."""
    committed = facts_of(told).get("committed", {})
    for log, value in inputs_of(told):
        places = places_of(told, log, value)
        if not places:
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
    if facts_of(told) and not facts_of(told).get("fold"):
        for log, value in inputs_of(told):
            places, each = places_of(told, log, value), should_have(told, value)
            every = every_of(told)
            wanted = every <= 1 or number_of(value) % every == 0
            if told.finals_of(log) and wanted and made_of(told, log, value) > max(1, len(places)) * each:
                yield log, max(places, default=-1)


def unexplained_output(told: Told) -> Iterator[Finding]:
    every = every_of(told)
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


def outputs_of_keys(told: Told) -> dict[tuple[str, int, str], list[tuple[int, int]]]:
    """By log partition and key of the input, and log partition of the output: its outputs in order, with their inputs.

    Inputs that are not in the log have no place, and are left out.
    """
    outputs: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
    for effect, output in outputs_of(told):
        if (effect.partition, effect.value) in inputs_of(told) and places_of(told, effect.partition, effect.value):
            key = effect.partition, key_number(told, effect.value), output
            outputs.setdefault(key, []).append((effect.offset, effect.value))
    return {key: sorted(mine) for key, mine in outputs.items()}


def reordered_effect(told: Told) -> Iterator[Finding]:
    """Try, for each input in turn, every choice of outputs for those before it."""
    if facts_of(told).get("order", "none") != "key":
        return
    for (log, _, _), outputs in outputs_of_keys(told).items():
        first = {value: min(places_of(told, log, value)) for _, value in outputs}
        ends = {-1}  # the places at which a choice for the inputs so far can end
        for value in sorted(first, key=lambda value: (first[value], value)):
            mine = [offset for offset, other in outputs if other == value]
            if further := {offset for offset in mine if any(end < offset for end in ends)}:
                ends = further
            else:
                yield log, value


def fold_upto(told: Told, log: str, value: int, upto: int) -> int:
    inputs = [other for offset, other in of_one_key(told, log, value) if offset <= upto]
    return {"count": len(inputs), "sum": sum(map(number_of, inputs)), "last": value}[facts_of(told)["fold"]]


def result_is_wrong(told: Told, log: str, value: int, result: int) -> bool:
    facts = facts_of(told)
    may_be = [fold_upto(told, log, value, edge(places_of(told, log, value))) for edge in (min, max)]
    if facts["fold"] == "last" or facts["promise"] == "exactly-once":
        return result not in may_be
    if facts["promise"] == "at-least-once":
        return result < min(may_be)
    return result < 0 or result > max(may_be)


def wrong_fold(told: Told) -> Iterator[Finding]:
    facts = facts_of(told)
    if not facts.get("fold") or facts.get("unread"):
        return
    passed = {(log, value): gone for log, value, gone in everything_passed(told)}
    results, outputs = results_of(told), outputs_of_keys(told)
    for log, key in {(log, key) for log, key, _ in outputs}:
        mine = [
            (name, listed) for (where, number, name), listed in sorted(outputs.items()) if (where, number) == (log, key)
        ]
        if log_lost_one(told, log, key):
            continue
        stands = {value: max(places_of(told, log, value)) for _, listed in mine for _, value in listed}
        last = max(stands, key=lambda value: (stands[value], value))
        wrong = {
            (name, offset): result_is_wrong(told, log, value, results.get((name, offset), -1))
            for name, listed in mine
            for offset, value in listed
        }
        if any(listed[-1][1] == last and not wrong[name, listed[-1][0]] for name, listed in mine):
            continue
        name, listed = next((name, listed) for name, listed in mine if last in {value for _, value in listed})
        if wrong[name, listed[-1][0]]:
            right = [number for number, (offset, _) in enumerate(listed) if not wrong[name, offset]]
            yield log, listed[max(right, default=-1) + 1][1]
        elif passed[log, last]:
            yield log, min((stands[value], value) for value in stands if stands[value] > stands[listed[-1][1]])[1]


def log_lost_one(told: Told, log: str, key: int) -> bool:
    """Tell if an input of a key is not in the log that was acknowledged, or has an output."""
    return any(
        any(sent.acknowledged for sent in told.sends_of(name, value)) or made_of(told, name, value)
        for name, value in inputs_of(told)
        if name == log and key_number(told, value) == key and not places_of(told, name, value)
    )
