"""The anomalies of pipelines once more, in plain Python over events: slow, and written without the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tests.checkers.brute_force import Findings, Log, sends_of, sound
from tests.checkers.group_twins import EVER, commits_of, group_of, operations
from workloads.operations import Event, EventType, Function, Reached, TransactionEnd

OK, FAIL, INFO = EventType.OK, EventType.FAIL, EventType.INFO


class Transaction(NamedTuple):
    begun: Event
    end: Event
    facts: TransactionEnd

    @property
    def offsets(self) -> dict[str, int]:
        return {m.partition: m.offset for m in self.end.micro if isinstance(m, Reached)}

    @property
    def aborted(self) -> bool:
        return self.end.type == FAIL or (self.end.type == INFO and self.facts.asked != "commit")

    def proved(self, log: Log) -> bool:
        return any((send.partition, send.value) in log.read_ok for send in sends_of(self.end))

    def could_show(self, events: list[Event]) -> bool:
        """Final readers read to the end whatever it wrote to."""
        ends = {name for e in events if e.function == Function.DRAIN and e.type == OK for name in e.partitions}
        return bool(sends_of(self.end)) and {send.partition for send in sends_of(self.end)} <= ends


def transactions(events: list[Event]) -> Iterator[Transaction]:
    for begun, done in operations(events, Function.TXN):
        if done is not None and done.detail:
            yield Transaction(begun, done, msgspec.json.decode(done.detail, type=TransactionEnd))


def answers(events: list[Event]) -> Iterator[tuple[Event, Event, str, int]]:
    """Questions what a group has committed, with their answers: one for each log partition."""
    for begun, done in operations(events, Function.COMMITTED):
        if done is not None and done.type == OK:
            for answer in done.micro:
                assert isinstance(answer, Reached)
                yield begun, done, answer.partition, answer.offset


def missing_effect(events: list[Event]) -> Findings:
    log, made, findings = Log(events), list(transactions(events)), set()
    furthest: dict[str, int] = {}
    for transaction in made:
        for key, offset in transaction.offsets.items():
            taken = offset if transaction.end.type == OK else -1
            furthest[key] = max(taken, furthest.get(key, -1))
    for _, _, key, offset in answers(events):
        if key in furthest:
            furthest[key] = max(offset, furthest[key])
    done: set[tuple[str, int]] = set()
    for transaction in made:
        unsure = transaction.end.type == INFO and transaction.facts.asked == "commit"
        possible = unsure and (transaction.proved(log) or not transaction.could_show(events))
        if transaction.end.type == OK or possible:
            done |= {(key, offset) for key, offsets in transaction.facts.sources.items() for offset in offsets}
    for event in events:
        if event.type == OK:
            for key, record in sound(event):
                if record.offset < furthest.get(key, -1) and (key, record.offset) not in done:
                    findings.add((key, record.offset))
    return sorted(findings)


def doubled_effect(events: list[Event]) -> Findings:
    log = Log(events)
    made: dict[tuple[str, str, int, str | None], set[int]] = {}
    for transaction in transactions(events):
        sources = [(key, offset) for key, offsets in transaction.facts.sources.items() for offset in offsets]
        if transaction.end.type in {OK, INFO}:
            for send, source in zip(sends_of(transaction.end), sources, strict=False):
                if (send.partition, send.value) in log.read_ok:
                    made.setdefault((send.partition, *source, transaction.facts.group), set()).add(send.value)
    return sorted((*key[:3], tuple(sorted(values))) for key, values in made.items() if len(values) > 1)


def aborted_commit(events: list[Event]) -> Findings:
    made, findings = list(transactions(events)), set()
    for _, done, key, offset in answers(events):
        mine = [t for t in made if t.offsets.get(key) == offset >= 0 and t.facts.group == group_of(done)]
        before = [t for t in mine if t.begun.index < done.index]
        plain = [c for c in commits_of(events) if (c.key, c.offset, c.group) == (key, offset, group_of(done))]
        others = any(not t.aborted for t in before) or any(c.begun < done.index for c in plain)
        if any(t.aborted for t in before) and not others:
            findings.add((key, done.index, offset))
    return sorted(findings)


def unstable_offset(events: list[Event]) -> Findings:
    findings = set()
    for begun, done, key, offset in answers(events):
        for transaction in transactions(events):
            facts = transaction.facts
            if transaction.end.type != OK or facts.handed_us is None or key not in transaction.offsets:
                continue
            whole = facts.handed_us < begun.time_us and done.time_us < (facts.ending_us or -EVER)
            if whole and facts.group == group_of(done) and transaction.offsets[key] != offset:
                findings.add((key, done.index, offset))
    return sorted(findings)


#: By anomaly.
TWINS: dict[str, Callable[[list[Event]], Findings]] = {
    "missing-effect": missing_effect,
    "doubled-effect": doubled_effect,
    "aborted-commit": aborted_commit,
    "unstable-offset": unstable_offset,
}
