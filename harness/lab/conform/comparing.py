"""Compares what a real cluster showed after each step with what the core shows there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

import msgspec

from harness.ground.errors import PlanError
from harness.lab.conform.deviations import Course, CourseStep, Facts, shown_by_kafka
from harness.lab.conform.performing import CoreStep, performed_by_core
from harness.lab.conform.recorded import RecordedStep, RecordedTrace
from harness.lab.conform.schedules import SCHEDULES, schedule
from harness.lab.conform.shown import ANSWER, NO_ANSWER, NOT_SHOWN, ShownState, in_words
from harness.runs.stories import Play, Story, Told
from workloads import Settings


class Word(StrEnum):
    """The outcome of a step.

    - same: both show the same at its end.
    - passed: the core showed this in the course of the step, and went on.
    - deviation: they differ in a way that is known, with its reason.
    - unexplained: they differ, and no deviation says why; or the script failed here on the cluster.
    """

    SAME = "same"
    PASSED = "passed"
    DEVIATION = "deviation"
    UNEXPLAINED = "unexplained"


class Difference(NamedTuple):
    """A fact that the two show otherwise, each in words; ``why`` names the deviation that explains it, if one does."""

    fact: str
    real: str
    core: str
    why: str = ""


class ComparedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step, its outcome, and how the two differ at its end."""

    number: int
    text: str
    word: Word
    differences: tuple[Difference, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A story held against a trace, in the core's ``schedule`` of that number; ``day`` and ``commit`` are the trace's.

    ``disagreements`` are sentences: what the checkers found on the cluster otherwise than the story's file expects it.
    None: the trace does not have what they found.
    """

    story: str
    column: str
    system: str
    day: str = ""
    commit: str = ""
    schedule: int
    steps: tuple[ComparedStep, ...]
    disagreements: tuple[str, ...] | None = None

    @property
    def conforms(self) -> bool:
        """True if at least one step was compared, and each is the same or explained.

        Its outcome may be another than a story's file expects, whose script is not meant to rest after each step.
        """
        return bool(self.steps) and self.unexplained is None

    @property
    def unexplained(self) -> int | None:
        """The index of the first step that no deviation explains, None where all are explained."""
        wrong = (index for index, step in enumerate(self.steps) if step.word is Word.UNEXPLAINED)
        return next(wrong, None)

    def count(self, word: Word) -> int:
        """The number of steps with this outcome."""
        return sum(step.word is word for step in self.steps)


def hold(
    trace: RecordedTrace, story: Story, bug: str = "none", schedules: Iterable[int] = range(SCHEDULES)
) -> Comparison:
    """Let the core perform the ``story`` of a trace, and compare the two step by step; with a planted ``bug``.

    The answer is of the first of these ``schedules`` that explains every step, or of the first one of all.

    Raises:
        PlanError: the trace is of another script than the story has now.
    """
    first: Comparison | None = None
    for number in schedules:
        compared = _held(trace, story, performed_by_core(story, trace, bug, schedule(number)), number)
        if compared.conforms:
            return compared
        first = first or compared
    if first is None:
        raise PlanError("no schedule was given; compare a trace in one or more")
    return first


def _held(trace: RecordedTrace, story: Story, core: Sequence[CoreStep], schedule_number: int) -> Comparison:
    if [step.text for step in trace.steps] != [ours.step.text for ours in core]:
        raise PlanError(f"the trace {trace.name} is of another script than {trace.story} has now; record it again")
    seen = [
        CourseStep(real.text, real.lasted_ms, ours.step.shown.facts())
        for real, ours in zip(trace.steps, core, strict=True)
    ]
    settings = Settings.from_mapping(trace.settings)
    steps = []
    for number, (real, ours) in enumerate(zip(trace.steps, core, strict=True), 1):
        course = Course(seen[:number], settings, real.shown.facts(), trace.client)
        explain = partial(shown_by_kafka, course) if trace.is_kafka else _as_it_is
        steps.append(_compared(number, real, ours, explain))
    return Comparison(
        story=trace.story,
        column=trace.column,
        system=trace.system,
        day=trace.day,
        commit=trace.commit,
        schedule=schedule_number,
        steps=tuple(steps),
        disagreements=None if trace.outcome is None else trace.outcome.disagreements(story, trace.column),
    )


#: Makes the facts that the cluster shows otherwise, each with the names of known deviations, from what the core shows.
Explain = Callable[[Facts], Mapping[str, tuple[object, str]]]


def _as_it_is(_: Facts) -> Mapping[str, tuple[object, str]]:
    return {}


def _compared(number: int, real: RecordedStep, core: CoreStep, explain: Explain) -> ComparedStep:
    """The comparison with the state at the end of the step, or else with one before that fits."""
    differences = _differences(real.shown, core.step.shown, explain)
    word = _word(differences)
    if word is Word.UNEXPLAINED:
        answers, told = _answers_within(real, core), _told_within(real, core)
        earlier = (msgspec.structs.replace(state, answers=answers, told=told | state.told) for state in core.passed)
        if any(_word(_differences(real.shown, state, explain)) is not Word.UNEXPLAINED for state in earlier):
            word = Word.PASSED
    if real.play is Play.FAILED or real.play != core.step.play:
        differences.append(Difference("way", *(f"{step.play}: {step.note}" for step in (real, core.step))))
        word = Word.UNEXPLAINED
    return ComparedStep(number=number, text=real.text, word=word, differences=tuple(differences))


def _answers_within(real: RecordedStep, core: CoreStep) -> dict[str, str]:
    """The core's answers at a moment of the step: of each record the one before it, where the cluster has that too."""
    now, theirs = core.step.shown.answers, real.shown.answers
    answers = {}
    for name in now | theirs:
        text = theirs.get(name, NO_ANSWER)
        answers[name] = text if text == core.answers_before.get(name, NO_ANSWER) else now.get(name, NO_ANSWER)
    return answers


def _told_within(real: RecordedStep, core: CoreStep) -> dict[str, Told]:
    """The core's word at a moment of the step: of each fact the one before it, where the cluster tells that too."""
    before = core.told_before
    return core.step.shown.told | {
        fact: value for fact, value in real.shown.told.items() if fact in before and before[fact] == value
    }


def _word(differences: Iterable[Difference]) -> Word:
    whys = {difference.why for difference in differences}
    return Word.UNEXPLAINED if "" in whys else Word.DEVIATION if whys else Word.SAME


def _differences(real: ShownState, core: ShownState, explain: Explain) -> list[Difference]:
    """The facts that the cluster shows, and the core otherwise or not. A record that was not sent yet has no answer."""
    unanswered = {f"{ANSWER}{name}": NO_ANSWER for name in real.answers | core.answers}
    theirs = unanswered | real.facts()
    shown = unanswered | core.facts()
    ours = dict.fromkeys(theirs, NOT_SHOWN) | shown
    differing = {fact: value for fact, value in theirs.items() if ours[fact] != value}
    otherwise = explain(shown) if differing else {}
    return [
        Difference(fact, in_words(value), in_words(ours[fact]), why if value == expected else "")
        for fact, value in differing.items()
        for expected, why in [otherwise.get(fact, (value, ""))]
    ]
