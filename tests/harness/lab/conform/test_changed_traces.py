"""A recorded trace of Kafka that is changed in one fact conforms no longer.

Each fact is changed by itself, on each broker in turn, and must be named at its step. The comparison knows nothing of
schedules of the core: they differ in the states that the core passes. So each trace is held in one schedule, and all
traces together in all schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, Final

import msgspec
import pytest

from harness.ground.errors import PlanError
from harness.lab.conform import Comparison, RecordedTrace, Word, hold
from harness.lab.conform.schedules import SCHEDULES
from harness.lab.conform.shown import ShownState
from harness.runs.stories import STABLE_END, Play, Sign, StoryOutcome
from harness.runs.stories.stage import questions
from tests.harness.lab.conform.performances import NAMES, STORIES, core_of, core_once, read

#: They share the performances of the core, which one worker keeps.
pytestmark = pytest.mark.xdist_group("recorded-traces")
#: The schedule of each trace: that without chance, or one of the others in turn.
HELD_IN: Final = {name: index % 2 and 1 + index // 2 % (SCHEDULES - 1) for index, name in enumerate(NAMES)}


#: A fact's name and the state in which that fact is another one.
Changed = tuple[str, ShownState]
Change = Callable[[ShownState], Iterator[Changed]]
#: By index of a step, the name of the fact that is changed there.
Facts = Mapping[int, str]


def of_state(field: str, change: Callable[[Any], object]) -> Change:
    def changed(shown: ShownState) -> Iterator[Changed]:
        another = msgspec.structs.replace(shown, **{field: change(getattr(shown, field))})
        yield field.replace("_", " "), another

    return changed


def of_replica(field: str, change: Callable[[Any], object]) -> Change:
    """On each broker in turn, where it shows that and has something to change."""

    def changed(shown: ShownState) -> Iterator[Changed]:
        for node, replica in enumerate(shown.replicas):
            now = getattr(replica, field)
            if now is None or (another := change(now)) == now:
                continue
            replicas = list(shown.replicas)
            replicas[node] = msgspec.structs.replace(replica, **{field: another})
            fact = f"broker {node}: {field.replace('_', ' ')}"
            yield fact, msgspec.structs.replace(shown, replicas=tuple(replicas))

    return changed


def of_answer(change: Callable[[str], str | None]) -> Change:
    """The answer of each record in turn is another; None takes it away."""

    def changed(shown: ShownState) -> Iterator[Changed]:
        for name, text in shown.answers.items():
            if (another := change(text)) == text:
                continue
            answers = {**shown.answers, name: another or ""}
            if another is None:
                del answers[name]
                if text == "no answer":
                    continue
            yield f"answer to {name}", msgspec.structs.replace(shown, answers=answers)

    return changed


def of_told(field: str, change: Callable[[Any], object]) -> Change:
    """A fact that is told, in the traces that have it."""

    def changed(shown: ShownState) -> Iterator[Changed]:
        if field in shown.told:
            yield field, msgspec.structs.replace(shown, told={**shown.told, field: change(shown.told[field])})

    return changed


def without_a_broker(shown: ShownState) -> Iterator[Changed]:
    yield "number of replicas", msgspec.structs.replace(shown, replicas=shown.replicas[:-1])


def toggled(node: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda nodes: tuple(sorted({*nodes} ^ {node}))


CHANGES: Final[Mapping[str, Change]] = {
    "another leader": of_state("leader", lambda leader: 1 if leader is None else (leader + 1) % 3),
    "no leader": of_state("leader", lambda leader: 0 if leader is None else None),
    "a later leader epoch": of_state("leader_epoch", lambda epoch: epoch + 1),
    "an earlier leader epoch": of_state("leader_epoch", lambda epoch: epoch - 1),
    "a later partition epoch": of_state("partition_epoch", lambda epoch: epoch + 1),
    "a partition epoch as after a planned move": of_state("partition_epoch", lambda epoch: epoch + 2),
    **{f"broker {node} in or out of the ISR": of_state("isr", toggled(node)) for node in range(3)},
    **{f"broker {node} fenced or not": of_state("fenced", toggled(node)) for node in range(3)},
    "an eligible leader replica": of_state("elr", toggled(2)),
    "another order of preference": of_state("assigned", lambda nodes: nodes[::-1]),
    "the last record is missing": of_replica("log", lambda log: log[:-1]),
    "a record more": of_replica("log", lambda log: (*log, f"{len(log)}:z/0")),
    "a record under another leader epoch": of_replica(
        "log", lambda log: (*log[:-1], *(f"{log[-1]}9" for _ in log[-1:]))
    ),
    "a leader epoch more": of_replica("epochs", lambda epochs: (*epochs, "9 from 1")),
    "the last leader epoch is missing": of_replica("epochs", lambda epochs: epochs[:-1]),
    "dead or alive": of_replica("running", lambda running: not running),
    "another role": of_replica("leading", lambda leading: not leading),
    "another leader epoch of its own": of_replica("leader_epoch", lambda epoch: epoch + 1),
    "another ISR of its own": of_replica("isr", toggled(2)),
    "a higher high watermark on disk": of_replica("written_high_watermark", lambda mark: mark + 1),
    "a lower high watermark on disk": of_replica("written_high_watermark", lambda mark: mark - 1),
    "another answer": of_answer(lambda text: "acknowledged at offset 7"),
    "an error for an answer": of_answer(lambda text: "FencedLeaderEpochError"),
    "an answer is missing": of_answer(lambda text: None),
    "a broker is missing": without_a_broker,
}
#: Only stories with a coordinator have these.
CHANGES_OF_TOLD: Final[Mapping[str, Change]] = {
    "another coordinator": of_told(questions.LEADER, lambda _: 7),
    "an election of a coordinator more": of_told(questions.EPOCHS, lambda epochs: epochs + 1),
    "another ISR of the coordinator's log": of_told(questions.ISR, toggled(2)),
    "another committed offset": of_told(questions.COMMITTED, lambda offset: offset + 1),
    "a member more": of_told(questions.MEMBERS, lambda members: members + 1),
    "an assigned member more": of_told(questions.ASSIGNED, lambda members: members + 1),
    "another last stable offset": of_told(STABLE_END, lambda end: end - 1),
    "another state of a transactional id": of_told(f"{questions.TRANSACTIONAL_ID}p", lambda word: f"{word}0"),
    "a member that is assigned nothing": of_told("member m: assigned", lambda assigned: not assigned),
}


@cache
def quiet(name: str, number: int) -> Sequence[int]:
    """The steps in which the core of this schedule stays as Kafka is: in others it may have passed a changed state."""
    trace, core = read(name), core_of(name, number)
    plain = held(trace, number)
    return [
        index
        for index, ours in enumerate(core)
        if plain.steps[index].word in {Word.SAME, Word.DEVIATION}
        and ours.answers_before == ours.step.shown.answers
        and ours.told_before == ours.step.shown.told
        and all(
            msgspec.structs.replace(state, told={}) == msgspec.structs.replace(ours.step.shown, answers={}, told={})
            and ours.step.shown.told.get(STABLE_END) in {None, state.told.get(STABLE_END)}
            for state in ours.passed
        )
    ]


@cache
def deviating(name: str, number: int) -> Collection[tuple[int, str]]:
    """Facts that deviate otherwise than by a number, with the index of the step: a change may make one the core's."""
    steps = held(read(name), number).steps
    differing = {(index, difference.fact) for index, step in enumerate(steps) for difference in step.differences}
    return {(index, fact) for index, fact in differing if fact != "partition epoch"}


def held(trace: RecordedTrace, number: int) -> Comparison:
    with core_once():
        return hold(trace, STORIES[trace.story], schedules=[number])


def changed_traces(trace: RecordedTrace, change: Change, where: Sequence[int]) -> Iterator[tuple[RecordedTrace, Facts]]:
    """Traces with one change at each of these steps, and the fact that is changed at each."""
    for round_of_changes in zip_longest(*(change(trace.steps[index].shown) for index in where)):
        steps, facts = list(trace.steps), {}
        for index, changed in zip(where, round_of_changes, strict=True):
            if changed is not None:
                facts[index], shown = changed
                steps[index] = msgspec.structs.replace(steps[index], shown=shown)
        yield msgspec.structs.replace(trace, steps=tuple(steps)), facts


#: Each change is tried in each third trace, another third for the next change; what only coordinators tell,
#: in every trace.
TRIED_IN: Final = {name: NAMES[index % 3 :: 3] for index, name in enumerate(CHANGES)} | dict.fromkeys(
    CHANGES_OF_TOLD, NAMES
)


@pytest.mark.parametrize("name_of_change", TRIED_IN)
def test_a_changed_fact_is_unexplained_and_named(name_of_change: str) -> None:
    struck, missed = set(), []
    change = {**CHANGES, **CHANGES_OF_TOLD}[name_of_change]
    for name in TRIED_IN[name_of_change]:
        number = HELD_IN[name]
        trace = read(name)
        for another, facts in changed_traces(trace, change, quiet(name, number)):
            compared = held(another, number)
            for index, fact in facts.items():
                now = another.steps[index].shown.facts().get(fact)
                is_the_cores = now is not None and now == core_of(name, number)[index].step.shown.facts().get(fact)
                if is_the_cores or (index, fact) in deviating(name, number):
                    continue
                step = compared.steps[index]
                struck.add(name)
                named = any(difference.fact == fact and not difference.why for difference in step.differences)
                if step.word is not Word.UNEXPLAINED or not named:
                    missed.append((name, number, step.text, fact, step.word.value))
    assert missed == []
    assert struck == {*TRIED_IN[name_of_change]} if name_of_change in CHANGES else struck


#: Other findings of the checkers.
OTHER_OUTCOMES: Final[Mapping[str, Callable[[StoryOutcome], object]]] = {
    "lost": lambda outcome: {*outcome.lost} ^ {"base"},
    "acknowledged": lambda outcome: {*outcome.acknowledged} ^ {"base"},
    "skipped": lambda outcome: {*outcome.skipped} ^ {"base"},
    "signs": lambda outcome: {*outcome.signs} ^ {Sign.DUPLICATE},
    "others": lambda outcome: {*(outcome.others or ())} ^ {"divergent-reads"},
    "problems": lambda outcome: [*outcome.problems, "it rained"],
    "lacking": lambda outcome: [*outcome.lacking, "no leader"],
}


@pytest.mark.parametrize("field", OTHER_OUTCOMES)
def test_another_outcome_is_compared_with_the_story_again(field: str) -> None:
    changed = []
    for name in NAMES:
        trace = read(name)
        if (outcome := trace.outcome) is not None:
            other = msgspec.structs.replace(outcome, **{field: tuple(OTHER_OUTCOMES[field](outcome))})
            another = msgspec.structs.replace(trace, outcome=other)
            number = HELD_IN[name]
            changed.append(held(another, number).disagreements != held(trace, number).disagreements)
    assert changed
    assert all(changed)


def test_every_schedule_holds_a_changed_trace() -> None:
    assert {*HELD_IN.values()} == {*range(SCHEDULES)}


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_without_one_of_its_steps_is_refused(name: str) -> None:
    trace = read(name)
    for index in range(len(trace.steps)):
        fewer = msgspec.structs.replace(trace, steps=trace.steps[:index] + trace.steps[index + 1 :])
        with pytest.raises(PlanError, match=r"is of another script than .* record it again"):
            held(fewer, HELD_IN[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_step_that_failed_on_kafka_is_unexplained(name: str) -> None:
    trace = read(name)
    for index, step in enumerate(trace.steps):
        steps = list(trace.steps)
        steps[index] = msgspec.structs.replace(step, play=Play.FAILED, note="waited in vain")
        compared = held(msgspec.structs.replace(trace, steps=tuple(steps)), HELD_IN[name])
        assert compared.steps[index].word is Word.UNEXPLAINED
        assert compared.steps[index].differences[-1].fact == "way"
